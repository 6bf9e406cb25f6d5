"""Networks whose layers have words of different widths: room, traffic and area follow from the width of each tensor."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from sparsemap_plugins.chips.layers import with_widest

from sparsemap import load_problem, search_network
from sparsemap.pieces.loading import load
from sparsemap.problem.chip import Chip
from sparsemap.spec import toml_text
from sparsemap.study.fused import FusedPlan
from sparsemap.study.fused_result import FusedResult
from sparsemap.study.plan import plan_of

CHIP: dict[str, Any] = {
    "extends": "small",
    "name": "chip",
    "technology": "12nm-recommended",
    "levels": [
        {"name": "DRAM", "class": "dram", "bandwidth": "2 GB/s"},
        {"name": "Buffer", "class": "sram", "capacity": "6 KB", "fanout": 8, "gate_skip": True},
    ],
}


SUM = {"name": "sum", "type": "add"}


def network(*layers: dict[str, Any]) -> dict[str, Any]:
    sizes = {"linear": {"m": 16, "k": 16, "n": 16}, "add": {}}
    return {"name": "mixed", "input": [16, 16], "layers": [{**sizes[one["type"]], **one} for one in layers]}


def linear(name: str, bits: Any = None, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": "linear", **({"word_bits": bits} if bits else {}), **more}


def run(given: Any, hardware: Any = CHIP, **how: Any) -> Any:
    return search_network(given, hardware, **{"budget": 60, "seed": 1, "space": "paper", "fuse": True, **how})


def chip_of(bits: int, hardware: Any = CHIP) -> Chip:
    return load_problem({"type": "linear", "m": 2, "k": 2, "n": 2, "word_bits": bits}, hardware).chip


def moved(parts: list[tuple[float, int, str, int]]) -> tuple[float, float]:
    """pJ and cycles of words, level, action and width, summed by hand."""
    levels = {level for _, level, _, _ in parts}
    pj = sum(words * float(chip_of(bits).energy_pj[action][level]) for words, level, action, bits in parts)
    busy = [sum(n / float(chip_of(b).bandwidth[s]) for n, s, _, b in parts if s == level) for level in levels]
    return pj, math.ceil(max(busy) - 1e-9)


@pytest.mark.parametrize("fuse", [False, True])
def test_the_chip_of_a_network_is_that_of_its_widest_words_in_any_order(fuse: bool) -> None:
    found = [run(network(*map(linear, "abc", bits)), fuse=fuse, budget=20) for bits in ((4, 8, None), (None, 4, 8))]
    areas = {(one if fuse is False else one.base).costs["area_mm2"] for one in found}
    assert areas == {one.costs["area_mm2"] for one in found} == {float(chip_of(16).total_area_mm2)}
    assert float(chip_of(16).total_area_mm2) > float(chip_of(8).total_area_mm2)


def test_a_width_that_a_layer_names_is_that_of_the_hardware() -> None:
    def block(*bits: int | None) -> Any:
        return network(*map(linear, "ab", bits), {**SUM, "inputs": ["b", "a"]})

    named, given = run(block(8, 8)), run(block(None, None), {**CHIP, "word_bits": 8})
    assert named.costs == given.costs and named.capacity == given.capacity
    assert run(block(16, None)).costs == run(block(None, None)).costs


@pytest.mark.parametrize("bits", [(4, 16, 16), (16, 4, 8), (8, 4, 16)])
def test_room_is_that_of_the_bits_of_each_tensor_and_a_copy_of_another_width(
    bits: tuple[int, ...], tmp_path: Path
) -> None:
    """By an account of its own: bits of what lives at each step, and of the inputs that are rewritten for it."""
    layers = [*map(linear, "abc", bits), {**SUM, "inputs": ["c", "a"]}, linear("last", 16)]
    found = run(network(*layers), out=tmp_path)
    assert isinstance(found, FusedResult) and found.stays == (4, 4)
    width = dict(zip("abc", bits, strict=True)) | {"sum": max(bits[0], bits[2]), "last": 16}
    assert found.capacity == 6 * 8192 // max(width.values())
    for row in found.rows:
        if row.type not in ("linear", "add"):
            continue
        room = {name: 256 * width[name] for name in row.live}
        replaced = max(room[name] for name in row.inputs) if row.type == "add" else 0  # it writes where one of them was
        copies = [name for name in row.inputs if name in room and width[name] != width[row.layer]]
        copied = 256 * width[row.layer] * len(copies) if row.type == "linear" else 0
        used = 16 * row.used_words
        assert row.live_words * 16 >= sum(room.values()) - replaced and used <= 6 * 8192
        assert used >= row.live_words * 16 + copied


def test_a_tensor_that_fits_in_narrow_words_alone_does_not_stay() -> None:
    """3,200 words of 16 bits are more than 6 KB, whatever the width of the first layer; 3,200 of 8 bits fit."""
    sizes = (16, 4), (16, None), (50, 8), (50, 8)
    layers = [linear(name, bits, m=64, k=k, n=50) for name, (k, bits) in zip("abcd", sizes, strict=True)]
    layers[0]["n"] = 16
    found = run({"name": "over", "input": [64, 16], "layers": layers})
    rows = {row.layer: row for row in found.rows}
    assert rows["b"].why == "3,200 words, Buffer holds 3,072" and rows["b"].place == "DRAM"
    assert not rows["c"].why.endswith("holds 6,144")


def test_operations_and_copies_cost_what_they_read_and_write_in_the_width_of_each() -> None:
    layers = [linear("a", 4), linear("b"), {**SUM, "inputs": ["b", "a"]}, linear("c", 8)]
    found = run(network(*layers), operations="counted")
    rows = {row.layer: row for row in found.rows}
    assert [row.layer for row in found.rows] == ["a", "b inputs", "b", "sum", "c inputs", "c"]
    level = {"DRAM": 0, "Buffer": 1}
    there = {name: level[rows[name].place] for name in ("a", "b", "sum")}
    sums = {
        "b inputs": [(256, there["a"], "read", 4), (256, there["a"], "write", 16)],
        "sum": [(256, there["b"], "read", 16), (256, there["a"], "read", 4), (256, there["sum"], "write", 16)],
        "c inputs": [(256, there["sum"], "read", 16), (256, there["sum"], "write", 8)],
    }
    for name, parts in sums.items():
        assert (rows[name].energy_pj, rows[name].cycles) == pytest.approx(moved(parts), rel=1e-12)
    # layers alone the same, all of it in DRAM
    parts = [[(words, 0, action, bits) for words, _, action, bits in some] for some in sums.values()]
    outside = list(map(moved, parts))
    base = found.base
    alone = base.energy_pj + sum(pj for pj, _ in outside), base.cycles + sum(cycles for _, cycles in outside)
    assert math.prod(found.layer_by_layer) <= math.prod(alone) * (1 + 1e-12)
    assert base.between == (3, pytest.approx(sum(pj for pj, _ in outside)), sum(cycles for _, cycles in outside))
    assert found.bound is not None and found.bound <= found.edp


def test_layers_run_interleaved_where_their_words_are_as_wide_and_what_lives_counts_in_bits() -> None:
    def pair(second: int) -> Any:
        conv = {"type": "conv2d", "k": 8, "c": 8, "p": 24, "q": 24, "word_bits": 8}
        layers = (
            {"name": "a", "c": 2},
            {"name": "b", "word_bits": second, "k": 2},
            {"name": "c", "k": 2, "c": 2, "word_bits": 16},
        )
        return {"name": "pair", "input": [2, 24, 24], "layers": [{**conv, **one} for one in layers]}

    small = {**CHIP, "levels": [CHIP["levels"][0], {**CHIP["levels"][1], "capacity": "3 KB"}]}
    eight, sixteen = run(pair(8), small), run(pair(16), small)
    (slid,) = (row for row in eight.rows if row.layer == "a")
    lines = int(slid.slides.split()[0])
    assert slid.slides.endswith("of 24 rows") and slid.kept_words["Z"] == lines * 24 * 8
    assert slid.used_words >= lines * 24 * 8 / 2  # in words of 16 bits
    assert all(not row.slides for row in sixteen.rows if row.layer == "a")


def test_a_level_of_so_many_words_holds_so_many_of_each_width() -> None:
    words = {**CHIP, "levels": [CHIP["levels"][0], {**CHIP["levels"][1], "capacity": "700 words"}]}
    found = run(network(linear("a", 4), linear("b"), linear("c")), words)
    assert found.capacity == 700 and found.rows[0].live_words == 256


@pytest.mark.parametrize(("bits", "into"), [((8, 8), {"sum": "b"}), ((4, 8), {"sum": "b"}), ((8, 4), {})])
def test_what_becomes_wider_is_not_made_where_it_was_written(bits: tuple[int, int], into: dict[str, str]) -> None:
    given = network(*map(linear, "ab", bits), {**SUM, "inputs": ["b", "a"]})
    plan = plan_of(load(), given, CHIP, Path("unused"), 60, 1, None, "paper", "edp", None)
    assert FusedPlan.of(plan, "fused").fused_into == into


def test_a_level_without_a_capacity_holds_words_of_all_widths() -> None:
    free = {**CHIP, "levels": [CHIP["levels"][0], {**CHIP["levels"][1], "capacity": "unlimited"}]}
    found = run(network(linear("a", 4), linear("b"), linear("c", 8)), free)
    assert found.capacity == math.inf and found.stays == (2, 2)
    assert all(math.isfinite(row.used_words) for row in found.rows)


def test_the_widest_layer_stands_for_the_networks_of_a_chip(tmp_path: Path) -> None:
    registry, files = load(), []
    for name, bits in (("narrow", (4, 8)), ("wide", (8, 16))):
        given = {"kind": "network", **network(*map(linear, "ab", bits)), "name": name}
        (tmp_path / f"{name}.toml").write_text(toml_text.dumps(given))
        files.append(str(tmp_path / f"{name}.toml"))
    for some in (tuple(files), tuple(files[::-1])):
        found = with_widest(some, (), lambda node: load_problem(node.piece, CHIP, registry=registry))
        assert found.chip.total_area_mm2 == chip_of(16).total_area_mm2


def test_a_product_of_wide_sums_is_rewritten_for_the_next_layers_narrow_words() -> None:
    """32-bit sums of `a` become 8-bit inputs of `b`: 256 words are read in 32 bits and written in 8."""
    bits = {"P": 8, "Q": 8, "Z": 32}
    found = run(network(linear("a", bits), linear("b", {"P": 8, "Q": 8})), fuse=True)
    (step,) = [row for row in found.rows if row.layer == "b inputs"]
    place = 1 if step.place == "Buffer" else 0
    chip = load_problem({"type": "linear", "m": 2, "k": 2, "n": 2}, CHIP).chip
    word = int(chip.word_bits[place])
    pj = 256 * (32 * float(chip.energy_pj["read"][place]) + 8 * float(chip.energy_pj["write"][place])) / word
    assert step.energy_pj == pytest.approx(pj)
    alike = run(network(linear("a", {"Z": 8}), linear("b", {"P": 8})))
    assert not any(row.layer.endswith("inputs") for row in alike.rows)


def test_weights_are_pinned_in_their_own_bits() -> None:
    """16 x 16 weights of 4 bits take a quarter of the room of words of 16 bits."""
    held = []
    for bits in (None, {"Q": 4}):
        found = run(network(linear("a", bits), linear("b", bits)))
        assert found.steady is not None
        held.append(found.steady.pinned_room)
    assert held[1] == held[0] / 4
