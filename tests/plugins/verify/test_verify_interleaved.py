"""Layers executed in turns: the output is right, nothing more than what they say is between them, and the claim holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sparsemap_plugins.verify import verify_chain

from sparsemap import DesignError, search_network
from sparsemap.cli.main import cli
from sparsemap.files import percent
from sparsemap.pieces.loading import load
from sparsemap.problem import design_file
from sparsemap.problem.designs import Designs
from sparsemap.problem.problem import Problem
from sparsemap.study.fused_result import FusedResult

CHIP: dict[str, Any] = {
    "extends": "small",
    "name": "chip",
    "levels": [
        {"name": "DRAM", "class": "dram", "bandwidth": "2 GB/s"},
        {"name": "Buffer", "class": "sram", "capacity": "1500 words", "fanout": 8, "gate_skip": True},
    ],
}


def lines(**density: Any) -> dict[str, Any]:
    return {
        "name": "lines",
        "input": [2, 12, 12],
        "layers": [
            {"name": "widen", "type": "conv2d", "k": 16, "c": 2, "p": 12, "q": 12, **density},
            {"name": "each", "type": "depthwise", "c": 16, "p": 10, "q": 10, "r": 3, "s": 3, **density},
            {"name": "narrow", "type": "conv2d", "k": 2, "c": 16, "p": 10, "q": 10, **density},
        ],
    }


@pytest.fixture(scope="module", params=[{}, {"density": {"P": 0.5, "Q": 0.5}}], ids=["dense", "sparse"])
def files(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[FusedResult, list[Path]]:
    folder = tmp_path_factory.mktemp("lines")
    found = search_network(lines(**request.param), CHIP, 60, 1, space="paper", out=folder, fuse=True)
    assert isinstance(found, FusedResult)
    return found, [folder / row.design for row in found.rows]


def test_a_plan_in_turns_is_what_execution_says(files: tuple[FusedResult, list[Path]]) -> None:
    found, paths = files
    assert [bool(row.slides) for row in found.rows] == [True, True, False]
    designs = [design_file.load(path, load()) for path in paths]
    executed = verify_chain([(one.problem, one.batch) for one in designs], trials=4)
    assert executed.correct
    assert executed.claimed == pytest.approx((found.energy_pj, found.cycles))
    assert executed.most_words == executed.room
    assert executed.ratio == pytest.approx(1.0, abs=0.03)


def test_the_command_takes_the_designs_of_a_chain(files: tuple[FusedResult, list[Path]]) -> None:
    told = CliRunner().invoke(cli, ["verify", *map(str, files[1]), "--trials", "1"])
    assert told.exit_code == 0, told.output
    assert "3 layers in turns, 1 trials" in told.output and "output     right" in told.output


def test_channels_slide_by_into_sums_that_stay(tmp_path: Path) -> None:
    """Weights come once, which rows would not let them; the last output is summed up on chip."""
    layers = [
        {"name": name, "type": "conv2d", "k": k, "c": c, "p": 2, "q": 2}
        for name, k, c in (("a", 128, 32), ("b", 32, 128))
    ]
    small = {**CHIP, "levels": [CHIP["levels"][0], {**CHIP["levels"][1], "capacity": "350 words"}]}
    network = {"name": "wide", "input": [32, 2, 2], "layers": layers}
    found = search_network(network, small, 200, 1, space="paper", out=tmp_path, fuse=True)
    assert isinstance(found, FusedResult)
    assert [row.walks for row in found.rows] == [{"Z": "k"}, {"P": "c"}]
    designs = [design_file.load(tmp_path / row.design, load()) for row in found.rows]
    executed = verify_chain([(one.problem, one.batch) for one in designs], trials=2)
    assert executed.correct and executed.most_words == executed.room
    assert executed.ratio == pytest.approx(1.0, abs=0.03)


def test_padding_is_no_word_between_and_zeros_of_products_are_told(tmp_path: Path) -> None:
    """13 x 13 words a channel, which are padded to 14 x 14; one in seven of the sums of two products is not zero."""
    layers = [
        {"name": name, "type": "conv2d", "k": k, "c": c, "p": 13, "q": 13, "density": {"P": 0.5, "Q": q}}
        for name, k, c, q in (("widen", 16, 2, 0.3), ("narrow", 2, 16, 0.5))
    ]
    larger = {**CHIP, "levels": [CHIP["levels"][0], {**CHIP["levels"][1], "capacity": "2500 words"}]}
    network = {"name": "padded", "input": [2, 13, 13], "layers": layers}
    found = search_network(network, larger, 60, 1, space="paper", out=tmp_path, fuse=True)
    assert isinstance(found, FusedResult)
    designs = [design_file.load(tmp_path / row.design, load()) for row in found.rows]
    executed = verify_chain([(one.problem, one.batch) for one in designs], trials=2)
    assert designs[1].problem.padded and executed.correct and executed.most_words == executed.room
    assert executed.room[0] % 169 == 0
    ((name, claim, share),) = executed.gets
    assert (name, claim) == ("narrow", pytest.approx(0.5, abs=0.03)) and share == pytest.approx(0.5 * 0.2775, abs=0.03)
    said = f"'narrow' counts on 50 % nonzeros, gets {percent(share)}: products have zeros of their own"
    assert said in executed.text()


def test_layers_that_do_not_follow_each_other_are_refused(files: tuple[FusedResult, list[Path]]) -> None:
    first = design_file.load(files[1][0], load())
    with pytest.raises(DesignError, match="'widen' after 'widen': no operand of 3 ranks resides on chip"):
        verify_chain([(first.problem, first.batch)] * 2)


@pytest.mark.parametrize("packed", [False, True], ids=["words", "packets"])
def test_what_slides_by_may_be_in_packets(packed: bool) -> None:
    """Two products, one line of eight channels between them at a time, three of ten of its words there."""

    def design(tensor: str, ranks: tuple[str, str, str], sizes: dict[str, int], skip: str) -> tuple[Problem, Designs]:
        formats = {t: ["uncompressed"] * 4 + ["bitmask" if packed and t == tensor else "uncompressed"] for t in "PQZ"}
        made, taken, weights = ranks
        workload = {
            "einsum": f"Z[{made}] = P[{taken}] * Q[{weights}]",
            "dims": sizes,
            "density": {"P": 1.0, "Q": 1.0, tensor: 0.3},
            "resides": {tensor: "Buffer"},
            "resident_words": {tensor: 8},
            "slides": {tensor: "p"},
        }
        inner = [f"{dim}={sizes[dim]}" for dim in weights.split(", ")[::-1]]
        mapping = {"L1_T": ["p=12"], "L2_T": inner[::-1] if tensor == "P" else inner, "L2_S": []}
        told = {"workload": workload, "hardware": "small", "mapping": mapping, "formats": formats}
        places = {"Buffer": "none", "MAC": skip}
        found = design_file.structure({**told, "beyond_format": "uncompressed", "gate_skip": places}, load())
        return found.problem, found.batch

    one = design("Z", ("k, p", "c, p", "k, c"), {"k": 8, "c": 2, "p": 12}, "none")
    two = design("P", ("m, p", "k, p", "m, k"), {"m": 4, "k": 8, "p": 12}, "skip-q-by-p" if packed else "none")
    executed = verify_chain([one, two], trials=4)
    assert executed.correct and executed.most_words == executed.room == (8,)
    assert executed.ratio == pytest.approx(1.0, abs=0.03)
    assert (executed.claimed[1] < 500) == packed  # zeros are skipped where packets tell of them
