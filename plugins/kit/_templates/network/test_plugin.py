from sparsemap.pieces.loading import load
from sparsemap.problem.network import nodes_of

REGISTRY = load()


def test_its_shapes_fit():
    nodes = nodes_of(REGISTRY.get("network", "plugin-name"), REGISTRY)
    assert [node.name for node in nodes if node.loops is not None] == ["conv1", "conv2", "fc"]
