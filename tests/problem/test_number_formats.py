"""Named number formats: bits with their part of a shared scale, and the energy of decoders (docs/model.md, section 14)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest
from click.testing import CliRunner
from sparsemap_plugins.exchange.dense import losses
from sparsemap_plugins.verify import verify

from sparsemap import SparseMapError, load_problem, search
from sparsemap.cli.main import cli
from sparsemap.pieces.loading import load
from sparsemap.problem import design_file
from sparsemap.problem.network import nodes_of
from sparsemap.problem.widths import widths_text
from sparsemap.spec.notes import Notes

REGISTRY = load()
P, Q, Z = 0, 1, 2
DRAM = {"name": "DRAM", "class": "dram", "energy": {"read": 100.0, "write": 100.0}}
BUFFER = {"name": "Buffer", "class": "sram", "capacity": "1 KB", "energy": {"read": 1.0, "write": 1.0, "encode": 0.25}}
ONCE = ["m=4"], ["n=4", "k=4"]
"""Mapping of a 4 x 4 x 4 product: every word of every tensor crosses DRAM once, and P and Q reach the units 64 times."""
AGAIN = ["k=2", "m=4"], ["n=4", "k=2"]
"""The 16 sums leave, come back for the second half of k, and leave again."""
ADD_8 = REGISTRY.get("technology", "12nm-recommended").add_pj(8)
MULTIPLY_16 = REGISTRY.get("technology", "12nm-recommended").mac_pj(16, "compute")


def product(mapping: Any, bits: Any, density: Any = None, compute: Any = None, **levels: Any) -> Any:
    """A product of 4 x 4 x 4 in words of 16 bits, as a design."""
    rows = [{**row, **levels.get(row["name"], {})} for row in (DRAM, BUFFER)]
    workload: dict[str, Any] = {"einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": dict.fromkeys("mkn", 4)}
    whole = [[*(f"{dim}=1" for dim in "mkn" if dim not in " ".join(loops)), *loops] for loops in mapping]
    packed = "bitmask" if density else "uncompressed"
    table = {
        "workload": {**workload, "density": {"P": 1.0, "Q": density or 1.0}, "word_bits": bits},
        "hardware": {"levels": rows, "word_bits": 16, "compute": {"energy": {"compute": 1.0}, **(compute or {})}},
        "cost_model": "physical" if density else "timeloop", "mapping": {"L1_T": whole[0], "L2_T": whole[1]},
        "formats": {t: [packed if t == "Q" else "uncompressed"] * 4 for t in "PQZ"}, "beyond_format": "uncompressed",
        "gate_skip": {},
    }  # fmt: skip
    return design_file.structure({"kind": "design", **table}, REGISTRY, "design")


def decoded_pj(mapping: Any, bits: Any, plain: Any, compute: Any = None, **levels: Any) -> float:
    """Energy above that of the same design with unnamed bits of equal width."""
    named, numbers = (
        design.problem.cost_model.evaluate(design.batch, design.problem)
        for design in (
            product(mapping, bits, compute=compute, **levels),
            product(mapping, plain, compute=compute, **levels),
        )
    )
    assert (named.valid[0], named.cycles[0]) == (True, numbers.cycles[0])
    return float(named.energy_pj[0] - numbers.energy_pj[0])


@pytest.mark.parametrize(
    ("name", "bits", "macs"),
    [
        ("mxfp4", 4 + 8 / 32, 0.0), ("mxfp6", 6 + 8 / 32, 0.0), ("mxfp8", 8 + 8 / 32, 0.0), ("nvfp4", 4 + 8 / 16, 0.3),
        ("int4-g32", 4 + 16 / 32, 1.0), ("int4-g128", 4 + 16 / 128, 1.0), ("int8", 8, 0.0), ("fp8", 8, 0.0),
        ("fp16", 16, 0.0), ("bf16", 16, 0.0),
    ],
)  # fmt: skip
def test_a_name_stands_for_bits_scales_and_a_decoder(name: str, bits: float, macs: float) -> None:
    """`macs`: about the multiplications of 16 bits per decoded word; scales that are powers of two are only added."""
    found = REGISTRY.get("number-format", name)
    assert float(found) == bits
    technology = REGISTRY.get("technology", "12nm-recommended")
    assert found.recode_pj(technology) == pytest.approx(macs * MULTIPLY_16, abs=0.1 * MULTIPLY_16)
    assert (found.recode_pj(technology) > 0) == (found.block > 1)
    assert product(ONCE, {"Q": name}).problem.tensor_bits[Q].tolist() == [bits, bits]


def test_compute_units_get_decoded_words() -> None:
    """Both levels keep 4.25 bits per word; each of the 64 words read for the compute units is decoded."""
    assert decoded_pj(ONCE, {"Q": "mxfp4"}, {"Q": 4.25}) == pytest.approx(64 * ADD_8)
    assert decoded_pj(ONCE, {"Q": "int4-g128"}, {"Q": 4.125}) == pytest.approx(64 * MULTIPLY_16)
    assert decoded_pj(ONCE, {"Q": "int8", "P": "bf16"}, {"Q": 8, "P": 16}) == 0.0


def test_a_level_in_another_width_gets_decoded_words() -> None:
    """The buffer keeps plain words of 16 bits: the 16 words on their way into it are decoded, once each."""
    plain = {"Buffer": {"word_bits": {"Q": 16}}}
    assert decoded_pj(ONCE, {"Q": "mxfp4"}, {"Q": 4.25}, **plain) == pytest.approx(16 * ADD_8)


def test_words_from_one_shared_scale_to_another_are_decoded_and_encoded() -> None:
    both = {"Buffer": {"word_bits": {"Q": "mxfp8"}}}, {"Buffer": {"word_bits": {"Q": 8.25}}}
    designs = (product(ONCE, {"Q": bits}, **levels) for bits, levels in zip(("int4-g128", 4.125), both, strict=True))
    found, none = (design.problem.cost_model.evaluate(design.batch, design.problem).energy_pj[0] for design in designs)
    assert found - none == pytest.approx(16 * (MULTIPLY_16 + ADD_8) + 64 * ADD_8)


def test_a_mode_of_the_compute_units_takes_words_with_scales() -> None:
    modes = {"modes": [{"bits": [16, 4], "macs": 4}]}
    assert decoded_pj(ONCE, {"Q": "nvfp4"}, {"Q": 4.5}, modes) == 0.0
    assert product(ONCE, {"Q": "int4-g32"}, compute=modes).problem.mac_mode is not None


@pytest.mark.parametrize(("mapping", "words"), [(ONCE, 16), (AGAIN, 0)])
def test_results_are_encoded_unless_their_sums_come_back(mapping: Any, words: int) -> None:
    """DRAM keeps results in 8.25 bits; sums that come back stay as wide as inside, in plain words."""
    bits = {"Z": 32}, {"DRAM": {"word_bits": {"Z": "mxfp8"}}}, {"DRAM": {"word_bits": {"Z": 8.25}}}
    named, plain = product(mapping, bits[0], **bits[1]), product(mapping, bits[0], **bits[2])
    found, none = (one.problem.cost_model.evaluate(one.batch, one.problem).energy_pj[0] for one in (named, plain))
    assert found - none == pytest.approx(words * ADD_8)


CASES: list[tuple[Any, Any]] = [
    ({"Q": "mxfp4", "P": "nvfp4"}, {}), ({"Q": "int4-g128"}, {"Buffer": {"word_bits": {"Q": "fp16"}}}),
    ({"P": "mxfp8", "Z": "mxfp8"}, {}), ({"Z": 32}, {"DRAM": {"word_bits": {"Z": "mxfp8"}}}),
]  # fmt: skip


@pytest.mark.parametrize("mapping", [ONCE, AGAIN])
@pytest.mark.parametrize(("bits", "levels"), CASES)
def test_execution_decodes_as_many_words(mapping: Any, bits: Any, levels: Any) -> None:
    design = product(mapping, bits, **levels)
    assert design.problem.recoding_pj.any()
    found = verify(design.problem, design.batch, trials=2)
    assert found.correct
    assert [row for row in found.rows if row.verdict != "exact"] == []


def test_execution_of_a_bitmask_with_scales_counts_the_same_words() -> None:
    """Two of four words of Q are nonzeros: 8 cross DRAM in 4.25 bits each, beside 16 bits of masks, and 32 are decoded
    for the compute units; so are 16 results, encoded for the buffer."""
    two_of_four = {"type": "n-of-m", "n": 2, "m": 4}
    design = product(ONCE, {"Q": "mxfp4", "Z": "mxfp8"}, two_of_four)
    found = verify(design.problem, design.batch, trials=3)
    assert found.correct
    assert [row for row in found.rows if row.verdict != "exact"] == []
    assert (found.row("read", "DRAM", "Q").mean, found.row("read", "Buffer", "Q").mean) == (8, 32)
    named, plain = (
        one.problem.cost_model.evaluate(one.batch, one.problem, detail=True)
        for one in (design, product(ONCE, {"Q": 4.25, "Z": 8.25}, two_of_four))
    )
    sums = named.detail.cells[Z][1].update[0] + found.row("read", "Buffer", "Z").mean - 16
    assert named.energy_pj[0] - plain.energy_pj[0] == pytest.approx((32 + sums) * ADD_8)


@pytest.mark.parametrize(
    ("bits", "levels", "text"),
    [
        ({"Q": "mxfp5"}, {}, "design: word_bits.Q: expected bits or a number format (bf16, fp16, fp8, int4-g128"),
        ({"Q": "mxfp5"}, {}, "nvfp4), found 'mxfp5'; did you mean 'mxfp8'?"),
        ({"Q": 8}, {"Buffer": {"word_bits": {"Q": "x"}}}, "levels[1].word_bits.Q: expected bits or a number format"),
    ],
)
def test_an_unknown_name_is_refused_with_its_place(bits: Any, levels: Any, text: str) -> None:
    with pytest.raises(SparseMapError) as refused:
        _ = product(ONCE, bits, **levels).problem.tensor_bits
    assert text in str(refused.value)


def test_other_mappers_lose_the_decoders() -> None:
    notes = Notes()
    losses(product(ONCE, {"Q": "mxfp4"}), notes, "others")
    assert [note.cause for note in notes.rows] == ["number formats"]


def test_check_tells_unknown_names_of_levels(tmp_path: Path) -> None:
    levels = '[{ name = "DRAM", class = "dram", word_bits = { Q = "mxfp5" } }]'
    (tmp_path / "chip.toml").write_text(f'kind = "hardware"\nname = "chip"\nlevels = {levels}\n', "utf-8")
    found = CliRunner().invoke(cli, ["check", str(tmp_path / "chip.toml")])
    assert found.exit_code == 2 or found.exit_code == 1
    assert "levels[0].word_bits.Q: expected bits or a number format (bf16" in found.output


def test_a_layer_of_a_network_with_an_unknown_name_is_told_with_its_place() -> None:
    layer = {"name": "one", "type": "linear", "m": 4, "k": 8, "n": 8, "word_bits": {"Q": "mxfp5"}}
    network = REGISTRY.build("network", {"name": "net", "layers": [layer]})
    with pytest.raises(SparseMapError, match=r"net.toml: layers\[0\].word_bits.Q: expected bits or a number format"):
        nodes_of(network, REGISTRY, file="net.toml")


def test_reports_say_names() -> None:
    design = product(
        ONCE, {"P": 16, "Q": "mxfp4", "Z": 32}, Buffer={"word_bits": {"Q": "bf16"}}, DRAM={"word_bits": {"Z": 8}}
    )
    assert widths_text(design.problem) == "P 16 bits, Q mxfp4 and bf16 at Buffer, Z 8 bits and 32 at Buffer"


def on_chip_with(units: Any) -> Any:
    table = {"einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": dict.fromkeys("mkn", 8), "density": {"P": 1.0, "Q": 1.0}}
    table["word_bits"] = {"Q": "int4-g128"}
    return load_problem(table, {"extends": "small", "units": units}, registry=REGISTRY)


def test_a_chip_that_lists_its_decoders_pays_for_their_area_and_has_no_others() -> None:
    problem, none = on_chip_with({"number_formats": ["int4-g128"]}), on_chip_with({}).chip
    one = problem.chip
    on_chip = sum(float(n) for n, bits in zip(one.instances[:-1], one.capacity_bits, strict=True) if bits < 1e18)
    added = float(one.total_area_mm2 - none.total_area_mm2)
    assert added == pytest.approx(on_chip * problem.technology.mac_area_mm2(16))
    with pytest.raises(SparseMapError, match=r"units\.number_formats: has no decoder for int4-g128, found mxfp4"):
        _ = on_chip_with({"number_formats": ["mxfp4"]}).recoding_pj


def test_a_design_with_named_formats_is_read_back(tmp_path: Path) -> None:
    table = {"einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": {"m": 60, "k": 48, "n": 36}}
    table |= {"density": {"P": 0.4, "Q": 0.2}, "word_bits": {"Q": "mxfp4", "Z": "mxfp8"}}
    problem = load_problem(table, "mobile", registry=REGISTRY)
    found = search(problem, budget=200)
    found.write(tmp_path)
    again = design_file.load(tmp_path / "design.toml", REGISTRY)
    evaluated = again.problem.evaluator.evaluate_designs(again.batch)
    assert evaluated.energy_pj[0] == found.best.costs["energy_pj"]
    assert problem.bound is not None and problem.bound <= again.problem.evaluator.score(evaluated)[0]
    free = attrs.evolve(
        again, problem=attrs.evolve(again.problem, workload=attrs.evolve(again.problem.workload, word_bits=None))
    )
    technology = problem.technology
    decoders = 2 * ADD_8 / MULTIPLY_16 * technology.mac_area_mm2(16) * sum(x.instances for x in problem.levels[1:])
    assert again.units_mm2 - free.units_mm2 == pytest.approx(decoders)
