"""The drawing of a design: first the paper's own (Fig. 13), then what is special about others."""

import tomllib
from types import SimpleNamespace

import numpy as np
import pytest
from sparsemap_plugins.reports.loop_nest import loop_nest as marked_loop_nest
from sparsemap_plugins.reports.wording import einsum_text, mechanism_text, symbols

from sparsemap import Detail, Filter, load_problem, search
from sparsemap.pieces.contracts import plain
from sparsemap.pieces.loading import load
from sparsemap.problem import design_file
from sparsemap.problem.designs import Design, Designs


def loop_nest(design, detail, width=80):
    return plain(marked_loop_nest(design, detail, width))


FIG_13 = """
[workload]
name = "fig13"
einsum = "Z[m, n] = P[m, k] * Q[k, n]"
dims = { m = 4, k = 8, n = 4 }
density = { P = 0.5, Q = 0.5 }
[hardware]
name = "three-levels"
levels = [
  { name = "DRAM", class = "dram", bandwidth = "16 GB/s" },
  { name = "GLB", class = "sram", capacity = "192 B", fanout = 16, gate_skip = true },
  { name = "PEB", class = "sram", capacity = "64 B", fanout = 4, gate_skip = true },
]
compute = { name = "MAC", gate_skip = true }
[mapping]
L2_T = ["m=4"]
L2_S = ["n=4"]
L3_T = ["k=2"]
L3_S = ["k=4"]
[formats]
P = ["uncompressed", "uncompressed", "bitmask", "bitmask", "coordinate"]
Q = ["uncompressed", "uncompressed", "uncompressed", "uncompressed", "uncompressed"]
Z = ["uncompressed", "uncompressed", "uncompressed", "uncompressed", "uncompressed"]
[gate_skip]
GLB = "skip-q-by-p"
PEB = "none"
MAC = "gate-both"
"""


@pytest.fixture(scope="module")
def registry():
    return load()


@pytest.fixture(scope="module")
def fig_13(registry):
    design = design_file.structure(tomllib.loads(FIG_13), registry)
    return design, detail_of(design)


def detail_of(design):
    return design.problem.evaluator.evaluate_designs(design.batch, detail=True).detail


def test_the_design_of_fig_13_is_drawn_as_in_the_paper(fig_13):
    design, detail = fig_13
    assert loop_nest(design, detail, width=60).splitlines()[3:] == [
        "    par-for n3 in [0, 4)                         4 of 16 PEB",
        "PEB ── 36.8 of 64 B, 57 % ─────────────── no skip or gate ──",
        "      for k4 in [0, 2)",
        "        par-for k5 in [0, 4)                      4 of 4 MAC",
        "MAC ──────────────────────────────────────── Gate P <-> Q ──",
        "          Z[m, n] += P[m, k] * Q[k, n]",
        "",
        "formats, outer to inner",
        f"  P  B(m2) B(k4) {symbol(design, 'coordinate')}(k5)",
        "  Q  uncompressed",
        "  Z  uncompressed",
        f"     B = bitmask, {symbol(design, 'coordinate')} = coordinate",
    ]


def test_headings_say_what_a_level_holds_and_what_it_skips(fig_13):
    design, detail = fig_13
    dram, glb, loop = loop_nest(design, detail, width=60).splitlines()[:3]
    assert dram == "DRAM " + "─" * 55
    assert glb.startswith("GLB ── ") and "of 192 B" in glb and glb.endswith("─ Skip Q <- P ──") and len(glb) == 60
    assert loop == "  for m2 in [0, 4)"


def symbol(design, name):
    return symbols(design.problem.candidates("format"))[name]


def test_without_detail_a_level_has_its_capacity_only(fig_13):
    design, _ = fig_13
    lines = loop_nest(design, Detail(), width=60).splitlines()
    assert lines[1].startswith("GLB ── 192 B ─")


def test_a_design_without_mapping_formats_and_mechanisms_is_drawn_as_far_as_it_goes(fig_13):
    design, _ = fig_13
    bare = Design(design.problem, Designs({"bounds": design.batch.columns["bounds"]}))
    assert loop_nest(bare, Detail(), width=60).splitlines() == [
        "DRAM " + "─" * 55,
        "GLB ── 192 B " + "─" * 47,
        "PEB ── 64 B " + "─" * 48,
        "MAC " + "─" * 56,
        "  Z[m, n] += P[m, k] * Q[k, n]",
    ]


def test_loops_of_bound_one_are_left_out(fig_13):
    design, detail = fig_13
    assert "[0, 1)" not in loop_nest(design, detail)


@pytest.mark.parametrize(
    ("workload", "hardware"),
    [("mm1", "clustered"), ("conv1", "scnn-like"), ("attention-scores", "cloud"), ("depthwise-conv-32x16x16", "edge")],
)
@pytest.mark.parametrize("width", [50, 80, 120])
def test_any_workload_and_hardware_fit_the_width(registry, workload, hardware, width):
    problem = load_problem(workload, hardware, registry=registry)
    rng = np.random.default_rng(0)
    designs = problem.space.decode(problem.space.sample(20, rng))
    for row in range(20):
        design = Design(problem, designs.take([row]))
        lines = loop_nest(design, detail_of(design), width).splitlines()
        loops = [line for line in lines if " in [0, " in line]
        assert len(loops) == int((designs.bounds[row] > 1).sum())
        assert max(map(len, lines)) <= max(width, 80)


# ------------------------------------------------------------------------------------------------------------- wording


def named(*names, **more):
    return [SimpleNamespace(name=name, type_name="", **more) for name in names]


def test_short_names_are_initials():
    assert symbols(named("bitmask", "run-length", "coordinate")) == {
        "bitmask": "B",
        "run-length": "RL",
        "coordinate": "C",
    }


def test_short_names_grow_where_two_agree():
    assert symbols(named("block", "bitmask", "bitmask-of-8")) == {"block": "B", "bitmask": "Bi", "bitmask-of-8": "BO8"}


def test_a_format_may_bring_its_own_symbol():
    assert symbols(named("coordinate", symbol="CP")) == {"coordinate": "CP"}


def test_the_same_format_has_the_same_short_name():
    assert symbols(named("offset-pair", "offset-pair")) == {"offset-pair": "OP"}


@pytest.mark.parametrize(
    ("filters", "text"),
    [
        ([], ""),
        ([Filter("Q", ("P",), "skip")], "Skip K <- Q"),
        ([Filter("P", ("Q",), "gate"), Filter("Q", ("P",), "gate")], "Gate Q <-> K"),
        ([Filter("Z", ("P", "Q"), "skip")], "Skip S <- Q+K"),
        ([Filter("P", ("Q",), "gate"), Filter("Q", ("P",), "skip")], "Gate Q <- K, Skip K <- Q"),
    ],
)
def test_mechanisms_are_put_as_in_fig_13_with_the_names_of_the_workload(filters, text, registry):
    """The role Q is the second operand, here K, though the first one is called Q."""
    workload = {"name": "scores", "einsum": "S[i, j] = Q[i, d] * K[j, d]", "dims": {"i": 4, "j": 4, "d": 4}}
    problem = load_problem({**workload, "density": {"Q": 0.5, "K": 0.5}}, "mobile", registry=registry)
    mechanism = SimpleNamespace(name="mine", filters=lambda place: filters)
    assert mechanism_text(mechanism, problem.places[0], problem) == text


def test_einsum_with_sliding_windows(registry):
    problem = load_problem("conv1", "edge", registry=registry)
    assert einsum_text(problem.tensors) == "Z[k, p, q] += P[c, p + r, q + s] * Q[k, c, r, s]"


def test_a_level_says_of_what_it_has_all() -> None:
    workload = {"type": "matmul", "m": 8, "k": 8, "n": 8, "resides": {"Z": "GLB"}}
    problem = load_problem(workload, "mobile")
    result = search(problem, 100)
    assert ", all of Z " in result.report("loop-nest")


def test_a_format_that_is_not_built_in_is_told_by_tensor_and_level():
    mine, none = ({"extends": name, "name": f"own-{name}"} for name in ("bitmask", "run-length"))
    space = {"extends": "paper", "formats": {"candidates": ["uncompressed", mine]}}
    result = search(load_problem("mm1", "edge-16gbps", space=space), budget=60)
    design = result.found.design
    where = design.chosen["format"]["own-bitmask"]
    assert f"not built in\n  own-bitmask   {', '.join(where)}\n" in result.report("loop-nest")
    for t, tensor in enumerate(design.problem.tensors):
        ranks = [rank for rank in design.ranks(t) if rank.format.name == "own-bitmask"]
        levels = {f"{tensor.name} at {design.problem.levels[rank.loop.storage].name}" for rank in ranks}
        assert levels == {place for place in where if place.startswith(tensor.name)}
    space["formats"]["candidates"] = ["uncompressed", none]
    dense = {"type": "matmul", "m": 8, "k": 8, "n": 8}
    text = search(load_problem(dense, "edge-16gbps", space=space), budget=60).report("loop-nest")
    assert "not built in\n  own-run-length   used nowhere\n" in text
    assert "not built in" not in search(load_problem("sddmm", "mobile"), budget=60).report("loop-nest")


def test_a_mechanism_is_named_where_its_rules_do_not_say_all():
    problem = load_problem("mm1", "edge", space={"extends": "full", "gate-skip": {"candidates": ["skip-all-16-ahead"]}})
    result = search(problem, budget=60)
    text = result.report("loop-nest")
    assert "mechanisms\n  " in text and "MAC skip-all-16-ahead" in text
    plain = load_problem("mm1", "edge", space={"extends": "full", "gate-skip": {"candidates": ["skip-q-by-p"]}})
    assert "mechanisms" not in search(plain, budget=60).report("loop-nest")
