"""What `compile` takes: hardware with other blocks and buffers, fully connected layers, weights of a user; and what not."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from sparsemap.cli.main import cli

NETWORK = """
kind = "network"
name = "net"
input = [3, 12, 14]
layers = [
  {{ name = "a", type = "conv2d", k = 32, c = 3, p = 12, q = 14, r = 3, s = 3, padding = 1 }},
  {{ name = "b", type = "conv2d", k = 48, c = 32, p = 6, q = 7, r = 3, s = 3, stride = 2, padding = 1 }},
  {more}
]
"""
HARDWARE = """
kind = "hardware"
name = "own"
extends = "aie2-2x2"
levels.Core.class = "aie-core"
{more}
"""


def command(*args: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, args)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, " ".join(result.output.split())


def compiled(folder: Path, network: str, *options: str, hardware: str = "aie2-2x2") -> tuple[int, str]:
    (folder / "net.toml").write_text(network)
    return command("extra", "compile", str(folder / "net.toml"), hardware, "--out", str(folder / "out"), *options)


LAYOUTS = {
    "blocks of 16x16": "levels.Core.block = [16, 16]",
    "blocks of 16x4": "levels.Core.block = [16, 4]",
    "larger buffers": 'levels.Core.input_buffer = "16 KiB"\nlevels.Core.output_buffer = "16 KiB"\n'
    'levels.Core.weight_buffer = "32 KiB"\nlevels.Core.capacity = "128 KiB"',
    "small buffers": 'levels.Core.input_buffer = "2 KiB"\nlevels.Core.output_buffer = "1 KiB"\n'
    'levels.Core.weight_buffer = "3 KiB"',
    "a bitmap of small blocks": 'levels.Core.block = [4, 4]\nlevels.Core.index = "bitmap"',
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_other_blocks_and_buffers_are_bit_equal(layout: str, tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(HARDWARE.format(more=LAYOUTS[layout]))
    assert command("check", str(own))[0] == 0
    more = '{ name = "g", type = "global-average" }, { name = "fc", type = "linear", k = 48, n = 10 },'
    status, said = compiled(tmp_path, NETWORK.format(more=more), "--sparsity", "0.5", hardware=str(own))
    assert status == 0, said
    status, said = command("extra", "simulate", str(tmp_path / "out"))
    assert status == 0 and "4 of 4 layers bit-equal" in said, said


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ('levels.Core.input_buffer = "144 KiB"', "weight_buffer: ends at byte 327,680 of 65,536"),
        ("levels.Core.block = [0, 8]", "is 0, expected at least 1"),
        ('levels.Core.weight_buffer = "64 B"', "layer a: no sub-volume fits in the buffers of a core"),
    ],
)
def test_cores_that_cannot_hold_their_buffers_are_refused(more: str, told: str, tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(HARDWARE.format(more=more))
    status, said = compiled(tmp_path, NETWORK.format(more=""), hardware=str(own))
    assert status and told in said, said


def test_nothing_behind_a_fully_connected_layer_is_dropped(tmp_path: Path) -> None:
    more = '{ name = "fc", type = "linear", k = 2016, n = 40 }, { name = "fc2", type = "linear", k = 40, n = 10 },'
    status, said = compiled(tmp_path, NETWORK.format(more=more), "--sparsity", "0.3")
    assert status == 0 and "4 of 4 layers" in said and "of the blocks of 2 layers are pruned, 30.0% were wanted" in said
    head, *rows = (tmp_path / "out" / "times.md").read_text().splitlines()
    assert "dense us" in head and [row.split()[1] for row in rows if "%" in row] == ["a", "b", "fc", "fc2"]
    assert "4 of 4 layers bit-equal" in command("extra", "simulate", str(tmp_path / "out"))[1]
    layers, schedule = (tmp_path / "out" / name for name in ("layers.csv", "schedule.json"))
    total = sum(float(row["seconds"]) for row in csv.DictReader(layers.open()))
    assert total == pytest.approx(json.loads(schedule.read_text())["seconds"])


def test_feed_forward_blocks_of_transformers_are_compiled_with_rows_on_all_columns_of_cores(tmp_path: Path) -> None:
    layers = """
      { name = "up", type = "linear", m = 30, k = 32, n = 64 },
      { name = "down", type = "linear", m = 30, k = 64, n = 32 },
      { name = "add", type = "add", inputs = ["down", "input"] },
    """
    network = f'kind = "network"\nname = "ff"\ninput = [30, 32]\nlayers = [{layers}]'
    status, said = compiled(tmp_path, network, "--sparsity", "0.5")
    assert status == 0, said
    assert "3 of 3 layers bit-equal" in command("extra", "simulate", str(tmp_path / "out"))[1]
    entries = json.loads((tmp_path / "out" / "schedule.json").read_text())["layers"]
    assert [entry["relu"] for entry in entries] == [True, False, False] and entries[0]["out_width"] == 2


def test_a_mask_of_words_of_a_flattened_image_is_one_of_its_channels(tmp_path: Path) -> None:
    """Words of a channel follow each other: a block of channels is kept where one of its blocks of words is."""
    more = '{ name = "fc", type = "linear", k = 2016, n = 40 }, { name = "fc2", type = "linear", k = 40, n = 10 },'
    words = np.zeros((5, 252), np.uint8)
    words[:, 41] = words[2, 42] = 1  # the last words of channels 0 to 7, and the first of 8 to 15
    np.savez(tmp_path / "masks.npz", fc=words)
    status, said = compiled(tmp_path, NETWORK.format(more=more), "--masks", str(tmp_path / "masks.npz"))
    assert status == 0, said
    mask = json.loads((tmp_path / "out" / "masks.json").read_text())["layers"]["fc"]["mask"]
    assert mask == [[1, kept, 0, 0, 0, 0] for kept in (0, 0, 1, 0, 0)]
    assert "4 of 4 layers bit-equal" in command("extra", "simulate", str(tmp_path / "out"))[1]


REFUSED = {
    "depthwise": (
        '{ name = "d", type = "depthwise", c = 48, p = 6, q = 7, r = 3, s = 3, padding = 1 },',
        "'depthwise'",
    ),
    "groups": ('{ name = "d", type = "conv2d", k = 48, c = 48, groups = 2, p = 6, q = 7 },', "groups and dilation"),
    "attention": ('{ name = "d", type = "matmul", m = 48, k = 42, n = 48, inputs = ["b", "b"] },', "'matmul'"),
    "three operands": ('{ name = "d", type = "add", inputs = ["b", "b", "b"] },', "two different tensors"),
    "a sum of one": ('{ name = "d", type = "add", inputs = ["b", "b"] },', "two different tensors"),
    "odd parts": (
        '{ name = "n", type = "conv2d", k = 12, c = 48, p = 6, q = 7 },'
        '{ name = "d", type = "concat", inputs = ["b", "n"] },',
        "multiples of 8 channels; n has 12",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_compiled_is_refused_by_name(case: str, tmp_path: Path) -> None:
    more, told = REFUSED[case]
    status, said = compiled(tmp_path, NETWORK.format(more=more))
    assert status and "layer d" in said and told in said, said


def test_weights_and_an_input_of_a_user_give_the_outputs_of_numpy(tmp_path: Path) -> None:
    network = """
    kind = "network"
    name = "one"
    input = [8, 5, 6]
    layers = [
      { name = "a", type = "conv2d", k = 16, c = 8, p = 5, q = 6 },
      { name = "b", type = "conv2d", k = 8, c = 16, p = 5, q = 6 },
      { name = "sum", type = "add", inputs = ["b", "input"] },
    ]
    """
    assert compiled(tmp_path, network)[0] == 0
    rng = np.random.default_rng(0)
    image = rng.integers(-128, 128, (8, 5, 6), np.int8)
    weights = {
        "a": rng.integers(-128, 128, (16, 8, 1, 1), np.int8),
        "b": rng.integers(-128, 128, (8, 16, 1, 1), np.int8),
    }
    extra = {"a.bias": rng.integers(-500, 500, 16, np.int32), "a.shift": np.array(8), "b.shift": np.array(9)}
    np.save(tmp_path / "image.npy", image)
    np.savez(tmp_path / "weights.npz", **weights, **extra)
    given = ("--weights", str(tmp_path / "weights.npz"), "--input", str(tmp_path / "image.npy"))
    status, said = command("extra", "simulate", str(tmp_path / "out"), *given, "--outputs", str(tmp_path / "found.npz"))
    assert status == 0 and "3 of 3" in said, said
    hidden = (
        np.einsum("oc,chw->ohw", weights["a"][..., 0, 0].astype(int), image.astype(int))
        + extra["a.bias"][:, None, None]
    )
    hidden = np.clip((hidden + 128) >> 8, 0, 127)
    linear = np.clip((np.einsum("oc,chw->ohw", weights["b"][..., 0, 0].astype(int), hidden) + 256) >> 9, -128, 127)
    assert (
        np.array_equal(np.load(tmp_path / "found.npz")["sum"], np.clip(linear + image, 0, 127)) and (linear < 0).any()
    )
    np.savez(tmp_path / "weights.npz", a=weights["a"], b=weights["b"][:4])
    assert "expected whole (8, 16, 1, 1)" in command("extra", "simulate", str(tmp_path / "out"), *given)[1]


@pytest.mark.parametrize("rectified", [[], ["b"], ["a", "b"]])
def test_relus_and_outputs_are_those_that_a_network_names(rectified: list[str], tmp_path: Path) -> None:
    layers = [
        '{ name = "a", type = "conv2d", k = 16, c = 8, p = 5, q = 6 }',
        '{ name = "b", type = "conv2d", k = 8, c = 16, p = 5, q = 6 }',
    ]
    head = f'kind = "network"\nname = "two"\ninput = [8, 5, 6]\noutputs = ["a"]\nrectified = {json.dumps(rectified)}'
    status, said = compiled(tmp_path, f"{head}\nlayers = [{', '.join(layers)}]")
    assert status == 0, said
    rng = np.random.default_rng(0)
    image = rng.integers(-128, 128, (8, 5, 6), np.int8)
    weights = {
        name: rng.integers(-128, 128, (*sides, 1, 1), np.int8) for name, sides in (("a", (16, 8)), ("b", (8, 16)))
    }
    np.save(tmp_path / "image.npy", image)
    np.savez(tmp_path / "weights.npz", **weights, **{f"{name}.shift": np.array(9) for name in weights})
    given = ("--weights", str(tmp_path / "weights.npz"), "--input", str(tmp_path / "image.npy"))
    status, said = command("extra", "simulate", str(tmp_path / "out"), *given, "--outputs", str(tmp_path / "found.npz"))
    assert status == 0 and "2 of 2" in said, said
    found, words = np.load(tmp_path / "found.npz"), image.astype(int)
    assert set(found) == {"a", "b"}
    for name, kernel in weights.items():
        sums = np.einsum("oc,chw->ohw", kernel[..., 0, 0].astype(int), words)
        words = np.clip((sums + 256) >> 9, 0 if name in rectified else -128, 127)
        assert np.array_equal(found[name], words)


def test_a_relu_or_an_output_of_no_layer_is_told(tmp_path: Path) -> None:
    status, said = compiled(tmp_path, NETWORK.replace("input =", 'outputs = ["c"]\ninput =', 1).format(more=""))
    assert status and "outputs[0]" in said and "'c'" in said, said


def test_rows_of_words_go_in_and_come_out_as_rows(tmp_path: Path) -> None:
    layer = '{ name = "a", type = "linear", m = 6, k = 16, n = 8 }'
    assert compiled(tmp_path, f'kind = "network"\nname = "rows"\ninput = [6, 16]\nlayers = [{layer}]')[0] == 0
    rng = np.random.default_rng(0)
    words, weights = rng.integers(-128, 128, (6, 16), np.int8), rng.integers(-128, 128, (8, 16), np.int8)
    np.save(tmp_path / "words.npy", words)
    np.savez(tmp_path / "weights.npz", **{"a": weights, "a.shift": np.array(9)})
    given = ("--weights", str(tmp_path / "weights.npz"), "--input", str(tmp_path / "words.npy"))
    status, said = command("extra", "simulate", str(tmp_path / "out"), *given, "--outputs", str(tmp_path / "found.npz"))
    assert status == 0, said
    expected = np.clip((words.astype(int) @ weights.T.astype(int) + 256) >> 9, -128, 127)
    assert np.array_equal(np.load(tmp_path / "found.npz")["a"], expected)


@pytest.mark.parametrize("options", [("--sparsity", "1"), ()])
def test_layers_without_a_block_and_windows_larger_than_what_lies_before_run(options, tmp_path: Path) -> None:
    network = """
    kind = "network"
    name = "edges"
    input = [16, 1, 2]
    layers = [
      { name = "a", type = "conv2d", k = 16, c = 16, p = 2, q = 2, r = 5, s = 3, padding = [[1, 4], [1, 1]] },
      { name = "b", type = "conv2d", k = 16, c = 16, p = 2, q = 2, r = 1, s = 1 },
    ]
    """
    status, said = compiled(tmp_path, network, *options)
    assert status == 0, said
    status, said = command("extra", "simulate", str(tmp_path / "out"))
    assert status == 0 and "2 of 2 layers bit-equal" in said, said
