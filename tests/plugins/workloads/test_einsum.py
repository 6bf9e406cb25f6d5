import math

import numpy as np
import pytest
from encoding_problems import MATMUL, matmul, problem, registry

from sparsemap.errors import SpecError


def loops(**table):
    return registry().build("workload", table, "w.toml").loops(registry())


def wrong(**changes):
    with pytest.raises(SpecError) as error:
        registry().build("workload", {**matmul(4, 8, 4), **changes}, "w.toml")
    return str(error.value).splitlines()


def density(tensor):
    return tensor.density.occupancy((64, 64)).density


def test_convolution():
    made = loops(
        einsum="Z[k, p, q] = P[c, 2*p + r, 2*q + s] * Q[k, c, r, s]",
        dims={"k": 8, "c": 4, "p": 6, "q": 6, "r": 3, "s": 1},
        density={"P": 0.5, "Q": {"type": "structured", "density": 0.25}},
    )
    assert list(made.sizes) == list("kcpqrs")
    assert [(tensor.name, tensor.output) for tensor in made.tensors] == [("P", False), ("Q", False), ("Z", True)]
    data = made.tensors[0]
    assert data.dims == ("c", "p", "r", "q", "s")
    assert data.shape(made.sizes) == (4, 13, 11)  # 2 * 5 + 2 + 1 and 2 * 5 + 1
    assert [tensor.density.type_name for tensor in made.tensors[:2]] == ["uniform", "structured"]


def test_dims_keep_the_order_of_the_spec():
    assert list(loops(**{**MATMUL, "dims": {"n": 2, "k": 3, "m": 4}}).sizes) == ["n", "k", "m"]


def test_density_of_the_output_is_derived():
    output = loops(**{**matmul(4, 8, 4), "density": {"P": 0.25, "Q": 0.5}}).tensors[-1]
    assert output.density.type_name == "uniform"
    assert math.isclose(output.density.density, 1 - (1 - 0.125) ** 8)
    tiny = loops(**{**matmul(4, 8, 4), "density": {"P": {"type": "structured", "density": 1e-9}, "Q": 1.0}}).tensors[-1]
    assert math.isclose(tiny.density.density, 8e-9, rel_tol=1e-6)


def test_a_mask_that_multiplies_a_whole_sum_is_a_factor_of_the_output():
    sampled = {"einsum": "Z[i, j] = S[i, j] * A[i, k] * B[k, j]", "dims": {"i": 20, "j": 20, "k": 8}}
    assert loops(**sampled, density={"S": 0.05, "A": 1.0, "B": 1.0}).tensors[-1].density.density == 0.05
    output = loops(**sampled, density={"S": 0.05, "A": 0.5, "B": 0.5}).tensors[-1]
    assert math.isclose(output.density.density, 0.05 * (1 - 0.75**8))


def test_an_output_that_fills_up_is_dense():
    output = loops(**{**matmul(4, 4096, 4), "density": {"P": 0.25, "Q": 0.5}}).tensors[-1]
    assert (output.density.type_name, output.density.density) == ("structured", 1.0)
    output = loops(**{**matmul(4, 1, 4), "density": {"P": 1, "Q": 1.0}}).tensors[-1]
    assert (output.density.type_name, output.density.density) == ("structured", 1.0)


def test_a_given_output_density_is_kept():
    assert (
        loops(**{**matmul(4, 8, 4), "density": {"P": 0.5, "Q": 0.5, "Z": 0.125}}).tensors[-1].density.density == 0.125
    )


def test_errors_name_the_key():
    five = " * ".join(f"{name}[m]" for name in "PQRST")
    assert wrong(einsum=f"Z[m] = {five}")[0].startswith(
        "w.toml: einsum: has 5 operands right of '=', expected one to four"
    )
    assert wrong(einsum=3) == ["w.toml: einsum: expected text, found 3"]
    assert wrong(dims={"m": 4, "k": 8, "nn": 4}) == [
        "w.toml: dims.nn: the einsum 'Z[m, n] = P[m, k] * Q[k, n]' has no such dimension; did you mean 'n'?",
        "w.toml: dims: has no size for dimension 'n' of the einsum 'Z[m, n] = P[m, k] * Q[k, n]'",
    ]
    assert wrong(dims={"m": 4, "k": 8, "n": 4, "b": 2}) == [
        "w.toml: dims.b: the einsum 'Z[m, n] = P[m, k] * Q[k, n]' has no such dimension; it has m, k, n"
    ]
    assert wrong(dims={"m": 4, "k": 0, "n": 4}) == ["w.toml: dims.k: is 0, expected at least 1"]
    assert wrong(density={"P": 0.5, "q": 0.5}) == [
        "w.toml: density.q: no tensor 'q'; did you mean 'Q'?",
        "w.toml: density: has no entry for operand 'Q'; give 1.0 if it is dense",
    ]
    assert wrong(dims={"m": 2**21, "k": 2**21, "n": 2**21}) == [
        "w.toml: dims: multiply up to 2^63 or more, which is too large to be counted"
    ]


def test_a_sliding_window_can_overflow_before_its_sizes_do():
    lines = wrong(
        einsum="Z[p] = P[4000000000*p + r, 4000000000*p2 + r2] * Q[p2, r, r2]",
        dims={"p": 9, "p2": 9, "r": 2, "r2": 2},
    )
    assert lines == ["w.toml: dims: make tensor 'P' 2^53 words or larger, which is too large to be counted"]


def test_all_mistakes_of_dims_and_densities_are_reported_together():
    density = {"P": 1.5, "Q": -0.5, "R": 1.0}
    assert wrong(dims={"m": 0, "k": -3, "n": 4.5, "x": 2}, density=density) == [
        "w.toml: dims.m: is 0, expected at least 1",
        "w.toml: dims.k: is -3, expected at least 1",
        "w.toml: dims.n: expected a whole number, found 4.5",
        "w.toml: dims.x: the einsum 'Z[m, n] = P[m, k] * Q[k, n]' has no such dimension; it has m, k, n",
        "w.toml: density.P: is 1.5, expected a share of nonzeros above 0, up to 1",
        "w.toml: density.Q: is -0.5, expected a share of nonzeros above 0, up to 1",
        "w.toml: density.R: no tensor 'R'; known: P, Q, Z",
    ]


@pytest.mark.parametrize(
    "density", [{"density": 0}, {"type": "structured", "density": 0}, {"type": "n-of-m", "n": 0, "m": 4}]
)
def test_a_tensor_without_nonzeros_is_refused(density):
    """A design for it would take no energy and no cycles; the output of a workload is held to the same."""
    for tensor in "PZ":
        made = problem({**matmul(4, 8, 4), "density": {"P": 0.5, "Q": 0.5, tensor: density}})
        with pytest.raises(SpecError, match=f"density.{tensor}: has no nonzeros; there is nothing to compute"):
            made.loops  # noqa: B018


def test_a_file_without_nonzeros_is_refused(tmp_path):
    np.save(tmp_path / "zeros.npy", np.zeros((4, 8)))
    made = problem(
        {**matmul(4, 8, 4), "density": {"P": {"type": "data", "file": str(tmp_path / "zeros.npy")}, "Q": 0.5}}
    )
    with pytest.raises(SpecError, match=r"density\.P: has no nonzeros"):
        made.loops  # noqa: B018


def test_wrong_density_models_are_reported_together_with_the_file_of_the_workload():
    made = problem({**matmul(4, 8, 4), "density": {"P": {"type": "unifrom"}, "Q": {"density": 2}}})
    with pytest.raises(SpecError) as caught:
        made.loops  # noqa: B018
    assert str(caught.value).splitlines() == [
        "workload.toml: density.P.type: no density 'unifrom'; did you mean 'uniform'?",
        "workload.toml: density.Q.density: is 2.0, expected at most 1",
    ]


@pytest.mark.parametrize("name", registry().names("workload"))
def test_every_shipped_workload_has_loops(name):
    made = registry().get("workload", name).loops(registry())
    assert len(made.tensors) in (3, 4) and made.tensors[-1].output


def test_a_product_without_densities_is_dense():
    table = {"einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": {"m": 4, "k": 4, "n": 4}}
    both = {}, {"density": {"P": 1.0, "Q": 1.0}}
    plain, said = (registry().build("workload", table | more).loops(registry()) for more in both)
    assert plain == said
