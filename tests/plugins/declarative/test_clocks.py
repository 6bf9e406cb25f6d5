"""Clock and voltage: published clocks limit a chip, a lower supply saves energy of arithmetic and slows the clock."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sparsemap import SpecError, load_problem
from sparsemap.problem.doubts import doubts

RECOMMENDED = "12nm-recommended"


def chip(clock: str = "max", name: str = RECOMMENDED, **technology: Any) -> Any:
    hardware = {"extends": "edge", "clock": clock, "technology": {"extends": name, **technology}}
    return load_problem("mm1", hardware)


def test_the_clocks_are_a_measured_one_and_published_delays() -> None:
    """1.36 GHz at 1 V and 16 nm (Lee et al., JSSC 2019), over delays as cubic functions of the voltage at 14 and 10 nm."""
    at_14, at_10 = (-40.66, 109.2, -100.6, 35.92), (-34.95, 93.65, -85.99, 30.4)
    clocks = chip("1 GHz").technology.clocks
    for voltage, ghz in zip(clocks.voltage, clocks.ghz, strict=True):
        delay = (np.polyval(at_14, voltage) + np.polyval(at_10, voltage)) / 2
        assert ghz == pytest.approx(1.36 * np.polyval(at_14, 1.0) / delay, abs=6e-4)
    assert clocks.ghz[-1] == pytest.approx(1.53, rel=0.02), "the V100, of 12 nm, boosts to 1.53 GHz"


@pytest.mark.parametrize(("voltage", "ghz"), [(0.8, 1.287), (1.0, 1.506), (0.625, (0.949 + 1.052) / 2)])
def test_the_highest_clock_follows_the_voltage(voltage: float, ghz: float) -> None:
    made = chip(voltage=voltage)
    assert made.levels[0].clock_hz == made.chip.clock_hz == pytest.approx(ghz * 1e9)


def test_a_lower_voltage_saves_energy_of_arithmetic_and_wires_not_of_memories() -> None:
    usual, low = chip(voltage=0.8), chip(voltage=0.6)
    factor = 0.516  # of the same source's energies
    assert low.mac_pj("compute") / usual.mac_pj("compute") == pytest.approx(factor, abs=1e-3)
    assert low.technology.wire_pj_per_bit_mm / usual.technology.wire_pj_per_bit_mm == pytest.approx(0.75**2)
    for level in range(len(usual.levels)):
        assert low.energy_pj(level, "read") == usual.energy_pj(level, "read")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"clock": "8 GHz"}, "clock: is 8 GHz, expected at most 4.5 GHz, 3.5 times the clock of compute units in "),
        ({"voltage": 0.3}, "voltage: is 0.3 V, expected 0.5 to 1 V, the range of clocks.voltage"),
        ({"name": "12nm"}, "clock: is 'max', but technology '12nm' gives no clock; expected a number with a unit"),
        ({"node_nm": 7.0}, "clock: is 'max', but technology '12nm-recommended-changed' gives no clock"),
    ],
)
def test_clocks_and_voltages_outside_the_table_are_errors(arguments: dict[str, Any], expected: str) -> None:
    with pytest.raises(SpecError) as error:
        chip(**arguments).levels  # noqa: B018
    assert expected in str(error.value)


def test_a_clock_above_published_accelerators_is_doubted_and_the_platforms_are_not() -> None:
    assert doubts(chip("2 GHz"))[0] == (
        "clock: 2 GHz is above 1.29 GHz, the highest of published accelerators at this voltage"
    )
    for made in (
        chip("max"),
        chip("8 GHz", "12nm"),
        *(load_problem("mm1", name) for name in ("edge", "mobile", "cloud")),
    ):
        assert not [text for text in doubts(made) if text.startswith("clock")]
