"""The shipped specs against the numbers of Tables II and III, and the energies that the 12 nm technology gives."""

import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import pytest
from sparsemap_plugins.declarative.technologies import TableTechnology
from sparsemap_plugins.declarative.technology_tables import MemoryTable
from sparsemap_plugins.memories import Dram, RegisterFile, Sram

from sparsemap.errors import SpecError
from sparsemap.pieces.contracts import MemoryLevel
from sparsemap.problem.levels import Level
from sparsemap.spec import units
from sparsemap.spec.structuring import Reader

SPECS = Path(__file__).parents[2] / "specs"
KINDS = {"workloads": "workload", "hardware": "hardware", "technologies": "technology"}
KIB = 8 * 1024

# Table III: m, k, n and the densities of P and Q in percent. Rounded sizes as the specs make them exact.
SPMM = {
    "mm1": (124, 124, 124, 78.5, 78.5),
    "mm2": (171, 92378, 171, 20.9, 20.9),
    "mm3": (730, 730, 730, 11.8, 11.8),
    "mm4": (7700, 2600, 7700, 5.0, 5.0),
    "mm5": (9000, 9000, 9000, 4.1, 4.1),
    "mm6": (2600, 2600, 2600, 1.1, 1.1),
    "mm7": (1600, 4600, 1600, 0.3, 0.3),
    "mm8": (2048, 12288, 128, 100, 50.0),
    "mm9": (2048, 12288, 49152, 100, 50.0),
    "mm10": (2048, 49152, 12288, 100, 50.0),
    "mm11": (128, 1024, 128, 0.6, 0.6),
    "mm12": (768, 64, 768, 5.9, 5.9),
    "mm13": (12288, 24576, 12288, 1.0, 1.0),
    "mm14": (256, 512, 2048, 32.8, 71.8),
    "mm15": (1024, 16384, 16384, 60.0, 78.0),
}
# Table III: the input C x H x W with its density, then the weights K x C x R x S with theirs.
SPCONV = {
    "conv1": ((3, 32, 32), 100, (64, 3, 3, 3), 54.6),
    "conv2": ((64, 32, 32), 45.0, (256, 64, 1, 1), 25.2),
    "conv3": ((128, 16, 16), 39.6, (512, 128, 1, 1), 36.6),
    "conv4": ((128, 16, 16), 47.7, (128, 128, 3, 3), 64.7),
    "conv5": ((1024, 8, 8), 40.2, (256, 1024, 1, 1), 50.1),
    "conv6": ((256, 8, 8), 43.0, (256, 256, 3, 3), 61.7),
    "conv7": ((512, 4, 4), 59.0, (2048, 512, 1, 1), 11.8),
    "conv8": ((128, 64, 64), 40.0, (512, 128, 4, 4), 30.0),
    "conv9": ((128, 64, 64), 100, (64, 128, 1, 1), 20.0),
    "conv10": ((256, 64, 64), 40.0, (512, 256, 1, 1), 25.0),
    "conv11": ((4, 32, 32), 34.0, (64, 4, 3, 3), 14.6),
    "conv12": ((1024, 4, 4), 79.0, (64, 1024, 1, 1), 11.8),
    "conv13": ((256, 16, 16), 90.2, (128, 256, 1, 1), 5.1),
}
# Table II: PEs, MACs per PE, PE buffer, global buffer, DRAM bandwidth.
PLATFORMS = {
    "edge": (16 * 16, 1, "1 KB", "128 KB", "16 MB/s"),
    "mobile": (16 * 16, 64, "32 KB", "16 MB", "32 GB/s"),
    "cloud": (32 * 32, 64, "128 KB", "64 MB", "128 GB/s"),
}
HARDWARE = {*PLATFORMS, "edge-16gbps", "eyeriss-like", "scnn-like", "dstc-like", "clustered"}


def read(kind: str, name: str) -> dict[str, Any]:
    return tomllib.loads((SPECS / kind / f"{name}.toml").read_text(encoding="utf-8"))


def own_files() -> list[Path]:
    return sorted(path for folder in KINDS for path in (SPECS / folder).glob("*.toml"))


@pytest.mark.parametrize("path", own_files(), ids=lambda path: path.stem)
def test_a_spec_is_named_like_its_file_and_says_what_it_is_and_where_it_comes_from(path: Path) -> None:
    spec = tomllib.loads(path.read_text(encoding="utf-8"))
    assert spec["name"] == path.stem
    assert spec["kind"] == KINDS[path.parent.name]
    for key in ("description", "source"):
        assert spec[key].strip()
        assert "\n" not in spec[key]


# ------------------------------------------------------------------------------------------------------------ Table III


def percent(entry: Any) -> float:
    if isinstance(entry, dict):
        assert entry == {"type": "structured", "density": 1.0}
        return 100.0
    assert entry < 1, "a dense tensor is structured"
    return entry * 100


@pytest.mark.parametrize("name", SPMM)
def test_spmm_of_table_iii(name: str) -> None:
    m, k, n, p, q = SPMM[name]
    spec = read("workloads", name)
    assert spec["einsum"] == "Z[m, n] = P[m, k] * Q[k, n]"
    assert spec["dims"] == {"m": m, "k": k, "n": n}
    assert {t: percent(d) for t, d in spec["density"].items()} == pytest.approx({"P": p, "Q": q})
    assert f"{m} x {k} times {k} x {n}" in spec["description"]


@pytest.mark.parametrize("name", SPCONV)
def test_spconv_of_table_iii(name: str) -> None:
    (c, h, w), p, (k, weight_c, r, s), q = SPCONV[name]
    spec = read("workloads", name)
    assert weight_c == c
    assert spec["einsum"] == "Z[k, p, q] = P[c, p + r, q + s] * Q[k, c, r, s]"
    assert spec["dims"] == {"k": k, "c": c, "p": h, "q": w, "r": r, "s": s}
    assert {t: percent(d) for t, d in spec["density"].items()} == pytest.approx({"P": p, "Q": q})
    assert "padding" in spec["description"]
    assert (f"{h + r - 1} x {w + s - 1} in, {h} x {w} out" in spec["description"]) == (r > 1)


def test_workloads_beside_table_iii() -> None:
    extra = {path.stem for path in (SPECS / "workloads").glob("*.toml")} - set(SPMM) - set(SPCONV)
    expected = {
        "matmul-128x1024x128": {"m": 128, "k": 1024, "n": 128},
        "matmul-32x64x48": {"m": 32, "k": 64, "n": 48},
        "batched-matmul-8x64x64x64": {"b": 8, "m": 64, "k": 64, "n": 64},
        "depthwise-conv-32x16x16": {"c": 32, "p": 16, "q": 16, "r": 3, "s": 3},
        "attention-scores": {"b": 4, "h": 12, "m": 256, "k": 64, "n": 256},
    }
    assert expected.keys() <= extra
    for name, dims in expected.items():
        assert read("workloads", name)["dims"] == dims


# ------------------------------------------------------------------------------------------------------------- Table II


@pytest.mark.parametrize("name", PLATFORMS)
def test_platform_of_table_ii(name: str) -> None:
    pes, macs, pe_buffer, global_buffer, bandwidth = PLATFORMS[name]
    spec = read("hardware", name)
    dram, glb, peb = spec["levels"]
    assert [dram["name"], glb["name"], peb["name"]] == ["DRAM", "GLB", "PEB"]
    assert dram["bandwidth"] == bandwidth
    assert (glb["capacity"], glb["fanout"]) == (global_buffer, pes)
    assert (peb["capacity"], peb["fanout"]) == (pe_buffer, macs)
    assert "fanout" not in dram and "capacity" not in dram
    assert [place.get("gate_skip", False) for place in (dram, glb, peb, spec["compute"])] == [False, True, True, True]
    assert (spec["technology"], spec["word_bits"], spec["clock"]) == ("12nm-recommended", 16, "1 GHz")


def test_edge_16gbps_differs_from_edge_in_the_dram_bandwidth_only() -> None:
    edge, faster = read("hardware", "edge"), read("hardware", "edge-16gbps")
    assert faster["extends"] == "edge"
    assert faster.keys() == {"kind", "name", "extends", "description", "source", "levels"}
    dram, *inner = faster["levels"]
    assert dram == {**edge["levels"][0], "bandwidth": "16 GB/s"}
    assert inner == edge["levels"][1:]


@pytest.mark.parametrize("name", sorted(HARDWARE))
def test_units_of_hardware_are_understood(name: str) -> None:
    spec = read("hardware", name)
    clock = units.frequency_hz(spec.get("clock", "1 GHz"))
    for level in spec["levels"]:
        if "capacity" in level:
            assert units.capacity_bits(level["capacity"], 16) > 0
        for key in level.keys() & {"bandwidth", "read_bandwidth", "write_bandwidth"}:
            assert units.bandwidth_words_per_cycle(level[key], clock, 16) > 0


@pytest.mark.parametrize(
    ("name", "macs"),
    [("eyeriss-like", 168), ("scnn-like", 64 * 16), ("dstc-like", 640 * 64), ("clustered", 16 * 16 * 64)],
)
def test_compute_units_of_other_hardware(name: str, macs: int) -> None:
    count = 1
    for level in read("hardware", name)["levels"]:
        count *= level.get("fanout", 1)
    assert count == macs


def test_hardware_keys_are_fields_of_the_memory_classes() -> None:
    classes = {"dram": Dram, "sram": Sram, "regfile": RegisterFile}
    for path in (SPECS / "hardware").glob("*.toml"):
        if path.stem not in HARDWARE:
            continue
        for level in tomllib.loads(path.read_text(encoding="utf-8"))["levels"]:
            fields = {field.name for field in attrs.fields(classes[level["class"]])}
            assert level.keys() - {"class"} <= fields, path


# ----------------------------------------------------------------------------------------------------------- technology


@pytest.fixture(scope="module")
def technology() -> TableTechnology:
    spec = read("technologies", "12nm")
    assert spec.pop("kind") == "technology"
    assert spec.pop("type") == TableTechnology.type_name == TableTechnology.default_type
    return Reader().read(TableTechnology, spec)


def level(memory: MemoryLevel, kib: float | None = None, **changes: Any) -> Level:
    """One storage level of 16-bit words as the technology sees it."""
    given: dict[str, Any] = {
        "name": "here",
        "memory": memory,
        "index": 0,
        "instances": 1,
        "fanout": 1,
        "word_bits": 16,
        "metadata_width": 32,
        "capacity_bits": None if kib is None else kib * KIB,
        "metadata_capacity_bits": None,
        "shared_capacity": True,
        "read_bandwidth": None,
        "write_bandwidth": None,
        "bandwidth": None,
        "clock_hz": 1e9,
        "gate_skip": False,
    }
    return Level(**{**given, **changes})


def test_scaling_factors_at_one_voltage(technology: TableTechnology) -> None:
    assert technology.scale(22, 0.8) == pytest.approx(0.44, abs=0.01)
    assert technology.scale(45, 0.8) == pytest.approx(0.13, abs=0.005)
    assert technology.scale(12, 0.8) == 1
    # By hand from the rows at 14, 10 and 45 nm, the last at Horowitz's 0.9 V.
    at_12 = ((0.2363 + 0.2068) * 0.64 - (0.09675 + 0.09311) * 0.8 + (0.02239 + 0.02375)) / 2
    assert technology.scale(45, 0.9) == pytest.approx(at_12 / (1.103 * 0.81 - 0.362 * 0.9 + 0.2767))


def test_scaling_outside_the_table_is_refused(technology: TableTechnology) -> None:
    with pytest.raises(SpecError, match=r"7 to 130 nm.*180 nm"):
        technology.scale(180, 1.8)


@pytest.mark.parametrize("action", ["read", "write"])
@pytest.mark.parametrize("memory", [Sram(), RegisterFile()], ids=["sram", "regfile"])
def test_energy_never_falls_with_capacity(technology: TableTechnology, memory: MemoryLevel, action: str) -> None:
    energies = [technology.energy_pj(level(memory, 2 ** (step / 4)), action) for step in range(-24, 70)]
    assert all(small <= large for small, large in pairwise(energies))
    assert energies[0] > 0


def test_a_row_of_the_table_is_reproduced(technology: TableTechnology) -> None:
    per_word = 4.1168 * 16 / 64 * technology.scale(22, 0.8)
    assert technology.energy_pj(level(Sram(), 128), "read") == pytest.approx(per_word)


def test_between_two_rows_the_energy_is_interpolated_log_log(technology: TableTechnology) -> None:
    below, middle, above = (technology.energy_pj(level(Sram(), kib), "read") for kib in (128, 128 * 2**0.5, 256))
    assert middle == pytest.approx((below * above) ** 0.5)


def test_sram_is_clamped_outside_the_table_and_small_register_files_are_extrapolated(
    technology: TableTechnology,
) -> None:
    assert technology.energy_pj(level(Sram(), 0.01), "read") == technology.energy_pj(level(Sram(), 0.25), "read")
    unlimited, largest = level(Sram()), level(Sram(), 65536)
    assert technology.energy_pj(unlimited, "read") == technology.energy_pj(largest, "read")
    assert technology.energy_pj(level(RegisterFile(), 0.01), "read") < technology.energy_pj(
        level(RegisterFile(), 0.25), "read"
    )


def test_where_a_larger_array_writes_cheaper_the_smaller_memory_uses_it(technology: TableTechnology) -> None:
    """CACTI: 97.3 pJ at 8 MiB, 65.0 pJ at 16 MiB."""
    assert technology.energy_pj(level(Sram(), 8192), "write") == pytest.approx(
        technology.energy_pj(level(Sram(), 16384), "write")
    )


@pytest.mark.parametrize("name", PLATFORMS)
@pytest.mark.parametrize("action", ["read", "write"])
def test_the_further_out_the_dearer(technology: TableTechnology, name: str, action: str) -> None:
    dram, _, _ = read("hardware", name)["levels"]
    kib = {"edge": (128, 1), "mobile": (16384, 32), "cloud": (65536, 128)}[name]
    off_chip = technology.energy_pj(level(Dram(standard=dram["standard"])), action)
    glb, peb = (technology.energy_pj(level(Sram(), size), action) for size in kib)
    assert off_chip > glb > peb > 0


def test_off_chip_energy_per_word(technology: TableTechnology) -> None:
    assert technology.energy_pj(level(Dram()), "read") == 16 * 8.0
    assert technology.energy_pj(level(Dram(standard="hbm2")), "write") == pytest.approx(16 * 3.9)


def test_metadata_costs_its_width_in_the_memory_that_holds_it(technology: TableTechnology) -> None:
    shared = level(Sram(), 128)
    assert technology.energy_pj(shared, "metadata_read") == pytest.approx(2 * technology.energy_pj(shared, "read"))
    separate = level(Sram(), 128, shared_capacity=False, metadata_capacity_bits=4 * KIB)
    assert technology.energy_pj(separate, "metadata_write") == pytest.approx(
        2 * technology.energy_pj(level(Sram(), 4), "write")
    )


def test_gated_and_skipped_actions_cost_their_fraction(technology: TableTechnology) -> None:
    residual = attrs.evolve(technology, gated_fraction=0.1)
    here = level(Sram(), 128)
    for action, full in {"read": "read", "fill": "write", "update": "write"}.items():
        for kind in ("", "metadata_"):
            cost = technology.energy_pj(here, kind + full)
            assert residual.energy_pj(here, f"gated_{kind}{action}") == pytest.approx(0.1 * cost)
            assert residual.energy_pj(here, f"skipped_{kind}{action}") == 0
            assert technology.energy_pj(here, f"gated_{kind}{action}") == 0
    assert residual.mac_pj(16, "gated") == pytest.approx(0.1 * residual.mac_pj(16, "compute"))
    assert residual.mac_pj(16, "skipped") == 0


def test_mac_energy_follows_horowitz(technology: TableTechnology) -> None:
    assert technology.mac.pj(8) == pytest.approx(0.2 + 0.03)
    assert technology.mac.pj(32) == pytest.approx(3.1 + 0.1)
    assert technology.mac.pj(16) == pytest.approx(0.833, abs=0.001)
    assert technology.mac_pj(16, "compute") == pytest.approx(0.088, abs=0.001)
    assert technology.mac_pj(4, "compute") > 0


def test_unknown_actions_and_missing_tables_are_named(technology: TableTechnology) -> None:
    with pytest.raises(ValueError, match="'raed'"):
        technology.energy_pj(level(Sram(), 1), "raed")
    with pytest.raises(ValueError, match="'idle'"):
        technology.mac_pj(16, "idle")
    with pytest.raises(SpecError, match=r"technology '12nm': off_chip_pj_per_bit.gddr6: .*lpddr4"):
        technology.energy_pj(level(Dram(standard="gddr6")), "read")
    without = attrs.evolve(technology, memories={"sram": technology.memories["sram"]})
    with pytest.raises(SpecError, match=r"memories.regfile: .*sram"):
        without.energy_pj(level(RegisterFile(), 1), "read")


def test_tables_are_checked_when_they_are_built() -> None:
    given: dict[str, Any] = {"node_nm": 22, "voltage": 0.8, "access_bits": 64, "capacity_kib": (1.0, 2.0)}
    with pytest.raises(ValueError, match="'read_pj' has 1 values, 'capacity_kib' has 2"):
        MemoryTable(**given, read_pj=(1.0,), write_pj=(1.0, 2.0))
    with pytest.raises(ValueError, match="'capacity_kib' must be ascending"):
        MemoryTable(**{**given, "capacity_kib": (2.0, 1.0)}, read_pj=(1.0, 2.0), write_pj=(1.0, 2.0))
