"""A chip search gives the same from process to process, however Python orders sets of text there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sparsemap_plugins.chips.worth import _note_units

from sparsemap import load_problem
from sparsemap.problem.designs import Design

HARDWARE = """
kind = "hardware"
name = "chips"
extends = "mobile"
levels.GLB.capacity = { low = "1 MB", high = "8 MB", factor = 2 }
levels.PEB.fanout = { choices = [16, 32, 64] }
"""
NETWORK = """
kind = "network"
name = "block"
input = [64, 28, 28]
layers = [
  { name = "in", type = "conv2d", k = 64, c = 64, p = 28, q = 28, r = 3, s = 3, padding = 1 },
  { name = "wide", type = "conv2d", k = 256, c = 64, p = 28, q = 28 },
  { name = "narrow", type = "conv2d", k = 64, c = 256, p = 28, q = 28 },
]
"""


def test_formats_that_one_design_uses_are_in_the_order_of_its_ranks():
    problem = load_problem("mm3", "cloud")
    genomes = problem.space.sample(100, np.random.default_rng(0))
    orders = set()
    for genome in genomes:
        design = Design.of(problem, problem.space.decode(genome[None, :]))
        used: dict = {"formats": {}, "mechanisms": {}}
        _note_units(design, 1.0, used)
        for role, tensor in problem.roles.items():
            ranks = [rank.format.name for rank in design.ranks(tensor) if rank.format.compressed]
            assert list(used["formats"].get(role, ())) == list(dict.fromkeys(ranks))
            orders.add(tuple(dict.fromkeys(ranks)))
    assert {("run-length", "coordinate"), ("coordinate", "run-length")} <= orders


SEARCH = """
from sparsemap_plugins.chips import search
from sparsemap.cli.main import main
search.ChipSearch.chosen = lambda *_: exit()  # the chips tried are compared alone
main()
"""


@pytest.mark.slow
def test_a_chip_search_does_not_depend_on_how_python_orders_sets(tmp_path: Path):
    (tmp_path / "chips.toml").write_text(HARDWARE)
    (tmp_path / "block.toml").write_text(NETWORK)
    command = [sys.executable, "-c", SEARCH, "design", "block.toml", "chips.toml", "--quiet"]
    told = []
    for seed in ("0", "3"):
        given = [*command, "--budget", "1", "--layer-budget", "40", "--out", seed]
        subprocess.run(given, cwd=tmp_path, env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True)
        lines = [json.loads(line) for line in (tmp_path / seed / "chips.jsonl").read_text().splitlines()]
        reference = json.loads((tmp_path / seed / "reference" / "reference.json").read_text())
        told.append((lines, reference))
    assert told[0] == told[1]
