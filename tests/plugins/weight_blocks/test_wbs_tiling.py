"""Chains of layers in tiles: what tiles need, that nothing leaves the memory tiles, and that outputs are the same."""

from pathlib import Path

import attrs
import numpy as np
import pytest
from sparsemap_plugins.weight_blocks.layers import MeshLayer
from sparsemap_plugins.weight_blocks.pages import MeshSchedules, point, segment
from sparsemap_plugins.weight_blocks.schedule import (
    best_tiles,
    chains,
    compile_layers,
    compile_tiled,
    projection,
    recomputed,
)
from sparsemap_plugins.weight_blocks.schedule_file import read_schedule, write_schedule
from sparsemap_plugins.weight_blocks.simulate import NetworkData, execute
from wbs_layers import executed, machine

MASK = np.random.default_rng(0).random((4, 3)) < 0.5
CHAIN = [
    MeshLayer("a", "conv", ("x",), 40, 30, 16, 40, 30, 24, (3, 3), 1, (1, 1)),
    MeshLayer("b", "conv", ("a",), 40, 30, 24, 40, 30, 32, (5, 5), 1, (2, 2), mask=MASK),
    MeshLayer("c", "maxpool", ("b",), 40, 30, 32, 20, 15, 32, (3, 3), 2, (1, 1)),
]
SMALL = attrs.evolve(machine(2), memtile=20_000)


def test_rows_that_a_tile_needs_overlap_and_end_at_the_borders() -> None:
    assert list(projection(CHAIN, 0, 5)) == [(0, 13), (0, 12), (0, 10), (0, 5)]
    assert list(projection(CHAIN, 5, 10)) == [(6, 23), (7, 22), (9, 20), (5, 10)]
    assert next(iter(projection(CHAIN, 15, 20))) == (26, 40)


def test_tiles_compute_again_what_they_share() -> None:
    chain = segment(MeshSchedules().layers("vgg16", 0.0))
    factors = [round(recomputed(chain, count), 3) for count in range(1, 9)]
    assert factors == [1.0, 1.018, 1.036, 1.054, 1.071, 1.089, 1.107, 1.125]


@pytest.mark.parametrize("count", [2, 3, 7])
def test_tiles_have_the_output_of_the_whole_bit_by_bit(count: int, tmp_path: Path) -> None:
    assert [[layer.name for layer in chain] for chain in chains(compile_layers(CHAIN, SMALL), CHAIN)] == [
        ["a", "b", "c"]
    ]
    outputs = []
    for name, schedule in (
        ("whole", compile_layers(CHAIN, SMALL)),
        ("tiled", compile_tiled(CHAIN, SMALL, [(CHAIN, count)])),
    ):
        write_schedule(tmp_path / name, name, "mesh", schedule)
        compiled = read_schedule(tmp_path / name)
        _, equal, ddr = execute(compiled, NetworkData.of(compiled))
        assert all(equal.values())
        outputs.append(ddr["c"])
    assert np.array_equal(*outputs) and outputs[0].any()


def test_the_best_number_of_tiles_is_found_and_layers_around_a_chain_stay(tmp_path: Path) -> None:
    slow = attrs.evolve(SMALL, load=0.25e9, load_weights=4e9, write=0.25e9)
    after = MeshLayer("d", "conv", ("c",), 20, 15, 32, 20, 15, 8, (1, 1), 1, (0, 0))
    layers = [*CHAIN, after]
    schedule, counts = best_tiles(layers, slow)
    assert schedule.seconds < compile_layers(layers, slow).seconds and set(counts) == {"a"}
    write_schedule(tmp_path, "net", "mesh", schedule)
    assert executed(tmp_path).correct


def test_the_figure_has_its_best_point_where_nothing_leaves_the_memory_tiles() -> None:
    cells = MeshSchedules()
    dense = {count: point(cells, "dense", count) for count in (1, 4, 5, 6)}
    sparse = {count: point(cells, "sparse", count)["seconds"] for count in (1, 5)}
    seconds = {count: row["seconds"] for count, row in dense.items()}
    assert seconds[1] == pytest.approx(0.0246, rel=0.03) and min(seconds, key=lambda count: seconds[count]) == 5
    assert seconds[5] == pytest.approx(0.0129, rel=0.05) and sparse[5] == pytest.approx(0.0103, rel=0.05)
    assert seconds[1] > sparse[1] > seconds[5] > sparse[5]
    assert all((row["spilled_layers"] == 0) == (count >= 5) for count, row in dense.items())
