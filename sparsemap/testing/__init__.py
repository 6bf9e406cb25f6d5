"""Contract checks for plugin authors. A check, called in a test, raises AssertionError with the class, expected and
given.

    def test_my_format_keeps_the_contract():
        check_format(WordBitmask(word=8))

Checks in need of a design space take a problem from `sparsemap.load_problem`."""

# ruff: noqa: I001  # imports of one module stay together
from .pieces import (
    check_codec as check_codec,
    check_density as check_density,
    check_format as check_format,
    check_mechanism as check_mechanism,
    check_memory_level as check_memory_level,
    check_technology as check_technology,
    decodable as decodable,
    expected_bits as expected_bits,
    usual_shares as usual_shares,
    fibers as fibers,
)
from .search import (
    check_cost_model as check_cost_model,
    check_objective as check_objective,
    check_operator as check_operator,
    check_searcher as check_searcher,
    check_segment as check_segment,
)
