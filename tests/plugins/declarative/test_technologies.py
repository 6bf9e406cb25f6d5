"""Cells, channels of DRAM and the sets of 12 nm: numbers by hand, ranges of published figures."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from sparsemap import SpecError, load_problem
from sparsemap.cli.main import cli
from sparsemap.pieces.loading import load

REGISTRY = load()
DOT = {
    "name": "dot",
    "einsum": "Z[m, n] = P[m, k] * Q[k, n]",
    "dims": {"m": 4, "k": 4, "n": 4},
    "density": {"P": 1.0, "Q": 1.0},
}
SETS = ("12nm-low", "12nm-recommended", "12nm-high")


def problem(technology: str, capacity: str = "128 KB", dram: dict[str, Any] | None = None, **level: Any) -> Any:
    buffer = {"name": "GLB", "class": "sram", "capacity": capacity, **level}
    levels = [{"name": "DRAM", "class": "dram", **(dram or {})}, buffer]
    hardware = {"name": "chip", "technology": technology, "levels": levels, "compute": {"name": "MAC"}}
    return load_problem(DOT, hardware, registry=REGISTRY)


def test_cells_have_rows_of_their_own() -> None:
    leaks = {cells: problem("12nm-recommended", cells=cells).leakage_mw(1) for cells in ("hp", "lop", "lstp", "hd")}
    assert leaks["hp"] == pytest.approx(0.58 * 18.645)
    assert leaks["lstp"] == pytest.approx(0.58 * 2.98957, rel=1e-3)
    assert leaks["lop"] > leaks["hp"] > leaks["lstp"] > 20 * leaks["hd"]
    assert problem("12nm-recommended").leakage_mw(1) == leaks["lstp"]
    with pytest.raises(SpecError, match=r"memories\.sram-fast: not given, but level 'GLB' is of this class and cells"):
        problem("12nm-recommended", cells="fast").leakage_mw(1)


def test_an_access_has_a_constant_part_and_a_scaled_one() -> None:
    found = problem("12nm-recommended").energy_pj(1, "read")  # 16 of 64 bits
    assert found == pytest.approx((0.74 * 4.12627 + 2.6) / 4, rel=2e-3)
    small = problem("12nm-recommended", "2 KB").energy_pj(1, "read")
    assert small == pytest.approx((0.74 * 0.455801 + 2.6 / 2) / 4, rel=2e-2)


def test_the_sets_enclose_each_other_and_published_energies() -> None:
    for capacity, published_pj in (("8 KB", 3.2), ("1 MB", 14.0)):  # of 64 bits: Dally 2020 (14 nm), Jouppi 2021 (7 nm)
        low, middle, high = (4 * problem(name, capacity).energy_pj(1, "read") for name in SETS)
        assert low < middle < high
        assert middle == pytest.approx(published_pj, rel=0.2)
    for what in (
        lambda p: p.leakage_mw(1),
        lambda p: p.technology.area_mm2(p.levels[1]),
        lambda p: p.mac_pj("compute"),
    ):
        low, middle, high = (what(problem(name)) for name in SETS)
        assert low < middle < high
    assert problem("12nm-recommended").mac_pj("compute") == pytest.approx(0.47)


@pytest.mark.parametrize(
    ("dram", "power_mw"),
    [
        ({"bandwidth": "16 MB/s"}, 44.0),
        ({"bandwidth": "16 GB/s"}, 3 * 44.0),
        ({"standard": "hbm2", "bandwidth": "128 GB/s"}, 4 * 83.0),
        ({"standard": "ddr4", "bandwidth": "16 words/cycle"}, 2 * 321.0),  # of two bytes, at 1 GHz
        ({"standard": "ddr3"}, 0.0),
    ],
)
def test_channels_of_dram_draw_power_without_traffic(dram: dict[str, Any], power_mw: float) -> None:
    assert problem("12nm-recommended", dram=dram | {"idle": "open"}).leakage_mw(0) == pytest.approx(power_mw)


@pytest.mark.parametrize(
    "dram", [{"bandwidth": "16 GB/s"}, {"standard": "hbm2", "bandwidth": "128 GB/s"}, {"standard": "ddr3"}]
)
def test_channels_of_dram_draw_nothing_in_a_technology_without_figures_for_them(dram: dict[str, Any]) -> None:
    assert problem("12nm", dram=dram).leakage_mw(0) == 0.0


@pytest.mark.parametrize(
    ("dram", "areas_mm2"),
    [
        ({"bandwidth": "16 MB/s"}, (0.43, 0.57, 0.82)),
        ({"bandwidth": "1 TB/s"}, (157 * 0.43, 157 * 0.57, 157 * 0.82)),  # of 6.4 GB/s
        ({"standard": "hbm2", "bandwidth": "256 GB/s"}, (10.96, 14.9, 14.9)),  # a whole stack
    ],
)
def test_a_chip_has_the_interface_of_every_channel_in_its_area(dram: dict[str, Any], areas_mm2: Any) -> None:
    """Not in `12nm`, which studies of papers name."""
    found = [problem(name, dram=dram) for name in SETS]
    assert [one.technology.area_mm2(one.levels[0]) for one in found] == pytest.approx(list(areas_mm2), rel=1e-3)
    for one, area_mm2 in zip(found, areas_mm2, strict=True):
        buffer, macs = float(one.chip.area_mm2[1]), float(one.chip.instances[-1] * one.chip.mac_area_mm2)
        assert float(one.chip.total_area_mm2) == pytest.approx(area_mm2 + buffer + macs, rel=1e-3)
    one = problem("12nm", dram={"bandwidth": "16 GB/s"})
    assert one.technology.area_mm2(one.levels[0]) == 0.0 and not doubts(one)


def test_an_interface_without_a_published_area_is_doubted_beside_those_with_one() -> None:
    said = ["DRAM: the interface of ddr4 takes no area (off_chip_channels.ddr4.phy_mm2 is unknown)"]
    assert doubts(problem("12nm-recommended", dram={"standard": "ddr4", "bandwidth": "25 GB/s"})) == said
    assert not doubts(problem("12nm-recommended", dram={"bandwidth": "25 GB/s"}))


def doubts(found: Any) -> list[str]:
    return [f"{level.name}: {text}" for level in found.levels[:1] for text in found.technology.doubts(level)]


def test_a_standard_without_energies_is_an_error() -> None:
    with pytest.raises(SpecError, match=r"off_chip_pj_per_bit\.ddr4: not given, but level 'DRAM' is of this standard"):
        problem("12nm", dram={"standard": "ddr4"}).leakage_mw(0)


def test_units_that_a_hardware_lists_are_in_its_area_as_in_results(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    listed = 'kind = "hardware"\nname = "built"\nextends = "mobile"\n[units.formats]\nP = ["bitmask"]\n'
    listed += '[units.mechanisms]\nPEB = ["skip-z-by-p"]\n'
    (tmp_path / "built.toml").write_text(listed)
    found = CliRunner().invoke(cli, ["silicon", "mobile", "built.toml"]).output
    areas = {line.split()[0]: float(line.split()[2]) for line in found.splitlines()[1:3]}
    chip = load_problem(DOT, "built.toml", registry=REGISTRY).chip
    assert chip is not None and areas["built"] == pytest.approx(float(chip.total_area_mm2), rel=1e-2)
    assert areas["built"] > areas["mobile"] and f"{float(chip.units_area_mm2):.3g} mm2 of built.toml: sparse" in found


def test_platforms_are_as_dense_in_power_as_chips_and_papers_keep_their_technology() -> None:
    found = CliRunner().invoke(cli, ["silicon"])
    assert found.exit_code == 0, found.output
    _, *rows = [line.split() for line in found.output.split("\n\n")[0].splitlines()]
    assert [row[0] for row in rows] == ["edge", "edge-16gbps", "mobile", "cloud"]
    assert all(50 <= float(row[8]) <= 500 for row in rows)  # mW/mm2 of memories and MACs
    old = CliRunner().invoke(cli, ["silicon", "cloud", "--technology", "12nm"])
    assert old.output.splitlines()[1].split()[1:6] == ["12nm", "64.8", "192", "79.6", "15.3"]
    assert REGISTRY.get("study", "table-iv").technology == "12nm"


def test_a_chip_without_a_technology_is_counted_as_the_platforms_are() -> None:
    chip = {"name": "chip", "levels": [{"name": "DRAM", "class": "dram"}], "compute": {"name": "MAC"}}
    labels = {
        load_problem(DOT, hardware, registry=REGISTRY).technology.label
        for hardware in (chip, "edge", "mobile", "cloud")
    }
    assert labels == {"12nm-recommended"}


@pytest.mark.parametrize("change", [{"area_factor": 0.5}, {"area_mm2": [3e-4] * 15}])
def test_less_area_a_bit_than_its_cell_is_refused_with_the_row(change: dict[str, Any]) -> None:
    table = {"extends": "12nm-recommended", "name": "tiny", "memories": {"sram": change}}
    with pytest.raises(
        SpecError, match=r"memories\.sram\.area_mm2: [\d.]+ KiB take [\d.e-]+ um2 a bit, expected the cell's 0\.064"
    ):
        problem(table).levels and problem(table).technology.label


def test_all_sets_with_a_cell_keep_to_it() -> None:
    stated = [name for name in REGISTRY.names("technology") if REGISTRY.get("technology", name).cell_um2]
    assert set(SETS) <= set(stated)


@pytest.mark.parametrize(
    ("standard", "state", "milliwatt", "pj_per_bit"),
    [
        ("lpddr4", "open", 44.0, 8.0),
        ("lpddr4", "power-down", 12.3, 8.0 + 31.7 / 51.2),
        ("lpddr4", "self-refresh", 1.2, 8.0 + 42.8 / 51.2),
        ("hbm2", "power-down", 51.0, 3.9 + 32.0 / 256.0),
    ],
)
def test_a_channel_between_transfers_draws_the_power_of_its_state(standard, state, milliwatt, pj_per_bit):
    """A design that transfers all the time pays for open banks in any state."""
    levels = [
        {"name": "DRAM", "class": "dram", "standard": standard, "idle": state, "bandwidth": "1 GB/s"},
        {"name": "GLB", "class": "sram", "capacity": "64 KB"},
    ]
    hardware = {"technology": "12nm-recommended", "levels": levels, "compute": {"name": "MAC"}}
    problem = load_problem("mm1", hardware)
    assert problem.technology.leakage_mw(problem.levels[0]) == pytest.approx(milliwatt)
    assert problem.technology.energy_pj(problem.levels[0], "read") == pytest.approx(16 * pj_per_bit)
