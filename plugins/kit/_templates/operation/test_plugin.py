import pytest

from sparsemap.pieces.loading import load
from sparsemap.problem.network import nodes_of

REGISTRY = load()


def test_it_doubles_rows_and_columns():
    assert tuple(REGISTRY.build("operation", {"type": "plugin-name"}).shape([(8, 7, 7)])) == (8, 14, 14)


def test_what_does_not_fit_is_told():
    with pytest.raises(ValueError, match="expected one image"):
        REGISTRY.build("operation", {"type": "plugin-name"}).shape([(8,)])


def test_the_shapes_of_a_network_with_it_fit():
    assert [node.name for node in nodes_of(REGISTRY.get("network", "plugin-name"), REGISTRY)] == [
        "first",
        "second",
    ]
