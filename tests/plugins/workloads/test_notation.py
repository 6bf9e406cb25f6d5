import pytest
from sparsemap_plugins.workloads.notation import Einsum


def ranks(text):
    return [(access.name, access.ranks) for access in Einsum.parse(text).accesses]


def test_matrix_product():
    assert ranks("Z[m, n] = P[m, k] * Q[k, n]") == [
        ("P", ((("m", 1),), (("k", 1),))),
        ("Q", ((("k", 1),), (("n", 1),))),
        ("Z", ((("m", 1),), (("n", 1),))),
    ]


@pytest.mark.parametrize("index", ["2*p + r", "p*2 + r", " 2 * p+r "])
def test_an_index_is_a_sum_of_multiples(index):
    assert ranks(f"Out[p] += In[{index}]*W[r]")[0] == ("In", ((("p", 2), ("r", 1)),))


def test_one_to_four_operands():
    for count in range(1, 5):
        einsum = Einsum.parse("Z[m] = " + " * ".join(f"{name}[m]" for name in "PQRS"[:count]))
        assert [access.name for access in einsum.operands] == list("PQRS"[:count])


def test_a_scalar_output():
    einsum = Einsum.parse("Z[] = P[k] * Q[k]")
    assert einsum.output.ranks == () and einsum.dims == ("k",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has the end where the name of a tensor should stand"),
        ("Z[m, n]", "has the end where '=' or '\\+=' should stand; expected a form such as"),
        ("Z[m] =", "has the end where the name of a tensor should stand"),
        ("Z[m] = P[m] * Q[m] * R[m] * S[m] * T[m]", "has 5 operands right of '=', expected one to four"),
        ("Z[m] = P[m] * Q[m] R[m]", "has 'R' at character 20 where the end"),
        ("Z[m = P[m] * Q[m]", "has '=' at character 5 where '\\]' should stand"),
        ("Z[m,] = P[m] * Q[m]", "has '\\]' at character 5 where a dimension should stand"),
        ("Z[m, m] = P[m] * Q[m]", "'m' indexes 'Z' twice; diagonals are not supported"),
        ("Z[m] = P[m + m] * Q[m]", "'m' indexes 'P' twice"),
        ("Z[m] = P[0*m] * Q[m]", "the coefficient of 'm' is 0, expected at least 1"),
        ("Z[m] = P[m - k] * Q[k]", "'-' at character 12, which is not understood; an index is a sum"),
        ("Z[m] = P[m + 1] * Q[m]", "constant offsets belong to the size"),
        ("Z[m] = P[m] * P[m]", "'P' stands for two tensors"),
        ("Z[m] = Z[m] * P[m]", "'Z' stands for two tensors"),
        ("Z[m, x] = P[m, k] * Q[k]", "'x' indexes the output 'Z' but no operand"),
        ("Z[m] == P[m] * Q[m]", "has '=' at character 7"),
    ],
)
def test_what_is_wrong_is_told(text, message):
    with pytest.raises(ValueError, match=message):
        Einsum.parse(text)
