"""Memories by estimators of `hwcomponents`: units, sizes, arrays by bandwidth, and errors that name the component."""

import sys
from types import SimpleNamespace

import pytest

from sparsemap import SpecError, load_problem
from sparsemap.errors import SearchError
from sparsemap.testing import check_technology

SRAM = {"name": "SRAM", "access_bits": 128, "attributes": {"tech_node": 22e-9}}


def problem(components=None, capacity="128 KB", **level):
    technology = {"type": "hwcomponents", "extends": "12nm-recommended", "components": components or {"sram": SRAM}}
    levels = [{"name": "DRAM", "class": "dram"}, {"name": "GLB", "class": "sram", "capacity": capacity, **level}]
    hardware = {"name": "chip", "technology": technology, "levels": levels, "compute": {"name": "MAC"}}
    return load_problem("mm1", hardware)


@pytest.fixture
def estimators(monkeypatch):
    """An estimator whose figures grow with the capacity, and all it is asked."""
    asked = []

    def figure(per_bit):
        def of(name, attributes, *action):
            asked.append((name, attributes, *action))
            if name not in ("SRAM", "LPDDR4"):
                raise RuntimeError(f"Can not find a model for {name}\n|  | Exception: no such component\n")
            return per_bit * attributes.get("size", 1)

        return of

    fake = SimpleNamespace(
        get_action_cost=lambda *given: SimpleNamespace(energy=figure(1e-17 if given[2] == "read" else 2e-17)(*given)),
        get_leak_power=figure(1e-9),
        get_area=figure(1e-13),
    )
    monkeypatch.setitem(sys.modules, "hwcomponents", fake)
    return asked


def test_figures_of_a_component_are_in_our_units(estimators):
    found, bits = problem(), 128 * 1024 * 8
    assert found.energy_pj(1, "read") == pytest.approx(16 / 128 * 1e12 * 1e-17 * bits)
    assert found.energy_pj(1, "write") == pytest.approx(2 * found.energy_pj(1, "read"))
    assert found.leakage_mw(1) == pytest.approx(1e3 * 1e-9 * bits)
    assert found.technology.area_mm2(found.levels[1]) == pytest.approx(1e6 * 1e-13 * bits)
    assert ("SRAM", {"width": 128, "tech_node": 22e-9, "size": bits}, "read", {}) in estimators
    check_technology(found.technology, found)


def test_a_bandwidth_of_several_accesses_takes_as_many_arrays(estimators):
    found = problem(capacity="256 KB", read_bandwidth="32 words/cycle")  # 512 bits
    found.technology.area_mm2(found.levels[1])
    assert {given["size"] for name, given, *_ in estimators if name == "SRAM"} >= {2**21, 2**19}


def test_an_off_chip_standard_may_have_a_component_and_all_else_is_in_the_tables(estimators):
    found = problem({"lpddr4": {"name": "LPDDR4", "access_bits": 64}})
    assert found.energy_pj(0, "read") == pytest.approx(16 / 64 * 1e12 * 1e-17)
    usual = load_problem("mm1", "edge")
    assert found.mac_pj("compute") == usual.mac_pj("compute") and found.leakage_mw(0) == usual.leakage_mw(0)
    assert found.energy_pj(1, "read") == usual.energy_pj(1, "read")


def test_an_off_chip_component_has_energy_alone_and_its_interface_is_in_the_tables(estimators):
    """A DRAM with a capacity takes no estimated area on the chip, and no estimated leakage."""
    levels = {"DRAM": {"capacity": "1 GB", "standard": "lpddr4", "bandwidth": "4 words/cycle"}}
    components = {"lpddr4": {"name": "LPDDR4", "access_bits": 64}}
    technology = {"type": "hwcomponents", "extends": "12nm-recommended", "components": components}
    usual, found = (
        load_problem("mm1", {"extends": "edge", "technology": which, "levels": levels})
        for which in ("12nm-recommended", technology)
    )
    areas = [hardware.technology.area_mm2(hardware.levels[0]) for hardware in (usual, found)]
    assert areas[0] == areas[1] > 0
    assert usual.leakage_mw(0) == found.leakage_mw(0) > 0


def test_a_component_without_an_estimator_is_named_with_the_reason(estimators):
    with pytest.raises(SpecError, match=r"no estimator has the read of RAM with .*: Exception: no such component"):
        problem({"sram": {**SRAM, "name": "RAM"}}).energy_pj(1, "read")


def test_without_the_package_its_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "hwcomponents", None)
    with pytest.raises(SearchError, match=r"needs the package 'hwcomponents'.*estimators"):
        problem({"sram": {**SRAM, "access_bits": 32}}).energy_pj(1, "read")
