"""Execution of a network's run: every design of the plan once, and totals beside the claims."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sparsemap import search_network
from sparsemap.cli.main import cli

CONV = {"type": "conv2d", "k": 8, "c": 8, "p": 6, "q": 6, "r": 3, "s": 3, "padding": 1, "density": {"P": 0.5}}
NETWORK = {
    "name": "pair", "input": [8, 6, 6],
    "layers": [
        {"name": "one", **CONV}, {"name": "two", **CONV, "repeat": 2},
        {"name": "sum", "type": "add", "inputs": ["two", "one"]},
    ],
}  # fmt: skip
CHIP = {
    "extends": "small", "name": "chip",
    "levels": [
        {"name": "DRAM", "class": "dram", "bandwidth": "2 GB/s"},
        {"name": "Buffer", "class": "sram", "capacity": "1600 words", "fanout": 8, "gate_skip": True},
    ],
}  # fmt: skip


@pytest.fixture(scope="module", params=[None, False], ids=["planned", "alone"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    folder = tmp_path_factory.mktemp("run")
    return folder, search_network(NETWORK, CHIP, 60, 1, space="paper", out=folder, fuse=request.param)


def verified(*args: object) -> Any:
    done = CliRunner().invoke(cli, ["verify", *map(str, args)])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_totals_of_a_run_stand_beside_executed_ones(run: tuple[Path, Any]) -> None:
    folder, result = run
    told = json.loads(verified(folder, "--json"))
    for cost in ("energy_pj", "cycles"):
        claimed = math.fsum(row["times"] * row[cost] for row in told["steps"])
        executed = math.fsum(row["times"] * row[cost] * row[f"{cost}_ratio"] for row in told["steps"])
        assert claimed == pytest.approx(getattr(result, cost))
        assert told["executed_over_claimed"][cost] == pytest.approx(executed / claimed)
    assert told["executed_over_claimed"]["edp"] == pytest.approx(1.0, abs=0.1)
    assert all(row["design"] or row["energy_pj_ratio"] == 1.0 for row in told["steps"])  # operations stand as claimed
    text = verified(folder)
    assert "executed over claimed" in text and ("with tensors on chip" in text) == hasattr(result, "steady")


def test_a_run_without_designs_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "network.json").write_text('{"network": "n", "hardware": "h", "layers": []}')
    done = CliRunner().invoke(cli, ["verify", str(tmp_path)])
    assert done.exit_code == 2 and "no layer has a design yet; run its command again" in done.output
