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
            {"cells": "hd", "capacity": "8 MB"},
            {"clock": "4.4 GHz"},
            "GLB: two accesses to an array are 5 cycles apart at 4.4 GHz; more than 4 banks in turn are no memory",
        ),
        ({"capacity": "unlimited"}, {}, "GLB has no capacity: unlimited, without area and leakage"),
    ],
)
def test_each_unpriced_part_is_doubted(keys: dict[str, object], hardware: dict[str, object], text: str) -> None:
    *clock, found = doubts(problem(GLB | keys, **hardware))
    assert text in found and len(clock) == ("clock" in hardware)


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


def glb_mm2(clock: str = "1 GHz", **keys: object) -> float:
    found = problem(GLB | keys, clock=clock)
    return found.technology.area_mm2(found.levels[1])


def test_words_per_cycle_and_clocks_take_banks() -> None:
    """64 MB: 256 words of 16 bits are 64 banks of 64 bits, as in the table; 32 times as many words are 2,048 banks."""
    one = glb_mm2(bandwidth="4 words/cycle")
    assert glb_mm2() == pytest.approx(one, rel=0.3)
    assert glb_mm2(bandwidth="8192 words/cycle") > 1.2 * one
    assert glb_mm2(bandwidth="8192 words/cycle", clock="4 GHz") > 1.1 * glb_mm2(bandwidth="8192 words/cycle")
    assert glb_mm2(bandwidth="1000000 words/cycle") > 80.0  # 250,000 banks of the smallest array


def test_reads_and_writes_have_ports_of_their_own() -> None:
    both = {"bandwidth": None, "read_bandwidth": "4096 words/cycle", "write_bandwidth": "4096 words/cycle"}
    assert glb_mm2(**both) == glb_mm2(bandwidth="8192 words/cycle")


def test_a_skip_without_a_width_or_a_size_is_doubted(tmp_path) -> None:
    spec = 'kind = "mechanism"\nname = "far"\naction = "skip"\nfilters = [{ target = "P", leader = "Q" }]\n'
    space = {"extends": "full", "gate-skip": {"candidates": ["none", "far"]}}
    for more, count in (("", 2), ("width = 16\n", 1), ("width = 16\nunit_macs = 0.1\n", 0)):
        (tmp_path / "far.toml").write_text(spec + more, "utf-8")
        found = sparsemap.load_problem("mm1", "mobile", space, plugin_dirs=[tmp_path])
        assert len([text for text in doubts(found) if "'far'" in text]) == count
