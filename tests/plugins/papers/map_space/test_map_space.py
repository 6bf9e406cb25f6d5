"""The map-space study: its commands with tiny budgets, the paper's numbers, and how ratios are counted."""

import csv
import math

import pytest
from click.testing import CliRunner
from sparsemap_plugins.papers.commands import ROOMS
from sparsemap_plugins.papers.map_space import densities, fig_4, mappers, robust, surrogates, tables

from sparsemap.cli.main import cli
from sparsemap.spec import toml_text

SMALL = {
    "mse-fig-3": ("--workload", "resnet-conv4", "--scale", "0.002"),
    "mse-fig-4": ("--scale", "0.01"),
    "mse-fig-5": ("--workload", "resnet-conv4", "--seeds", "1", "--scale", "0.02"),
    "mse-fig-6": ("--workload", "resnet-conv4", "--seeds", "1", "--scale", "0.02"),
    "mse-fig-7": ("--scale", "0.02"),
    "mse-fig-9": ("--workload", "vgg16", "--seeds", "1", "--scale", "0.004"),
    "mse-fig-10": ("--workload", "vgg16", "--scale", "0.004"),
    "mse-fig-11": ("--workload", "vgg16", "--seeds", "1", "--scale", "0.004"),
    "mse-robust": ("--workload", "mm3", "--seeds", "1", "--scale", "0.03"),
    "mse-table-2": ("--workload", "resnet-conv4", "--seeds", "1", "--scale", "0.02"),
    "mse-table-3": ("--workload", "bert-large-attn", "--seeds", "1", "--scale", "0.01"),
    "mse-table-4": ("--workload", "resnet-conv3", "--seeds", "1", "--scale", "0.005"),
}


def test_every_command_is_tried():
    assert SMALL.keys() == ROOMS["map_space"]["pages"].keys()


EINSUM = "Z[b, k, p, q] = P[b, c, p + r, q + s] * Q[k, c, r, s]"


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """Figures of one kind find each other's searches there, of layers with few tiles and a network with few layers."""
    folder = tmp_path_factory.mktemp("work")
    for name in ("resnet-conv3", "resnet-conv4"):
        layer = {"kind": "workload", "override": True, "name": name, "type": "einsum", "density": {"P": 1.0, "Q": 1.0}}
        layer |= {"einsum": EINSUM, "dims": {"b": 2, "k": 16, "c": 8, "p": 14, "q": 14, "r": 3, "s": 3}}
        toml_text.write(folder / "small" / f"{name}.toml", layer)
    conv, pool = {"type": "conv2d", "r": 3, "s": 3, "padding": 1}, {"type": "max-pool", "r": 2, "s": 2, "stride": 2}
    layers = [
        {"name": "features.17", **conv, "k": 512, "c": 256, "p": 28, "q": 28},
        {"name": "features.23", **pool},
        {"name": "features.24", **conv, "k": 512, "c": 512, "p": 14, "q": 14},
        {"name": "features.30", **pool},
        {"name": "classifier.6", "type": "linear", "k": 25088, "n": 1000},
    ]
    network = {"kind": "network", "override": True, "name": "vgg16", "input": [256, 28, 28], "layers": layers}
    toml_text.write(folder / "small" / "vgg16.toml", network)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARSEMAP_PLUGIN_DIRS", str(folder / "small"))
        yield folder


SLOW = ("mse-fig-3", "mse-fig-9", "mse-fig-10", "mse-fig-11")


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in SMALL])
def test_a_command_writes_a_table(name, tmp_path, work, monkeypatch):
    monkeypatch.setattr(fig_4, "BACKDROP", 4)
    monkeypatch.setattr(tables, "ROUNDS", 2)
    monkeypatch.setattr(surrogates, "LAYERS", 2)
    args = ["paper", name, "--out", str(tmp_path / "out"), "--work", str(work), *SMALL[name]]
    assert (done := CliRunner().invoke(cli, args)).exit_code == 0, done.output
    text = (tmp_path / "out" / f"{name}.md").read_text("utf-8")
    assert text.startswith("# ") and f"sparsemap paper {name}" in text
    with (tmp_path / "out" / f"{name}.csv").open() as file:
        rows = list(csv.DictReader(file))
    if name == "mse-table-2":
        assert all(math.isfinite(float(row[f"searched_{d:g}"])) for row in rows for d in tables.DENSITIES)
        return
    if name == "mse-table-3":
        assert all(math.isfinite(float(row[order])) for row in rows for order in tables.ORDERS)
        return
    if name == "mse-fig-11":
        assert len(rows) == 2 * 3 and all(float(row["generations_cold"]) > 0 for row in rows)
        return
    if "fig" in name:
        assert all(math.isfinite(float(row["edp"])) for row in rows)
        assert all(f"{one} over {two}" in text for one, two in ((x["one"], x["two"]) for x in mappers.claims_of(name)))
        return
    assert "aware" in text
    assert {float(row["density"]) for row in rows} == set(densities.TESTED)
    assert all(bool(row["edp"]) != bool(row["reasons"]) for row in rows)  # a number, or why there is none


def test_the_paper_keeps_99_7_percent():
    found = densities.printed("table-mse-4")
    columns = {
        workload: dict(zip(tables.STRATEGIES, zip(*rows, strict=True), strict=True)) for workload, rows in found.items()
    }
    cells = tables.cells_of(columns)
    matched = cells.where(own=True)["paper over"].geometric
    assert matched == pytest.approx(0.9971, abs=5e-5)  # what its text says, from its table
    means = {strategy: same["paper over"].geometric for strategy, same in cells.by("strategy").items()}
    assert [round(ratio, 2) for ratio in means.values()] == [1, 2.28, 1.17, 1.04]


def designs_of(*edps):
    rows = []
    for strategy, edp in zip(("aware", "static 1.0"), edps, strict=True):
        whole = (*edp, *[1.0] * (len(densities.TESTED) - len(edp)))
        for density, x in zip(densities.TESTED, whole, strict=True):
            about = {"workload": "w", "hardware": "h", "seed": 0, "strategy": strategy, "density": density, "edp": x}
            rows.append(about | {"reasons": "capacity:GLB" if math.isinf(x) else ""})
    return densities.over_best(rows).by("strategy").values()


def test_ratios_are_over_the_best_and_what_does_not_fit_is_said():
    aware, static = designs_of((2.0, 3.0), (math.inf, 1.5))
    assert aware.over_best[:3] == [1.0, 2.0, 1.0]
    assert static.over_best[:2] == [math.inf, 1.0]
    assert static.over_best.finite.geometric == 1.0
    assert robust.shown(aware) == "1.07x"  # the eleventh root of 2
    assert robust.shown(static) == "invalid at 1 (1.00x)"
    assert robust.why(static) == "seed 0 at 1 (capacity:GLB)"
