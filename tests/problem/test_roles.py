"""Tensors by role and by name: P, Q, Z say where a tensor stands in the einsum, whatever the tensors are called."""

import attrs
import numpy as np
import pytest

from sparsemap import Problem, SpecError, evaluate, load_problem, search
from sparsemap.pieces.loading import load
from sparsemap.problem import design_file

NAMES = [("A", "B", "C"), ("Q", "K", "S"), ("P", "Z", "Q"), ("Z", "P", "Q"), ("Q", "P", "Z"), ("X", "Z", "P")]


@pytest.fixture(scope="module")
def registry():
    return load()


def product(names, registry, hardware="mobile", **parts) -> Problem:
    first, second, output = names
    workload = {
        "name": "product",
        "einsum": f"{output}[i, j] = {first}[i, d] * {second}[d, j]",
        "dims": {"i": 16, "j": 8, "d": 32},
        "density": {first: 0.05, second: 0.3},
    }
    return load_problem(workload, hardware, registry=registry, **parts)


@pytest.mark.parametrize("space", ["paper", "sage-like", "sparseloop-mapper"])
@pytest.mark.parametrize("hardware", ["mobile", "scnn-like"])
@pytest.mark.parametrize("names", NAMES)
def test_what_tensors_are_called_changes_no_number(names, hardware, space, registry):
    """Mechanisms filter by role, scnn-like lets tensors bypass levels, sage-like keeps the output in place."""
    plain, renamed = (product(tensors, registry, hardware, space=space) for tensors in ("PQZ", names))
    genomes = plain.space.guess(200, np.random.default_rng(0))
    genomes = plain.space.repair(genomes, np.random.default_rng(1))
    assert np.array_equal(renamed.space.repair(genomes, np.random.default_rng(2)), genomes)
    expected, found = evaluate(plain, genomes), evaluate(renamed, genomes)
    assert expected.valid.any()
    assert np.array_equal(found.energy_pj, expected.energy_pj) and np.array_equal(found.cycles, expected.cycles)
    assert renamed.bound == plain.bound


def test_a_design_is_shown_and_written_with_the_names_of_the_workload(registry, tmp_path):
    problem = product("QKS", registry)
    result = search(problem, budget=300, seed=1)
    result.write(tmp_path)
    again = design_file.load(tmp_path / "design.toml", registry)
    assert again.problem.evaluator.evaluate_designs(again.batch).edp[0] == result.best.edp
    assert "S[i, j] += Q[i, d] * K[d, j]" in result.report("loop-nest")


MIXED = {"name": "mine", "action": "gate", "filters": [{"target": "S", "leader": "Q"}]}


def with_mechanism(table, names) -> Problem:
    registry = load()
    registry.add_spec({"kind": "mechanism", **table}, registry.origin("mechanism", "none"))
    space = {"name": "mine", "extends": "paper", "gate-skip": {"candidates": ["none", table["name"]]}}
    return product(names, registry, space=space)


def test_a_filter_that_mixes_names_and_roles_has_to_be_unambiguous():
    expected = r"mechanism 'mine': 'Q' is the role of tensor 'K' and the name of another; write 'role:Q' or 'name:Q'"
    with pytest.raises(SpecError, match=expected):
        search(with_mechanism(MIXED, "QKS"), budget=10)


@pytest.mark.parametrize(("leader", "means"), [("role:Q", 1), ("name:Q", 0), ("K", 1)])
def test_a_filter_may_say_which_it_means(leader, means):
    problem = with_mechanism({**MIXED, "filters": [{"target": "S", "leader": leader}]}, "QKS")
    mechanism = problem.candidates("mechanism")[1]
    [(_, target, leaders)] = problem.filters(mechanism, problem.places[0])
    assert (target, leaders) == (2, (means,))


def test_a_tensor_does_not_lead_itself_by_another_name():
    table = {**MIXED, "filters": [{"target": "K", "leader": "role:Q"}]}
    with pytest.raises(SpecError, match="mechanism 'mine': 'K' cannot lead itself"):
        search(with_mechanism(table, "QKS"), budget=10)


@pytest.mark.parametrize(
    ("bypass", "names", "stored"),
    [("Q", "PQZ", [True, False, True]), ("Q", "ABC", [True, False, True]), ("K", "QKS", [True, False, True]),
     ("role:Q", "QKS", [True, False, True]), ("name:Q", "QKS", [False, True, True]), ("Z", "QKS", [True, True, False])],
)  # fmt: skip
def test_what_bypasses_a_level(bypass, names, stored, registry):
    problem = product(names, registry, hardware(bypass))
    assert [problem.stores(t, 1) for t in range(3)] == stored


@pytest.mark.parametrize(("bypass", "einsum"), [("Q", "Z[i] = A[i, d]"), ("role:R", "Z[i, j] = A[i, d] * B[d, j]")])
def test_what_the_workload_has_no_tensor_for_does_not_bypass(bypass, einsum, registry):
    dims = {"i": 16, "j": 8, "d": 32} if "j" in einsum else {"i": 16, "d": 32}
    density = dict.fromkeys([name for name in "AB" if name in einsum], 0.5)
    workload = {"name": "product", "einsum": einsum, "dims": dims, "density": density}
    problem = load_problem(workload, hardware(bypass), registry=registry)
    assert all(problem.stores(t, 1) for t in range(len(problem.tensors)))


def test_four_operands_have_roles_by_position(registry):
    einsum = "Z[i] = D[i] * C[i] * B[i] * A[i]"
    workload = {"name": "four", "einsum": einsum, "dims": {"i": 16}, "density": dict.fromkeys("ABCD", 0.5)}
    problem = load_problem(workload, "mobile", registry=registry)
    assert problem.roles == {"P": 0, "Q": 1, "R": 2, "S": 3, "Z": 4} and problem.operands == (0, 1, 2, 3)
    assert problem.tensor("S") == 3 == problem.tensor("A")


def hardware(bypass):
    levels = [{"name": "DRAM", "class": "dram"}, {"name": "GLB", "capacity": "1 KB", "bypass": [bypass]}]
    return {"name": "two", "levels": levels}


@pytest.mark.parametrize(
    ("bypass", "names", "wrong"),
    [
        ("Q", "QKS", "'Q' is the role of tensor 'K' and the name of another; write 'role:Q' or 'name:Q'"),
        ("Z", "ZPQ", "'Z' is the role of tensor 'Q' and the name of another"),
        ("X", "QKS", "no tensor 'X'; known: K, P, Q, S, Z"),
        ("name:P", "QKS", "no tensor 'P'; known: K, Q, S"),
        ("roll:Q", "QKS", "no tensor 'roll:Q'; known: K, P, Q, S, Z"),
    ],
)
def test_a_bypass_that_may_mean_two_tensors_or_none_is_told(bypass, names, wrong, registry):
    problem = product(names, registry, hardware(bypass))
    with pytest.raises(SpecError) as told:
        problem.stores(0, 1)
    assert f"levels[1].bypass[0]: {wrong}" in str(told.value)


def test_fixed_formats_go_by_name_or_by_role(registry):
    """All keys are names, or all are roles; a table that is both is read as names, as design files write them."""
    kinds = [["uncompressed"], ["bitmask"], ["run-length"]]

    def formats(names, keys):
        paper = registry.get("space", "paper")
        fixed = {"type": "fixed", "formats": dict(zip(keys, kinds, strict=True))}
        made = product(names, registry, space=attrs.evolve(paper, tables={**paper.tables, "formats": fixed}))
        return made.space.decode(made.space.sample(1, np.random.default_rng(0))).formats[0, :, 0].tolist()

    assert formats("PQZ", "PQZ") == formats("QKS", "QKS") == formats("QKS", "PQZ") == [0, 1, 2]
    assert formats("QPZ", "PQZ") == [1, 0, 2]
    assert formats("QPZ", ["role:P", "role:Q", "role:Z"]) == [0, 1, 2]
    with pytest.raises(SpecError, match=r"formats\.formats.Q: 'Q' is the role of tensor 'K' and the name of another"):
        formats("QKS", "QKZ")
    with pytest.raises(SpecError, match=r"formats\.formats.role:P: tensor 'A' has formats already"):
        formats("ABC", ["A", "role:P", "C"])
