"""Certificates of proofs are confirmed by arithmetic of its own, and refuted where they claim too much."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from sparsemap_plugins.verify.certificate import _all, best_of_class, check
from sparsemap_plugins.verify.unavoidable import Unavoidable

import sparsemap
from sparsemap.cli.main import cli
from sparsemap.pieces.contracts.hardware import LEVEL_ACTIONS
from sparsemap.pieces.loading import load
from sparsemap.searching.folder import search_into

REGISTRY = load()
HARDWARE = {
    "technology": "12nm-recommended",
    "levels": [
        {"name": "DRAM", "class": "dram", "bandwidth": "0.5 words/cycle"},
        {"name": "GLB", "class": "sram", "capacity": "32 B", "fanout": 2, "gate_skip": True, "double_buffered": True},
    ],
    "compute": {"name": "MAC", "gate_skip": True},
}
SPACE = {"extends": "small", "gate-skip": {"candidates": ["none", "skip-both"]}}
WINDOWS = {
    "einsum": "Z[k, p, q] = P[c, p + r, q + s] * Q[k, c, r, s]",
    "dims": {"k": 16, "c": 4, "p": 8, "q": 8, "r": 3, "s": 3},
    "density": {"P": 0.34, "Q": 0.146},
}
TINY = {"einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": {"m": 2, "k": 2, "n": 2}, "density": {"P": 0.5, "Q": 0.5}}


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    """Of a proof by bounds, and of one by trying designs."""
    found = {"bounds": tmp_path_factory.mktemp("bounds"), "tried": tmp_path_factory.mktemp("tried")}
    search = {"type": "prove", "within": 1.04, "searcher": "sparsemap"}
    search_into(found["bounds"], sparsemap.load_problem("mm1", "edge", registry=REGISTRY), 3000, 0, search)
    tiny = sparsemap.load_problem(TINY, HARDWARE, SPACE, cost_model="physical", registry=REGISTRY)
    search_into(found["tried"], tiny, 20_000, 0, search | {"within": 1.0})
    return found


def changed(folder: Path, tmp_path: Path, change: Any) -> Path:
    """A copy of a certificate with `change` applied to its table, beside its design."""
    table = json.loads((folder / "certificate.json").read_text())
    change(table)
    (tmp_path / "design.toml").write_text((folder / "design.toml").read_text())
    (tmp_path / "certificate.json").write_text(json.dumps(table))
    return tmp_path / "certificate.json"


def test_it_says_how_far_the_check_has_come(folders) -> None:
    told = dict[str, int]()

    def along(steps, label):
        for step in steps:
            told[label] = told.get(label, 0) + 1
            yield step

    found = check(folders["bounds"] / "certificate.json", REGISTRY, along)
    assert told["classes"] == found.classes and sum(told.values()) >= found.classes


@pytest.mark.parametrize("kind", ["bounds", "tried"])
def test_a_proof_is_confirmed(folders, kind) -> None:
    found = check(folders[kind] / "certificate.json", REGISTRY)
    assert found.correct and found.confirmed <= found.within
    assert found.by["left"] == 0 and (found.by["tried"] > 0) == (kind == "tried")
    assert "confirmed within" in found.text()


def test_a_class_that_was_not_tried_is_not_ruled_out(folders, tmp_path) -> None:
    def claim(table: dict[str, Any]) -> None:
        table["classes"]["by"] = ["bound"] * len(table["classes"]["by"])

    found = check(changed(folders["tried"], tmp_path, claim), REGISTRY)
    assert not found.correct and found.open and "not confirmed" in found.text()


def test_a_class_that_is_left_out_is_counted_all_the_same(folders, tmp_path) -> None:
    def drop(table: dict[str, Any]) -> None:
        rows = [i for i, by in enumerate(table["classes"]["by"]) if by != "tried"]
        table["classes"] = {name: [column[i] for i in rows] for name, column in table["classes"].items()}

    assert check(changed(folders["tried"], tmp_path, drop), REGISTRY).open


def test_a_score_that_the_design_does_not_have_is_refuted(folders, tmp_path) -> None:
    found = check(
        changed(folders["bounds"], tmp_path, lambda table: table.update(score=table["score"] * 0.99)), REGISTRY
    )
    assert not found.correct and "the design scores" in found.wrong[0] and "refuted" in found.text()


def test_a_factor_that_the_bounds_do_not_reach_is_not_confirmed(folders, tmp_path) -> None:
    found = check(changed(folders["bounds"], tmp_path, lambda table: table.update(within=1.0001)), REGISTRY)
    assert not found.correct and found.open and found.confirmed > 1.0001


def test_what_is_no_certificate_is_told(folders, tmp_path) -> None:
    for key, value in {"classes": None, "score": "low", "within": True, "problem": {}}.items():
        path = changed(folders["bounds"], tmp_path, lambda table, k=key, v=value: table.update({k: v}))
        with pytest.raises(sparsemap.SpecError, match=key):
            check(path, REGISTRY)
    done = CliRunner().invoke(cli, ["verify", str(path)])
    assert done.exit_code == 2 and not isinstance(done.exception, KeyError)
    (tmp_path / "certificate.json").write_text("[]")
    with pytest.raises(sparsemap.SpecError, match="sparsemap certificate"):
        check(tmp_path / "certificate.json", REGISTRY)


GATED = {
    "name": "gated",
    "levels": [
        {"name": "DRAM", "class": "dram"},
        {"name": "GLB", "class": "sram", "capacity": "4 KB", "fanout": 4},
        {"name": "PE", "class": "regfile", "capacity": "512 B", "fanout": 2},
    ],
    "compute": {"name": "MAC"},
}
"""No unit skips: every compute takes its cycle."""


@pytest.mark.parametrize(
    ("workload", "hardware", "cost_model"),
    [
        ("mm3", "edge", "physical"),
        ("mm11", "mobile", "physical"),
        (WINDOWS, "cloud", "physical"),
        ("mm1", "edge", "timeloop"),
        ("mm1", GATED, "physical"),
    ],
    ids=["edge", "mobile", "cloud", "timeloop", "gated"],
)
def test_no_design_costs_less_than_what_the_check_says_it_cannot_avoid(workload, hardware, cost_model) -> None:
    problem = sparsemap.load_problem(workload, hardware, cost_model=cost_model, registry=REGISTRY)
    known, rng, classes = Unavoidable.of(problem), np.random.default_rng(0), problem.classes
    assert classes is not None
    drawn = classes.draw(problem.space, rng.choice(classes.ranking[: len(classes.ranking) // 4 + 1], 150), rng)
    genomes = np.concatenate([drawn, problem.space.repair(problem.space.guess(150, rng), rng)])
    designs = problem.space.decode(genomes)
    evaluation, labels, of = problem.evaluator.evaluate(genomes), classes.known.labels, classes.of(designs)

    def times_least(row: int, closely: bool) -> float:
        tile = [int(labels[dim][of[row]]) for dim in problem.dims]
        pj, cycles = known.costs(tile, str(labels["innermost"][of[row]]), closely)
        assert known.fits(tile) and (row % 20 or known.holds(tile))
        assert evaluation.energy_pj[row] >= pj and evaluation.cycles[row] >= cycles
        return evaluation.cycles[row] / cycles

    over = {row: times_least(row, closely=False) for row in np.flatnonzero(evaluation.valid)}
    times_least(min(over, key=lambda row: over[row]), closely=True)
    assert evaluation.valid.sum() > 50
    assert hardware is not GATED or min(over.values()) < 1.05


@pytest.mark.parametrize("part", [{}, {"write": 1.0}])
def test_all_that_costs_being_what_inner_tiles_ask_for_the_best_of_a_class_hardly_costs_more(part) -> None:
    """All designs of all classes, in a space where nothing is compressed."""
    free, levels = dict.fromkeys(LEVEL_ACTIONS, 0.0), [{"name": "DRAM", "class": "dram"}]
    levels.append({"name": "GLB", "class": "sram", "capacity": "64 B", "fanout": 4, "energy": free | {"read": 1.0}})
    levels.append({"name": "PE", "class": "regfile", "capacity": "24 B", "fanout": 2, "energy": free | part})
    levels[0]["energy"] = free | {"metadata_read": 1.0, "metadata_write": 1.0}
    compute = {"energy": dict.fromkeys(("compute", "gated", "skipped"), 0.0)}
    hardware = {"technology": "12nm-recommended", "levels": levels, "compute": compute}
    space = {"extends": "small", "formats": {"candidates": ["uncompressed"]}, "gate-skip": {"candidates": ["none"]}}
    charges = [charge.type_name for charge in REGISTRY.get("cost-model", "physical").charges]
    model = {"type": "analytic", "charges": [name for name in charges if name not in ("leakage", "network")]}
    problem = sparsemap.load_problem(
        TINY | {"dims": {"m": 4, "k": 4, "n": 2}, "density": {"P": 1.0, "Q": 1.0}}, hardware, space, "energy", model,
        registry=REGISTRY,
    )  # fmt: skip
    known, over = Unavoidable.of(problem), list[float]()
    for *tile, innermost in _all(problem):
        if known.fits(tile):
            least, _ = known.costs(tile, innermost, closely=True)
            over.append(best_of_class(problem, tile, innermost) / least)
    assert len(over) > 30 and 1.0 <= min(over) < 1.2
