"""Hardware whose parts the model does not price is evaluated with a warning."""

from __future__ import annotations

import logging

import pytest
from click.testing import CliRunner

import sparsemap
from sparsemap.cli.main import cli
from sparsemap.problem.doubts import doubts

DRAM = {"name": "DRAM", "class": "dram"}
GLB = {"name": "GLB", "class": "sram", "capacity": "64 MB", "bandwidth": "256 words/cycle", "fanout": 4}


def problem(level: dict[str, object], **keys: object) -> sparsemap.Problem:
    hardware = {"technology": "12nm-recommended", "levels": [DRAM, level], "compute": {"name": "MAC"}} | keys
    return sparsemap.load_problem("mm1", hardware)


@pytest.mark.parametrize("name", ["edge", "mobile", "cloud", "scnn-like", "eyeriss-like"])
def test_built_in_hardware_raises_no_doubts(name: str) -> None:
    assert doubts(sparsemap.load_problem("conv1" if name.endswith("like") else "mm1", name)) == []


@pytest.mark.parametrize(
    ("keys", "hardware", "text"),
    [
        ({"class": "regfile"}, {}, "GLB: 64 MB are beyond the table of regfile, up to 64 KB; energy and area follow"),
        (
            {"word_bits": 1},
            {},
            "GLB: words of 1 bits hold the tensors' words of 16 bits; expected word_bits from 16 on",
        ),
        ({"bandwidth": "10000000 words/cycle"}, {}, "GLB: 160,000,000 bits per cycle are 0.3 times its capacity"),
        (
            {},
            {"clock": "8 GHz"},
            "GLB: an access takes 0.81 ns, 7 cycles at 8 GHz; so many banks in turn are not priced",
        ),
        ({"capacity": "unlimited"}, {}, "GLB has no capacity: unlimited, without area and leakage"),
    ],
)
def test_each_unpriced_part_is_doubted(keys: dict[str, object], hardware: dict[str, object], text: str) -> None:
    (found,) = doubts(problem(GLB | keys, **hardware))
    assert text in found


def test_a_search_warns_of_them(caplog: pytest.LogCaptureFixture, tmp_path) -> None:
    spec = 'kind = "hardware"\nname = "wide"\nextends = "cloud"\nlevels.GLB.word_bits = 1\n'
    (tmp_path / "wide.toml").write_text(spec, "utf-8")
    with caplog.at_level(logging.WARNING, "sparsemap"):
        CliRunner().invoke(cli, ["search", "mm1", str(tmp_path / "wide.toml"), "--budget", "20"])
    assert "words of 1 bits" in caplog.text


@pytest.mark.parametrize("kib", [65, 1024, 1 << 20])
def test_memories_beyond_a_table_follow_its_last_rows(kib: int) -> None:
    def cost(size: int) -> tuple[float, float]:
        found = problem(GLB | {"class": "regfile", "capacity": f"{size} KB"})
        return found.technology.energy_pj(found.levels[1], "read"), found.technology.area_mm2(found.levels[1])

    energy_pj, area_mm2 = cost(kib)
    assert energy_pj > cost(64)[0] and area_mm2 > 0.9 * kib / 64 * cost(64)[1]
