import numpy as np
import pytest
from encoding_problems import matmul, problem

from sparsemap.errors import DesignError, SpecError
from sparsemap.problem.designs import Designs
from sparsemap.testing import check_segment

MAPPING = {
    "type": "fixed",
    "order": {"L1_T": ["n", "m"], "L3_T": ["k", "m", "n"]},
    "bounds": {"L1_T": {"m": 2, "k": 4}, "L2_S": {"n": 4}, "L3_T": {"m": 2, "k": 2}},
}
STRATEGY = {
    "type": "fixed",
    "formats": {
        "P": ["uncompressed", "bitmask"],
        "Q": ["offset-pair", "coordinate"],
        "Z": ["uncompressed", "uncompressed"],
    },
    "mechanisms": {"GLB": "skip-q-by-p", "PEB": "none", "MAC": "gate-both"},
}


def with_fixed(mapping=MAPPING, strategy=STRATEGY):
    layout = {"segments": ["mapping", "strategy"], "mapping": mapping, "strategy": strategy}
    return problem(matmul(4, 8, 4), "edge", layout)


def wrong(mapping=MAPPING, strategy=STRATEGY):
    with pytest.raises(SpecError) as error:
        with_fixed(mapping, strategy).space.names  # noqa: B018
    return str(error.value)


def test_a_fixed_mapping_and_strategy_have_no_genes():
    made = with_fixed()
    assert len(made.space) == 0
    designs = made.space.decode(made.space.sample(3, np.random.default_rng(0)))
    assert designs.order[2].tolist() == [[2, 0, 1], [0, 1, 2], [0, 1, 2], [1, 0, 2], [0, 1, 2]]
    assert designs.bounds[2].tolist() == [[2, 4, 1], [1, 1, 1], [1, 1, 4], [2, 2, 1], [1, 1, 1]]
    names = [[made.candidates("format")[i].name for i in row] for row in designs.formats[1]]
    assert names == [STRATEGY["formats"][tensor] for tensor in "PQZ"]
    names = [made.candidates("mechanism")[i].name for i in designs.mechanisms[0]]
    assert names == ["skip-q-by-p", "none", "gate-both"]
    for segment in made.space.segments.values():
        check_segment(segment, made)


def test_a_fixed_mapping_beside_searched_formats():
    made = problem(
        matmul(4, 8, 4),
        "edge",
        {
            "segments": ["mapping", "formats", "gate-skip"],
            "mapping": MAPPING,
            "formats": {"type": "rank-formats", "candidates": ["uncompressed", "bitmask"]},
            "gate-skip": {"candidates": ["none", "skip-both"]},
        },
    )
    assert len(made.space) == 18
    assert made.space.segments["mapping"].provides == ("order", "bounds")


def test_all_wrong_names_are_told_with_their_places():
    text = wrong(
        {
            **MAPPING,
            "order": {"L4_T": ["m"], "L2_T": ["x", "m"], "L1_T": ["m", "m"]},
            "bounds": {"L1_T": {"m": 4, "K": 8, "n": 0}},
        },
        {**STRATEGY, "mechanisms": {"GLB": "none", "PEBB": "none", "MAC": "none"}},
    )
    for line in (
        "space.toml: mapping.order.L4_T: no mapping level 'L4_T'; did you mean 'L1_T'?",
        "mapping.order.L2_T: no dimension 'x'; known: k, m, n",
        "mapping.order.L1_T: names a dimension twice: m, m",
        "mapping.bounds.L1_T.K: no dimension 'K'; did you mean 'k'?",
        "mapping.bounds.L1_T.n: expected a bound of at least 1, found 0",
        "mapping.bounds: bounds of dimension 'k' multiply up to 1, expected 8",
    ):
        assert line.split("; did")[0] in text
    assert "PEBB" in wrong(strategy={**STRATEGY, "mechanisms": {"GLB": "none", "PEBB": "none", "MAC": "none"}})


def test_formats_are_complete_and_of_equal_length():
    formats = {**STRATEGY["formats"], "P": ["bitmask"]}
    assert "strategy.formats.P: has 1 rank slots, expected 2" in wrong(strategy={**STRATEGY, "formats": formats})
    del formats["P"], formats["Q"]
    text = wrong(strategy={**STRATEGY, "formats": formats})
    assert "has no formats for tensor 'P'" in text and "has no formats for tensor 'Q'" in text
    text = wrong(strategy={**STRATEGY, "mechanisms": {"GLB": "none"}})
    assert "has no mechanism for place 'PEB'" in text and "has no mechanism for place 'MAC'" in text


def test_a_design_that_differs_cannot_be_encoded():
    made = with_fixed()
    columns = dict(made.space.decode(made.space.sample(2, np.random.default_rng(0))).columns)
    columns["bounds"] = columns["bounds"].copy()
    columns["bounds"][0, 0, 1] = 3
    with pytest.raises(DesignError, match="design 1: 'bounds' differs from what segment 'mapping' fixes"):
        made.space.encode(Designs(columns))


def test_a_format_may_be_a_table_and_is_one_candidate_however_often_it_stands_there():
    wide = {"extends": "coordinate", "metadata_bits": "16"}
    formats = {"P": ["uncompressed", wide], "Q": ["uncompressed", wide], "Z": ["uncompressed", "uncompressed"]}
    made = with_fixed(strategy={**STRATEGY, "formats": formats})
    plain, packed = made.candidates("format")
    assert (plain.name, packed.unit_bits) == ("uncompressed", "16")
    assert made.space.decode(made.space.sample(1, np.random.default_rng(0))).formats[0].tolist() == [
        [0, 1],
        [0, 1],
        [0, 0],
    ]
