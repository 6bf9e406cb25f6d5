"""Tables that a problem keeps: by owner and content, never by the place of an object in memory."""

import attrs
import numpy as np
import pytest
from sparsemap_plugins.encodings.fixed import Fixed

from sparsemap import load_problem
from sparsemap.pieces.loading import load
from sparsemap.problem.tables import Tables

REGISTRY = load()


def owner() -> None:
    """Whom the tables of these tests belong to."""


def test_segments_of_one_type_decode_to_what_each_of_them_says() -> None:
    problem = load_problem("mm1", "edge", registry=REGISTRY)
    found = []
    for dims in (["m", "k", "n"], ["n", "m", "k"], ["k", "n", "m"]):
        segment = Fixed(order={"L1_T": dims})  # gone before the next one is made, which may get its place in memory
        found.append(segment.decode(np.zeros((0, 1), np.int64), problem)["order"][0, :, 0].tolist())
        del segment
    assert found == [[0, 1, 2], [2, 0, 1], [1, 2, 0]]


def test_a_key_counts_by_content() -> None:
    tables, made = Tables(), []

    def make() -> object:
        made.append(None)
        return object()

    first = tables.remember((owner, {"a": [1, 2]}, np.arange(3)), make)
    assert tables.remember((owner, {"a": (1, 2)}, np.arange(3)), make) is first
    assert tables.remember((owner, {"a": [1, 2]}, np.arange(4)), make) is not first
    assert tables.remember((owner, {"a": [2, 1]}, np.arange(3)), make) is not first
    assert len(made) == 3


def test_a_key_starts_with_what_the_table_belongs_to() -> None:
    with pytest.raises(TypeError, match="a class or function, then what the table depends on; found 'thing'"):
        Tables().remember("thing", object)  # type: ignore[arg-type]


def test_tables_of_the_workload_are_shared_by_all_chips_and_by_no_other_workload() -> None:
    problem = load_problem("mm1", "edge", registry=REGISTRY)
    chip = attrs.evolve(problem.chip, bandwidth=problem.chip.bandwidth / 2)
    assert problem.on(chip).shared is problem.shared
    assert problem.variant(objective=problem.objective).shared is problem.shared
    assert problem.variant(workload=problem.workload).shared is not problem.shared
    assert problem.on(chip).remember((owner,), object) is not problem.remember((owner,), object)
