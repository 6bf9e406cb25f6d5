"""Stationary tensors: each word comes to its level once, in every design of the space and in no other design."""

import itertools

import numpy as np
import pytest
from encoding_problems import matmul, problem
from sparsemap_plugins.encodings.choices import stationary

from sparsemap.errors import DesignError, SpecError
from sparsemap.problem.designs import Designs
from sparsemap.testing import check_segment

CONV = {
    "einsum": "Z[k, y, x] = P[c, y + r, x + s] * Q[k, c, r, s]",
    "dims": {"k": 4, "c": 6, "y": 4, "x": 4, "r": 3, "s": 3},
    "density": {"P": 0.5, "Q": 0.5},
}
WORKLOADS = {"product": matmul(12, 8, 6), "convolution": CONV}


def staying(text, workload="product", hardware="clustered", **tables):
    space = {"extends": "paper", "stationary": text, **tables}
    return problem(WORKLOADS.get(workload, workload), hardware, space)


def one_design(made):
    return made.space.decode(made.space.sample(1, np.random.default_rng(0)))


def tile_changes(made, bounds, order, tensor, level):
    """Tiles of a tensor in the order in which they come to a level: a walk through all temporal loops outside."""
    loops = []
    for group, own, ranks in zip(made.mapping_levels, bounds, order, strict=True):
        if not group.spatial and group.storage < level:
            loops += [(made.dims[dim], int(own[dim])) for dim in ranks]
    moving = [dim in made.tensors[tensor].dims for dim, _ in loops]
    walk = itertools.product(*(range(bound) for _, bound in loops))
    tiles = [tuple(itertools.compress(step, moving)) for step in walk]
    return [tile for tile, _ in itertools.groupby(tiles)]


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("text", ["P", "Q", "Z", "role:Q at GLB", "Z at GLB"])
def test_every_tile_of_a_stationary_tensor_comes_once(workload, text):
    made = staying(text, workload)
    tensor, level = made.tensor(text.partition(" at ")[0]), made.levels[-1].index
    if " at " in text:
        level = next(one.index for one in made.levels if one.name == "GLB")
    designs = made.space.decode(made.space.guess(150, np.random.default_rng(0)))
    moved = 0
    for i in range(150):
        bounds, order = (designs.columns[name][..., i] for name in ("bounds", "order"))
        tiles = tile_changes(made, bounds, order, tensor, level)
        assert len(set(tiles)) == len(tiles)
        moved += len(tiles) > 1
    assert moved > 10, "some designs move the tensor"


def test_a_stationary_mapping_stays_as_it_is_and_another_one_is_refused():
    free, made = problem(WORKLOADS["product"], "clustered"), staying("Q")
    tensor, level = made.tensor("Q"), made.levels[-1].index
    columns = free.space.decode(free.space.guess(400, np.random.default_rng(1))).columns
    kept = 0
    for i in range(400):
        loops = {name: columns[name][..., i : i + 1] for name in ("bounds", "order")}
        tiles = tile_changes(made, loops["bounds"][..., 0], loops["order"][..., 0], tensor, level)
        segment = made.space.segments["tiling"]
        if len(set(tiles)) == len(tiles):
            kept += len(tiles) > 1
            genes = segment.encode(Designs(loops), made)
            assert (segment.decode(genes, made)["bounds"] == loops["bounds"]).all()
        else:
            with pytest.raises(DesignError, match="design 0: the space has stationary = 'Q at PE', and a loop moves"):
                segment.encode(Designs(loops), made)
    assert 20 < kept < 380


@pytest.mark.parametrize("name", ["orders", "tiling"])
@pytest.mark.parametrize("hardware", ["edge", "clustered"])
def test_keeps_the_contract_of_segments(name, hardware):
    made = staying("Z", hardware=hardware)
    check_segment(made.space.segments[name], made)


def test_equal_designs_have_one_canonical_genome():
    made, rng = staying("P"), np.random.default_rng(2)
    genomes = made.space.guess(300, rng)
    canonical = made.space.canonical(genomes)
    assert (made.space.canonical(canonical) == canonical).all()
    before, after = made.space.decode(genomes).columns, made.space.decode(canonical).columns
    assert (before["bounds"] == after["bounds"]).all()
    assert (canonical != genomes).any()


def test_without_a_level_the_innermost_memory_of_the_tensor_counts():
    assert stationary(staying("Q", hardware="edge")).text == "stationary = 'Q at PEB'"
    levels = {"GLB": {}, "PEB": {"bypass": ["Q"]}}
    assert stationary(staying("Q", hardware={"extends": "edge", "levels": levels})).text == "stationary = 'Q at GLB'"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("W", "space.toml: stationary: no tensor 'W'"),
        ("Q at GLBB", "space.toml: stationary: no level 'GLBB'; did you mean 'GLB'?"),
        ("Q at DRAM", "is 'Q at DRAM', expected a level inside DRAM with Q: "),
    ],
)
def test_a_wrong_text_names_the_file_the_key_and_the_names(text, expected):
    with pytest.raises(SpecError) as error:
        one_design(staying(text))
    assert expected in str(error.value)


def test_segments_without_this_rule_are_refused():
    with pytest.raises(SpecError, match="segments: segment 'tiling' does not obey the key `stationary`"):
        staying("Q", tiling={"type": "direct-tiling"}).space.names  # noqa: B018
