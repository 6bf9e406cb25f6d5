"""One chip for several networks: totals by runs, deadlines, and the network that loses most."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from sparsemap_plugins.chips.judge import MOVED, moved_of
from sparsemap_plugins.chips.layers import LEAST
from sparsemap_plugins.chips.model import whole
from sparsemap_plugins.chips.search import DesignTask, designed, outer_problem
from sparsemap_plugins.chips.starts import weights_of
from tiny import TINY

from sparsemap import SearchError, SpecError

DDR3 = 'levels.DRAM.standard = "ddr3"  # without an interface that would take nearly all of the area\n'
LAYERS = {
    "network": '{ name = "a", workload = "small-sparse", repeat = 3 }, { name = "b", workload = "small-matmul" }',
    "second": '{ name = "b", workload = "small-matmul" }',
}
LITTLE = '{ name = "c", type = "einsum", einsum = "Z[m] = P[m, k] * Q[k]", dims = { m = 1, k = 6 } }'
"""A layer that has no use for more than a few units."""


@pytest.fixture
def unlike(pair: DesignTask) -> DesignTask:
    """A larger buffer gains 9 % on one network and loses 0.04 % on the other, which has no use for it."""
    networks = pair.networks[0], str(Path(pair.networks[0]).with_name("little.toml"))
    objective = "edp_js * area_mm2"
    return attrs.evolve(pair, networks=networks, share="sizes", objective=objective, budget=8, layer_budget=20)


@pytest.fixture
def pair(tmp_path: Path) -> DesignTask:
    """Two networks, the second with a layer of the first."""
    (tmp_path / "chip.toml").write_text(TINY + DDR3)
    for name, layers in LAYERS.items():
        (tmp_path / f"{name}.toml").write_text(f'kind = "network"\nname = "{name}"\nlayers = [{layers}]\n')
    (tmp_path / "little.toml").write_text(f'kind = "network"\nname = "little"\nlayers = [{LITTLE}]\n')
    return DesignTask(
        networks=tuple(str(tmp_path / f"{name}.toml") for name in LAYERS),
        hardware=str(tmp_path / "chip.toml"),
        out=tmp_path / "out",
        space="small",
        fuse=False,
        budget=3,
        layer_budget=10,
    )


def test_totals_count_the_runs_of_each_network(pair):
    """One run each by default; the layers, the totals and the networks add up in any case."""
    found = {}
    for name, runs in (("one", {}), ("same", {"network": 1, "second": 1}), ("many", {"second": 10})):
        found[name] = designed(attrs.evolve(pair, runs=runs, out=pair.out / name))
        final, rows = found[name].final, found[name].by_network()
        for key in ("energy_pj", "cycles"):
            assert final[key] == pytest.approx(math.fsum(row["runs"] * row[key] for row in rows), rel=1e-12)
            assert final[key] == pytest.approx(math.fsum(row[key] for row in final["layers"]), rel=1e-12)
    assert found["one"].final == found["same"].final
    assert [row["times"] for row in found["one"].final["layers"]] == [3, 2]
    assert [row["times"] for row in found["many"].final["layers"]] == [3, 11]
    table = found["many"].networks_table()
    assert [row[:2] for row in table[1:]] == [["network", "1"], ["second", "10"]]
    with pytest.raises(SearchError, match="runs: no network 'secnd'; did you mean 'second'"):
        designed(attrs.evolve(pair, runs={"secnd": 2}))
    with pytest.raises(SearchError, match="0 runs of 'second', expected a number above 0"):
        designed(attrs.evolve(pair, runs={"second": 0}))


def chip_with(**networks: tuple[float, float]) -> dict[str, Any]:
    """A row of a chip: energy and cycles of one run of each network at 1 GHz, and their sums."""
    both = {"": tuple(map(sum, zip(*networks.values(), strict=True)))} | {f"{n}.": x for n, x in networks.items()}
    found = {"area_mm2": 2.0}
    for name, (energy_pj, cycles) in both.items():
        found |= {f"{name}{cost}": x for cost, x in zip(MOVED, (energy_pj, cycles, 1e-9 * cycles), strict=True)}
    return found


def test_the_worst_network_has_the_largest_ratio_to_the_given_hardware(pair):
    """So a network of a thousandth of the cost counts as much, and runs count not at all."""
    given, better = chip_with(network=(1e6, 1e6), second=(1e3, 1e3)), chip_with(network=(5e5, 1e6), second=(1.2e3, 1e3))
    for objective, runs, values in (
        ("edp_js", {}, [[1.2]]), ("edp_js", {"second": 100}, [[1.2]]), ("cycles", {}, [[1.0]]),
        ("pareto:edp_js,area_mm2", {}, [[1.2, 1.0]]), ("edp_js * area_mm2", {}, [[1.2]]),
    ):  # fmt: skip
        problem = outer_problem(attrs.evolve(pair, judge="worst", objective=objective, runs=runs))
        problem.cost_model.tried(problem).given = given
        assert problem.cost_model.values(problem, [better]) == pytest.approx(np.array(values))
    plain = outer_problem(pair)
    assert plain.cost_model.values(plain, [better])[0, 0] < plain.cost_model.values(plain, [given])[0, 0]


def test_a_search_by_the_worst_network_follows_it_from_the_batch_to_the_result(unlike):
    tasks = [attrs.evolve(unlike, judge=judge, out=unlike.out / judge) for judge in ("sum", "worst")]
    (total, worst), judged = map(designed, tasks), tasks[1]
    assert [one.searched["set"]["levels.Buffer.capacity"] for one in (total, worst)] == ["128 words", "32 words"]
    area = worst.final["area_mm2"] / worst.reference["area_mm2"]
    assert worst.losses == {row["network"]: pytest.approx(area * row["edp_over_free"]) for row in worst.by_network()}
    ended = [row["value"] for row in worst.tried if whole(row)]
    assert max(worst.losses.values()) <= min(ended) * (1 + 1e-12)
    assert "judged     by the network that loses most: little, 1.00x its edp_js * area_mm2 on" in "\n".join(
        worst.text()
    )
    file = judged.out / "design.json"
    before, found = file.read_text(), json.loads(file.read_text())
    assert (found["judge"], found["losses"]) == ("worst", worst.losses) and not total.losses
    assert (found["worst"], [row["worst"] for row in found["tried"]]) == (max(worst.losses.values()), ended)
    lines = (judged.out / "chips.jsonl").read_text().splitlines()
    (judged.out / "chips.jsonl").write_text("\n".join(lines[: len(lines) // 2]) + "\n")
    designed(attrs.evolve(judged, jobs=2))
    assert file.read_text() == before
    with pytest.raises(SearchError, match=r"chips.jsonl is of another search, .*; judge is "):
        designed(attrs.evolve(judged, judge="sum"))


def test_a_judge_that_is_none_and_an_objective_without_ratios_are_named(pair):
    with pytest.raises(SearchError, match="no judge 'wrost'; did you mean 'worst'"):
        outer_problem(attrs.evolve(pair, judge="wrost"))
    with pytest.raises(
        SearchError, match=r"--judge worst: objective '1 - edp' is -\S+ for network 'network' on the given"
    ):
        designed(attrs.evolve(pair, judge="worst", objective="1 - edp"))


def test_each_network_stands_beside_the_best_chip_tried_for_it(unlike):
    """Whatever chip it is, and with the designs that it had: the little network takes the chip given."""
    result = designed(unlike)
    aims = {
        name: lambda row, name=name: row[f"{name}.energy_pj"] * row[f"{name}.cycles"] * row["area_mm2"]
        for name in result.folders
    }
    for name, own in result.own.items():
        least = min(aims[name](row) for row in result.tried if whole(row))
        assert aims[name](result.final) / own["over_own"] <= least * (1 + 1e-12) and own["over_own"] >= 1
    own = result.own["little"]
    assert (own["set"]["levels.Buffer.capacity"], own["designs"]) == ("32 words", 80) and 1.0001 < own[
        "over_own"
    ] < 1.01
    assert own["over_own"] == pytest.approx(aims["little"](result.final) / aims["little"](result.platform))
    rows = json.loads((unlike.out / "design.json").read_text())["by_network"]
    assert [row["own"] for row in rows] == [*result.own.values()]
    table = result.networks_table()
    assert table[0][-3:] == ["chip/best tried", "best tried for it", "designs a layer"]
    assert [row[-2:] for row in table[1:]] == [["this chip", "80"], ["Buffer.capacity 32 words", "80"]]


def test_each_network_is_hoped_for_by_its_own_gains_and_a_small_one_has_its_designs(pair):
    judged = attrs.evolve(pair, judge="worst").inner.judged
    assert moved_of(judged) == [*MOVED, *(f"{name}.{cost}" for name in ("network", "second") for cost in MOVED)]
    rows = [{"energy_pj": x, "cycles": x, "share": share, "stays": {"": 1}} for x, share in ((9.0, 1.0), (0.1, 1.0))]
    assert [weight.layer for weight in weights_of({"layers": rows}, "worst")] == [1.0, 1.0]
    assert [weight.layer for weight in weights_of({"layers": rows}, "sum")] == [1.0, LEAST]


def test_a_deadline_of_one_network_holds_for_the_chip(pair):
    """Here a chip misses what the fastest one reaches; more designs may find none that does."""
    pair = attrs.evolve(pair, share="sizes", budget=6)
    free = designed(pair)
    clock_hz = free.final["cycles"] / free.final["seconds"]
    seconds = sorted(row["networks"]["second"]["cycles"] / clock_hz for row in free.tried)
    assert seconds[0] < seconds[-1]
    limit = f"second.seconds <= {1e9 * seconds[0]} ns"
    found = designed(attrs.evolve(pair, out=pair.out / "kept", constraints=(limit,)))
    assert limit in {row["error"] for row in found.tried if row["reason"] == "constraint"}
    assert not found.final["broken"] and found.by_network()[1]["seconds"] <= seconds[0] * (1 + 1e-9)
    with pytest.raises(SpecError, match=r"did you mean 'second.seconds'\?; may use .* of network, second"):
        designed(attrs.evolve(pair, constraints=("secnd.seconds <= 5 ms",)))
