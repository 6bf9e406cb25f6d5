"""Layers executed in turns: the output is right, nothing more than what they say is between them, and the claim holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sparsemap_plugins.verify import verify_chain

from sparsemap import DesignError, search_network
from sparsemap.cli.main import cli
from sparsemap.pieces.loading import load
from sparsemap.problem import design_file
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


def test_layers_that_do_not_follow_each_other_are_refused(files: tuple[FusedResult, list[Path]]) -> None:
    first = design_file.load(files[1][0], load())
    with pytest.raises(DesignError, match="'widen' after 'widen': no operand of 3 ranks resides on chip"):
        verify_chain([(first.problem, first.batch)] * 2)


def test_what_slides_by_is_in_packets_that_are_handed_on_or_rewritten(tmp_path: Path) -> None:
    shapes = (("widen", 16, 2, 1.0), ("narrow", 4, 16, 0.3), ("last", 2, 4, 0.3))
    conv = {"type": "conv2d", "p": 12, "q": 12}
    layers = [{**conv, "name": n, "k": k, "c": c, "density": {"P": d, "Q": 1.0}} for n, k, c, d in shapes]
    levels = [CHIP["levels"][0], {**CHIP["levels"][1], "capacity": "1000 words"}]
    chip = {**CHIP, "levels": levels, "converter": {"words_per_cycle": 8, "pj": 0.1, "area_mm2": 0.01}}
    network = {"name": "lines", "input": [2, 12, 12], "layers": layers}
    found = search_network(network, chip, 100, 2, out=tmp_path, fuse=True)
    assert isinstance(found, FusedResult)
    steps = [row for row in found.rows if row.design]
    assert all(row.slides and row.packed for row in steps[:-1]) and steps[-1].place == "DRAM"
    (rewritten,) = (row for row in found.rows if row.type == "conversion")
    assert rewritten.layer == "widen converted" and rewritten.used_words == steps[0].used_words <= found.capacity
    designs = [design_file.load(tmp_path / row.design, load()) for row in steps]
    executed = verify_chain([(one.problem, one.batch) for one in designs], trials=4)
    assert executed.correct
    claimed = (sum(row.energy_pj for row in steps), sum(row.cycles for row in steps))
    assert executed.claimed == pytest.approx(claimed)
    assert all(most <= room for most, room in zip(executed.most_words, executed.room, strict=True))
    assert executed.ratio == pytest.approx(1.0, abs=0.03)
