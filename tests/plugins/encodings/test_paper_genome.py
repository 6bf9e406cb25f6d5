"""Section IV-F: the genome, and the example of Fig. 13."""

import numpy as np
from encoding_problems import matmul, problem

from sparsemap.pieces.contracts import Filter


def test_genome_of_the_running_example_has_39_genes():
    space = problem("matmul-32x64x48").space
    assert [(name, len(genes.names)) for name, genes in space.segment_genes.items()] == [
        ("orders", 5),
        ("tiling", 16),
        ("formats", 15),
        ("gate-skip", 3),
    ]
    assert len(space) == 39
    assert space.high.tolist() == [6] * 5 + [5] * 16 + [4] * 15 + [6] * 3
    assert space.low.tolist() == [1] * 21 + [0] * 18


def test_gene_names():
    names = problem("matmul-32x64x48").space.names
    assert names[:5] == ("order.L1_T", "order.L2_T", "order.L2_S", "order.L3_T", "order.L3_S")
    assert names[21:26] == ("P.1", "P.2", "P.3", "P.4", "P.5")
    assert names[36:] == ("gate-skip.GLB", "gate-skip.PEB", "gate-skip.MAC")


def figure_13():
    """M2 = 4, K4 = 2, K5 = 4, N3 = 4; P is B-B-CP; Skip Q <- P at the GLB, Gate Q <-> P at the MAC."""
    made = problem(matmul(4, 8, 4))
    orders, tiling = [1] * 5, [2, 2, 4, 5, 5, 3, 3]
    formats = [0, 0, 1, 1, 3] + [0] * 10
    return made, made.space.decode(np.array([[*orders, *tiling, *formats, 5, 0, 3]]))


def test_figure_13_mapping():
    made, designs = figure_13()
    loops = [
        (made.dims[dim], int(bound), level.name)
        for level, order, bounds in zip(made.mapping_levels, designs.order[0], designs.bounds[0], strict=True)
        for dim in order
        if (bound := bounds[dim]) > 1
    ]
    assert loops == [("m", 4, "L2_T"), ("n", 4, "L2_S"), ("k", 2, "L3_T"), ("k", 4, "L3_S")]


def test_figure_13_formats():
    """P has three tiled ranks, M2, K4 and K5: they take the last three slots."""
    made, designs = figure_13()
    chosen = [made.candidates("format")[i].name for i in designs.formats[0, made.roles["P"]]]
    assert chosen[-3:] == ["bitmask", "bitmask", "coordinate"]
    assert (designs.formats[0, made.roles["Q"]] == 0).all()


def test_figure_13_skip_and_gate():
    made, designs = figure_13()
    chosen = [made.candidates("mechanism")[i] for i in designs.mechanisms[0]]
    assert [piece.name for piece in chosen] == ["skip-q-by-p", "none", "gate-both"]
    at = dict(zip((place.name for place in made.places), chosen, strict=True))
    glb, mac = made.places[0], made.places[2]
    P, Q = made.roles["P"], made.roles["Q"]
    assert made.filters(at["GLB"], glb) == [(Filter("Q", ("P",), "skip", width=128), Q, (P,))]
    assert made.filters(at["PEB"], made.places[1]) == []
    assert [(target, leaders) for _, target, leaders in made.filters(at["MAC"], mac)] == [(P, (Q,)), (Q, (P,))]


def test_values_of_format_and_mechanism_genes():
    made = problem("mm3")
    assert [piece.name for piece in made.candidates("format")] == [
        "uncompressed", "bitmask", "run-length", "coordinate", "offset-pair"
    ]  # fmt: skip
    assert [piece.name for piece in made.candidates("mechanism")] == [
        "none", "gate-p-by-q", "gate-q-by-p", "gate-both", "skip-p-by-q", "skip-q-by-p", "skip-both"
    ]  # fmt: skip


def test_every_platform_and_size_configures_its_own_genome():
    for workload in ("mm1", "mm15", "conv4", "attention-scores"):
        made = problem(workload, "cloud")
        genes = len(made.mapping_levels) + 3 * 5 + len(made.places) + len(made.space.segment_genes["tiling"].names)
        assert len(made.space) == genes
    assert len(problem("mm1", "clustered").mapping_levels) == 7
