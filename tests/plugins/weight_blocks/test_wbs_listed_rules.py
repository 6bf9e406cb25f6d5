"""The rules that are in the authors' listings and not in the paper, on networks that are in none of them."""

import pytest
from sparsemap_plugins.weight_blocks import schedule
from sparsemap_plugins.weight_blocks.layers import MeshLayer
from sparsemap_plugins.weight_blocks.schedule import compile_layers
from sparsemap_plugins.weight_blocks.splits import Cut
from wbs_layers import conv, machine

SIZE = 24


def layer(name: str, op: str, inputs: str, channels: int, outputs: int) -> MeshLayer:
    return MeshLayer(name, op, tuple(inputs.split()), SIZE, SIZE, channels, SIZE, SIZE, outputs)


@pytest.mark.parametrize(
    ("cores", "repeats"), [(2, {"a": 4, "b": 3, "c": 2}), (3, {"a": 3, "b": 2}), (4, {"a": 2, "b": 2}), (8, {})]
)
def test_what_writes_into_a_concatenation_is_repeated_for_the_channels_of_the_outermost(
    cores: int, repeats: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """a (16 channels) and b (24) are joined, and with c (48) and a pool (40) again: 128 channels. Neither the pool, nor what
    only reads a concatenation, nor what a sum reads is repeated."""
    layers = [
        layer("stem", "conv", "input", 8, 32),
        layer("a", "conv", "stem", 32, 16),
        layer("b", "conv", "stem", 32, 24),
        layer("inner", "concat", "a b", 40, 40),
        layer("c", "conv", "inner", 40, 48),
        layer("pool", "maxpool", "inner", 40, 40),
        layer("outer", "concat", "inner c pool", 128, 128),
        layer("d", "conv", "outer", 128, 16),
        layer("e", "conv", "outer", 128, 16),
        layer("sum", "add", "d e", 16, 16),
        layer("f", "conv", "sum", 16, 16),
    ]
    listed = compile_layers(layers, machine(cores, listed=True))
    assert {one.cut.layer.name: n for one in listed.layers if (n := one.cut.layer.repeats) > 1} == repeats
    monkeypatch.setattr(schedule, "repeats_of", lambda *_: 1)
    once = compile_layers(layers, machine(cores, listed=True))
    for mine, other in zip(listed.layers, once.layers, strict=True):
        assert mine.steps.of["COMP"] == pytest.approx(mine.cut.layer.repeats * other.steps.of["COMP"])


@pytest.mark.parametrize(
    ("cores", "size", "outputs", "kernel", "columns"),
    [
        (2, 30, 512, 1, 15),  # 8 columns of outputs, one buffer takes 512 of their channels: as they are read
        (2, 60, 512, 1, 30),  # 15 columns, one buffer takes 256: half of the image, not 29 columns
        (4, 14, 1024, 1, 4),
        (8, 14, 2048, 1, 14),  # fewer columns than cores: each has the image
        (4, 14, 1024, 3, 5),  # of 1 x 1 layers only
    ],
)
def test_strided_1x1_layers_load_their_share_of_the_columns_where_a_buffer_cannot_take_all_outputs(
    cores: int, size: int, outputs: int, kernel: int, columns: int
) -> None:
    found = Cut(conv(size, 128, outputs, kernel, stride=2), machine(cores, listed=True))
    assert found.input_tile[0] == columns


def test_from_ddr_pools_get_128_bytes_of_parameters_and_sums_192() -> None:
    layers = [layer("a", "conv", "input", 8, 16), layer("p", "maxpool", "a", 16, 16), layer("s", "add", "a p", 16, 16)]
    _, pool, total = compile_layers(layers, machine(4, listed=True)).layers
    assert [one.steps.of["LOADW"] * 4 * 2**30 for one in (pool, total)] == [128, 192]
