"""Sub-volumes and times by the paper's rules against its listing of ResNet-50 on 4 x 4 cores, and the sound ones."""

from itertools import pairwise

import attrs
import numpy as np
import pytest
from sparsemap_plugins.weight_blocks.machine import CoreMesh
from sparsemap_plugins.weight_blocks.pages import PUBLISHED, MeshSchedules, floors, measured
from sparsemap_plugins.weight_blocks.schedule import compile_layers
from wbs_layers import conv, machine

from sparsemap import SpecError
from sparsemap.csv_files import read_csv
from sparsemap.pieces.loading import load

LISTING = [
    # kernel, stride, size, inputs, outputs, count, dense (co, ci, rows, us), sparse (co, ci, rows, us)
    (7, 2, 224, 3, 64, 1, (16, 8, 2, 452.3), (16, 8, 2, 452.3)),
    (1, 1, 56, 64, 256, 4, (64, 64, 2, 55.6), (64, 64, 2, 54.6)),
    (1, 1, 56, 64, 64, 1, (16, 64, 8, 14.0), (16, 64, 8, 13.7)),
    (3, 1, 56, 64, 64, 3, (16, 64, 6, 195.4), (16, 64, 6, 101.1)),
    (1, 1, 56, 256, 64, 2, (16, 256, 2, 202.8), (16, 256, 2, 101.5)),
    (1, 2, 56, 256, 512, 1, (32, 256, 1, 103.3), (64, 256, 1, 52.9)),
    (1, 1, 56, 256, 128, 1, (32, 256, 2, 204.8), (32, 256, 2, 102.5)),
    (3, 2, 56, 128, 128, 1, (8, 128, 2, 618.6), (16, 128, 2, 311.9)),
    (1, 1, 28, 128, 512, 4, (64, 128, 2, 32.9), (128, 128, 2, 31.1)),
    (1, 1, 28, 512, 128, 3, (16, 512, 2, 206.7), (32, 512, 2, 104.6)),
    (3, 1, 28, 128, 128, 3, (8, 128, 2, 306.0), (16, 128, 2, 156.5)),
    (1, 2, 28, 512, 1024, 1, (16, 512, 1, 134.1), (32, 512, 1, 68.8)),
    (1, 1, 28, 512, 256, 1, (16, 512, 2, 210.7), (32, 512, 2, 106.6)),
    (3, 2, 28, 256, 256, 1, (8, 128, 1, 475.6), (8, 256, 1, 458.4)),
    (1, 1, 14, 256, 1024, 6, (32, 256, 1, 44.8), (64, 256, 1, 37.2)),
    (1, 1, 14, 1024, 256, 5, (8, 1024, 1, 247.2), (16, 1024, 1, 125.0)),
    (3, 1, 14, 256, 256, 5, (8, 128, 2, 236.1), (8, 256, 2, 218.9)),
    (1, 2, 14, 1024, 2048, 1, (8, 1024, 1, 359.8), (16, 1024, 1, 124.8)),
    (1, 1, 14, 1024, 512, 1, (8, 1024, 1, 263.0), (16, 1024, 1, 133.2)),
    (3, 2, 14, 512, 512, 1, (8, 128, 1, 634.2), (8, 256, 1, 317.4)),
    (1, 1, 7, 512, 2048, 3, (16, 512, 1, 79.8), (32, 512, 1, 48.4)),
    (1, 1, 7, 2048, 512, 2, (8, 1024, 1, 122.6), (8, 2048, 1, 92.0)),
    (3, 1, 7, 512, 512, 2, (8, 128, 2, 231.7), (8, 256, 2, 116.1)),
]
OTHERS_US = {"maxpool": 104.9, "add56": 93.5, "add28": 46.8, "add14": 26.8, "add7": 15.3, "avgpool": 6.4}


@pytest.fixture(scope="module")
def cells() -> MeshSchedules:
    return MeshSchedules()


def test_the_networks_are_those_of_the_paper(cells: MeshSchedules) -> None:
    for name, *counts in (
        ("resnet50", 53, 4.0871, 23.455),
        ("vgg16", 13, 15.3466, 14.710),
        ("inception-v3", 94, 5.7112, 21.751),
    ):
        convs = [layer for layer in cells.layers(name, 0.0) if layer.op == "conv"]
        macs, weights = sum(layer.macs for layer in convs) / 1e9, sum(layer.weights for layer in convs) / 1e6
        assert [len(convs), round(macs, 4), round(weights, 3)] == counts


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_resnet_50_on_4x4_takes_the_sub_volumes_and_times_of_the_listing(cells: MeshSchedules, kind: str) -> None:
    listed = {row[2:5] + row[:2]: row[6 if kind == "dense" else 7] for row in LISTING}
    schedule = cells.schedule("resnet50", 4, 0.0 if kind == "dense" else 0.5, "paper")
    seen = 0
    for one in schedule.layers:
        layer = one.cut.layer
        if layer.op == "conv":
            key = layer.height, layer.channels, layer.out_channels, layer.kernel[0], layer.stride
            co, ci, rows, us = listed[key]
            assert (one.splits.co, one.splits.ci, one.splits.rows) == (co, ci, rows), layer.name
        else:
            us = OTHERS_US[layer.op + (str(layer.height) if layer.op == "add" else "")]
        assert one.seconds * 1e6 == pytest.approx(us, rel=0.002, abs=0.06), layer.name
        seen += 1
    assert seen == 71


def test_the_sums_are_those_of_the_listing(cells: MeshSchedules) -> None:
    for sparsity, published in ((0.0, 10.773), (0.5, 7.065)):
        assert cells.schedule("resnet50", 4, sparsity, "paper").seconds * 1e3 == pytest.approx(published, rel=0.001)


@pytest.mark.slow
def test_most_cells_of_table_ii_are_within_a_twentieth_and_nearly_all_within_an_eighth(cells: MeshSchedules) -> None:
    found = [cell["error"] for row in read_csv(PUBLISHED) for cell in measured(cells, row)]
    errors = [abs(error) for error in found if np.isfinite(error)]
    assert (len(errors), sum(e <= 0.05 for e in errors), sum(e <= 0.12 for e in errors)) == (36, 31, 35)


def test_a_conv_alone_takes_the_times_of_fig_4() -> None:
    dense, sparse = (
        compile_layers([conv(56, 64, 64, 3, density=d)], machine(4, listed=True)).seconds * 1e6 for d in (1, 0.5)
    )
    assert (dense, sparse) == (pytest.approx(216.6, rel=0.01), pytest.approx(123.3, rel=0.01))


def test_sound_times_fall_with_more_cores_and_stay_above_the_floors(cells: MeshSchedules) -> None:
    before = {0.0: np.inf, 0.5: np.inf}
    for cores in (4, 8):
        times = {sparsity: cells.schedule("resnet50", cores, sparsity, "none") for sparsity in before}
        for sparsity, schedule in times.items():
            assert max(floors(schedule)) < schedule.seconds < before[sparsity]
            before[sparsity] = schedule.seconds
        assert 0.62 <= times[0.5].seconds / times[0.0].seconds <= 0.70


def test_masks_that_are_even_cost_what_a_share_of_kept_blocks_costs_and_uneven_ones_more() -> None:
    even = np.add.outer(np.arange(32), np.arange(32)) % 2 == 0
    uneven = np.random.default_rng(0).permutation(even.ravel()).reshape(32, 32)
    share, exact, random = (
        compile_layers([conv(14, 256, 256, 3, **how)], machine()).seconds
        for how in ({"density": 0.5}, {"mask": even}, {"mask": uneven})
    )
    assert exact == pytest.approx(share, rel=0.03) and random > 1.05 * exact


def test_live_tensors_never_overlap_and_fit(cells: MeshSchedules) -> None:
    for cores, quirks in ((2, "paper"), (4, "paper"), (4, "none")):
        for one in cells.schedule("resnet50", cores, 0.0, quirks).layers:
            place = one.placement
            in_place = {p.start for p in place.inputs} if one.cut.layer.op == "add" else set()
            held = [*place.inputs, *place.live, place.weights]
            held += [] if place.output.start in in_place else [place.output]
            spans = sorted((p.start, p.end) for p in {(p.start, p.end): p for p in held if p.end > p.start}.values())
            assert all(a[1] <= b[0] for a, b in pairwise(spans)), one.cut.layer.name
            assert spans[-1][1] <= 512 * 1024


def test_every_hardware_of_the_plugin_is_a_machine() -> None:
    for cores in range(2, 9):
        plain, paper = machine(cores), machine(hardware=f"aie2-paper-{cores}x{cores}")
        assert plain.columns == plain.rows == cores
        rates = {"load", "load_weights", "write", "load_core", "load_core_weights", "write_core"}
        slower = {name: min(getattr(plain, name), 4e9) * 2**30 / 1e9 for name in rates}
        assert paper == attrs.evolve(plain, **slower) != plain


def test_other_hardware_is_refused() -> None:
    registry = load()
    with pytest.raises(SpecError, match="expected an outer level, then memtile and aie-core"):
        CoreMesh.of(registry.resolve("hardware", "cloud"), registry)
