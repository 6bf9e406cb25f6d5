"""Schedules executed on addressed memories: bit-equal outputs, the bytes of the time model, events, and what goes wrong."""

import json
from pathlib import Path

import attrs
import numpy as np
import pytest
from click.testing import CliRunner
from sparsemap_plugins.weight_blocks.durations import constant
from sparsemap_plugins.weight_blocks.layers import MeshLayer
from sparsemap_plugins.weight_blocks.machinery import BrokenSchedule
from sparsemap_plugins.weight_blocks.schedule import compile_layers
from sparsemap_plugins.weight_blocks.schedule_file import read_schedule, write_schedule
from sparsemap_plugins.weight_blocks.simulate import NetworkData, SimulationOutcome, pipeline, simulate
from sparsemap_plugins.weight_blocks.splits import Splits
from wbs_layers import executed, machine

from sparsemap.cli.main import cli


def conv(name, source, shape, outputs, kernel, stride=1, padding=None, density=1.0, mask=None) -> MeshLayer:
    if padding is None:
        padding = kernel[0] // 2, kernel[1] // 2
    out = [(size + 2 * p - k) // stride + 1 for size, p, k in zip(shape[:2], padding, kernel, strict=True)]
    return MeshLayer(name, "conv", (source,), *shape, *out, outputs, kernel, stride, padding, density, mask)


def other(name, op, sources, shape, kernel=(1, 1), stride=1, padding=(0, 0)) -> MeshLayer:
    out = [(size + 2 * p - k) // stride + 1 for size, p, k in zip(shape[:2], padding, kernel, strict=True)]
    return MeshLayer(name, op, sources, *shape, *out, shape[2], kernel, stride, padding)


def run(
    folder: Path, layers: list[MeshLayer], columns: int, rows: int = 0, memtile: int = 0, index: str = "u16"
) -> SimulationOutcome:
    mesh = attrs.evolve(machine(2), columns=columns, rows=rows or columns, index=index)
    if memtile:
        mesh = attrs.evolve(mesh, memtile=memtile)
    write_schedule(folder, "net", "mesh", compile_layers(layers, mesh))
    return executed(folder)


RNG = np.random.default_rng(0)
RANDOM, EMPTY_ROW = RNG.random((5, 8)) < 0.5, RNG.random((5, 8)) < 0.5
EMPTY_ROW[0] = False
CASES = {
    # layer, columns, rows of cores, bytes of a memory tile
    "first layer, 3 channels, 7x7/2": (conv("a", "x", (30, 35, 3), 64, (7, 7), 2), 4, 4, 0),
    "1x7 on an odd width": (conv("a", "x", (9, 73, 16), 24, (1, 7)), 8, 8, 0),
    "7x1": (conv("a", "x", (17, 17, 32), 40, (7, 1)), 3, 3, 0),
    "5x5 without padding": (conv("a", "x", (12, 35, 24), 16, (5, 5), 1, (0, 0)), 4, 4, 0),
    "1x1/2": (conv("a", "x", (14, 14, 64), 96, (1, 1), 2), 2, 2, 0),
    "3x3/2 of a wide image": (conv("a", "x", (7, 149, 8), 16, (3, 3), 2, (0, 0)), 7, 7, 0),
    "7 pixels on 8 columns": (conv("a", "x", (7, 7, 64), 104, (3, 3)), 8, 8, 0),
    "one core": (conv("a", "x", (8, 9, 16), 24, (3, 3)), 1, 1, 0),
    "more rows than columns": (conv("a", "x", (8, 14, 128), 104, (3, 3), density=0.5), 2, 5, 0),
    "input channels in parts": (conv("a", "x", (14, 14, 512), 64, (3, 3), density=0.5), 2, 2, 0),
    "tiles of rows": (conv("a", "x", (40, 35, 24), 64, (3, 3)), 2, 2, 24_000),
    "passes of weights": (conv("a", "x", (7, 7, 128), 128, (3, 3)), 2, 2, 40_000),
    "a random mask": (conv("a", "x", (9, 14, 64), 40, (3, 3), mask=RANDOM), 4, 4, 0),
    "an empty block row": (conv("a", "x", (9, 14, 64), 40, (3, 3), mask=EMPTY_ROW), 4, 4, 0),
    "nothing kept": (conv("a", "x", (9, 14, 64), 40, (1, 1), mask=np.zeros((5, 8), bool)), 4, 4, 0),
}


@pytest.mark.parametrize("case", CASES)
def test_convolutions_are_bit_equal_and_move_what_the_model_counts(case: str, tmp_path: Path) -> None:
    layer, columns, rows, memtile = CASES[case]
    outcome = run(tmp_path, [layer], columns, rows, memtile)
    assert outcome.correct, outcome.text()
    assert outcome.events == pytest.approx(outcome.seconds, rel=0.002)


def graph(height: int, width: int, channels: int) -> list[MeshLayer]:
    """All kinds of operations, with a residual input and a concatenation."""
    shape = height, width, channels
    layers = [conv("a", "x", shape, 64, (3, 3))]
    shape = height, width, 64
    layers += [conv("b", "a", shape, 64, (3, 3), density=0.5), other("sum", "add", ("b", "a"), shape)]
    layers += [conv("left", "sum", shape, 16, (1, 1)), conv("right", "sum", shape, 24, (3, 3), density=0.5)]
    layers += [MeshLayer("both", "concat", ("left", "right"), height, width, 40, height, width, 40)]
    shape = height, width, 40
    layers += [other("mean", "avgpool", ("both",), shape, (3, 3), 1, (1, 1))]
    layers += [other("max", "maxpool", ("mean",), shape, (3, 3), 2, (1, 1))]
    shape = layers[-1].out_height, layers[-1].out_width, 40
    return [*layers, other("all", "avgpool", ("max",), shape, shape[:2])]


@pytest.mark.parametrize(("columns", "memtile"), [(1, 0), (3, 0), (4, 9_000), (8, 0)])
def test_networks_of_all_operations_are_bit_equal(columns: int, memtile: int, tmp_path: Path) -> None:
    outcome = run(tmp_path, graph(10, 13, 24), columns, columns, memtile)
    assert len(outcome.equal) == 8 and outcome.correct, outcome.text()


def test_the_last_step_through_the_channels_of_a_pool_counts_with_those_that_it_has(tmp_path: Path) -> None:
    layers = [other("a", "maxpool", ("x",), (9, 10, 40), (3, 3), 2, (1, 1))]
    mesh = attrs.evolve(machine(2), columns=1, rows=1)
    schedule = compile_layers(layers, mesh, choose=lambda cut, placement: Splits(16, 40, 2))
    write_schedule(tmp_path, "net", "mesh", schedule)
    outcome = executed(tmp_path)
    assert outcome.correct and outcome.events == pytest.approx(outcome.seconds), outcome.text()


def test_pruned_blocks_are_never_multiplied(tmp_path: Path) -> None:
    mask = np.random.default_rng(1).random((8, 8)) < 0.4
    layers = [conv("a", "x", (8, 16, 64), 64, (3, 3), mask=mask)]
    outcome = run(tmp_path, layers, 4, index="bitmap")
    assert outcome.correct
    splits = read_schedule(tmp_path).schedule.plans["a"].splits
    steps = -(-8 // splits.rows)
    assert outcome.tally.blocks == mask.sum() * steps * splits.rows * 16


def test_a_stale_address_is_found(tmp_path: Path) -> None:
    run(tmp_path, graph(10, 13, 24), 2)
    compiled = read_schedule(tmp_path)
    at = next(i for i, one in enumerate(compiled.instructions) if (one.layer, one.type) == ("b", "LOADFM"))
    wrong = attrs.evolve(compiled.instructions[at], address=(compiled.instructions[at].address[0] - 4096,))
    spoiled = attrs.evolve(
        compiled, instructions=(*compiled.instructions[:at], wrong, *compiled.instructions[at + 1 :])
    )
    with pytest.raises(BrokenSchedule, match=r"instructions\[\d+\], LOADFM of b: reads a where"):
        simulate(spoiled, NetworkData.of(spoiled))


@pytest.mark.parametrize("joined", ["", "bc", "ba"])
def test_every_output_that_no_layer_reads_reaches_ddr(tmp_path, joined) -> None:
    """One of them in the midst of the network, or parts of a concatenation that ends it, one of which is read besides."""
    shape = 8, 8, 16
    layers = [conv("a", "x", shape, 16, (3, 3)), conv("b", "a", shape, 16, (3, 3)), conv("c", "a", shape, 16, (1, 1))]
    if joined:
        layers.append(MeshLayer("d", "concat", tuple(joined), 8, 8, 32, 8, 8, 32))
    outcome = run(tmp_path, layers, 2)
    found = {name: words.shape[0] for name, words in outcome.outputs.items()}
    assert outcome.correct and found == {"": {"b": 16, "c": 16}, "bc": {"d": 32}, "ba": {"c": 16, "d": 32}}[joined]


def test_constant_stages_with_two_buffers_take_the_formula() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        load, compute, write = rng.integers(0, 50, 3) * rng.random()
        count = int(rng.integers(1, 12))
        events = pipeline(load, compute, write, count)
        assert events == pytest.approx(constant(load, compute, write, count), rel=1e-12, abs=1e-12)


def test_one_buffer_takes_longer(tmp_path: Path) -> None:
    outcome = run(tmp_path, graph(20, 26, 24), 4)
    assert 1.05 < outcome.single / outcome.events < 2.0


NETWORK = """
kind = "network"
name = "tiny"
input = [3, 12, 14]
layers = [
  { name = "a", type = "conv2d", k = 32, c = 3, p = 12, q = 14, r = 3, s = 3, padding = 1 },
  { name = "b", type = "conv2d", k = 64, c = 32, p = 6, q = 7, r = 3, s = 3, stride = 2, padding = 1 },
  { name = "fc", type = "linear", k = 2688, n = 10 },
]
"""


def command(*args: str) -> str:
    result = CliRunner().invoke(cli, args, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_pruned_weights_are_compiled_and_simulated_and_their_splits_keep_the_next_masks_even(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("tiny.toml").write_text(NETWORK)
    shapes = {"a": (32, 3, 3, 3), "b": (64, 32, 3, 3), "fc": (10, 2688)}
    weights = {name: RNG.standard_normal(shape) for name, shape in shapes.items()}
    weights["b"] *= np.linspace(0.5, 1, 64)[:, None, None, None]  # so that later outputs keep more blocks
    np.savez("net.npz", **weights)
    once = ("extra", "prune", "net.npz", "--method", "one-shot", "--sparsity", "0.5")
    kept = {}
    for name, more in (("uneven", ()), ("even", ("--balance", "rows", "--splits", "uneven-out/masks.json"))):
        command(*once, *more, "--out", name)
        said = command("extra", "compile", "tiny.toml", "aie2-2x2", "--masks", name, "--out", f"{name}-out")
        assert "tiny on aie2-2x2" in said and ("blocks are stored" in said) == (name == "uneven")
        assert "3 of 3 layers bit-equal" in command("extra", "simulate", f"{name}-out")
        pruned, compiled = (
            json.loads(Path(folder, "masks.json").read_text())["layers"]["b"] for folder in (name, f"{name}-out")
        )
        assert np.array_equal(compiled["mask"], np.load(f"{name}/b-mask.npy"))
        kept[name] = compiled
    assert pruned == {**kept["even"], "mask": "b-mask.npy"} and pruned["padding"] == 0 < kept["uneven"]["padding"]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--sparsity", "0.5", "--masks", "MASKS"], "exclude each other"),
        (["--masks", "MASKS"], "masks: b: is 2 x 4 blocks, expected 8 x 4"),
    ],
)
def test_wrong_options_are_told(more: list[str], told: str, tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(NETWORK)
    np.savez(tmp_path / "masks.npz", b=np.ones((2, 4), bool))
    given = [str(tmp_path / "masks.npz") if part == "MASKS" else part for part in more]
    args = ["extra", "compile", str(tmp_path / "tiny.toml"), "aie2-2x2", "--out", str(tmp_path / "out"), *given]
    result = CliRunner().invoke(cli, args)
    assert result.exit_code and told in " ".join(result.output.split()), result.output


def test_a_file_that_is_no_schedule_is_told(tmp_path: Path) -> None:
    (tmp_path / "schedule.json").write_text('{"kind": "design"}')
    result = CliRunner().invoke(cli, ["extra", "simulate", str(tmp_path)])
    assert result.exit_code and "expected 'aie2-schedule'" in result.output
