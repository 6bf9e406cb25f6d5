"""Hardware whose parts the model does not price is evaluated with a warning."""

from __future__ import annotations

import logging

import pytest

import sparsemap
from sparsemap.problem.doubts import doubts
from sparsemap.problem.levels import Level

LEVELS = [
    {"name": "DRAM", "class": "dram"},
    {"name": "GLB", "class": "sram", "capacity": "64 MB", "bandwidth": "256 words/cycle", "fanout": 4},
]


def doubts_of(keys: dict[str, object], **hardware: object) -> list[str]:
    levels = [LEVELS[0], LEVELS[1] | keys]
    given = {"technology": "12nm-recommended", "levels": levels, "compute": {"name": "MAC"}} | hardware
    return doubts(sparsemap.load_problem("mm1", given))


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
        ({"capacity": None}, {}, "GLB has no capacity: unlimited, without area and leakage"),
    ],
)
def test_what_silicon_pays_for_and_the_model_does_not_is_doubted(keys, hardware, text: str) -> None:
    (found,) = doubts_of({key: value for key, value in keys.items() if value is not None}, **hardware) if (
        None not in keys.values()
    ) else doubts(sparsemap.load_problem("mm1", {
        "technology": "12nm-recommended", "compute": {"name": "MAC"},
        "levels": [LEVELS[0], {key: value for key, value in LEVELS[1].items() if key != "capacity"}],
    }))  # fmt: skip
    assert text in found


def test_a_search_warns_of_them(caplog: pytest.LogCaptureFixture, tmp_path) -> None:
    from click.testing import CliRunner

    from sparsemap.cli.main import cli

    (tmp_path / "wide.toml").write_text(
        'kind = "hardware"\nname = "wide"\nextends = "cloud"\nlevels.GLB.word_bits = 1\n', "utf-8"
    )
    with caplog.at_level(logging.WARNING, "sparsemap"):
        CliRunner().invoke(cli, ["search", "mm1", str(tmp_path / "wide.toml"), "--budget", "20"])
    assert "words of 1 bits" in caplog.text


@pytest.mark.parametrize("kib", [64, 65, 1024, 1 << 20])
def test_memories_beyond_a_table_cost_no_less_than_its_last_row(kib: int) -> None:
    problem = sparsemap.load_problem("mm1", "cloud")

    def cost(size: int) -> tuple[float, float]:
        keys = {"class": "regfile", "capacity": f"{size} KB"}
        level: Level = sparsemap.load_problem("mm1", {
            "technology": "12nm-recommended", "compute": {"name": "MAC"}, "levels": [LEVELS[0], LEVELS[1] | keys],
        }).levels[1]  # fmt: skip
        return problem.technology.energy_pj(level, "read"), problem.technology.area_mm2(level)

    energy_pj, area_mm2 = cost(kib)
    assert energy_pj >= cost(64)[0] and area_mm2 >= 0.9 * kib / 64 * cost(64)[1]
