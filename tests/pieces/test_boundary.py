"""Errors at the boundary to plugins say which piece, which method, and which line of the plugin."""

import inspect
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import attrs
import numpy as np
import pytest

from sparsemap import Charge, EvaluationError, Fiber, Format, Mutation, PluginError, Searcher, SpecError, Units
from sparsemap.pieces.boundary import charged, guarded, numbers, units_of, wrong

HERE = Path(__file__)


def line_of(text, function):
    """`FILE, line N` of the only line of a function that holds a text."""
    lines, start = inspect.getsourcelines(function)
    (number,) = [start + i for i, line in enumerate(lines) if text in line]
    return f"{HERE.name}, line {number}"


@attrs.frozen(kw_only=True)
class Raising(Mutation):
    type_name = "raising"
    error: type[BaseException] = ZeroDivisionError

    def mutate(self, genomes, context):
        return self._helped()

    def _helped(self):
        raise self.error("oops")


@attrs.frozen(kw_only=True)
class Calling(Searcher):
    type_name = "calling"
    mutation: Mutation

    def search(self, space, budget, rng):
        yield self.mutation.mutate(None, None)


@pytest.mark.parametrize("error", [ZeroDivisionError, SystemExit, GeneratorExit, BaseException, MemoryError])
def test_whatever_a_piece_raises_names_the_piece_its_method_and_its_line(error):
    with pytest.raises(PluginError) as caught, guarded(Raising(name="r", error=error), "mutate"):
        Raising(name="r", error=error).mutate(None, None)
    (mistake,) = caught.value.mistakes
    assert mistake.file.endswith(line_of("raise self.error", Raising))
    assert (mistake.path, mistake.message) == ("mutation 'r'", f"mutate raised {error.__name__}: oops")
    assert isinstance(caught.value.__cause__, error)


def test_an_operator_is_named_and_the_searcher_as_its_caller():
    with pytest.raises(PluginError) as caught, guarded(Calling(mutation=Raising()), "search"):
        next(Calling(mutation=Raising()).search(None, None, None))
    (mistake,) = caught.value.mistakes
    assert mistake.file.endswith(line_of("raise self.error", Raising))
    assert mistake.path == "mutation 'raising'"
    assert "mutate raised ZeroDivisionError: oops; called by searcher 'calling' (" in mistake.message
    assert line_of("yield self.mutation", Calling) in mistake.message


def test_a_check_that_fails_names_the_piece_and_the_line_of_its_method():
    with pytest.raises(PluginError) as caught, guarded(Raising(), "mutate"):
        raise EvaluationError("genomes have shape (1,)")
    (mistake,) = caught.value.mistakes
    assert mistake.file.endswith(line_of("def mutate", Raising))
    assert mistake.message == "mutate gave wrong values: genomes have shape (1,)"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SpecError.at("a.toml", "x", "wrong")])
def test_interrupts_and_errors_about_specs_pass(error):
    with pytest.raises(type(error)), guarded(Raising(), "mutate"):
        raise error


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([1.0, 2.0], "a value of type list for 'it', expected an array of shape (2,)"),
        (np.ones(3), "an array of shape (3,) for 'it'"),
        (np.ma.masked_array([1.0, 2.0], [True, False]), "a masked array of shape (2,) for 'it'"),
        (np.ones(2, complex), "'it' of type complex128, expected numbers"),
        (np.ones(2, object), "'it' of type object, expected numbers"),
        (np.array(["a", "b"]), "'it' of type <U1, expected numbers"),
    ],
)
def test_arrays_of_another_shape_or_type_are_refused(value, text):
    with pytest.raises(PluginError) as caught:
        numbers(Raising(), "mutate", "it", value, (2,))
    assert text in str(caught.value)


@pytest.mark.parametrize("value", [np.float64(3.0), np.array(3.0), np.ones(3)])
def test_a_charge_is_a_number_for_each_design_or_a_plain_one_for_all(value):
    @attrs.frozen(kw_only=True)
    class Total(Charge):
        type_name = "total"
        found: object = attrs.field(eq=False)

        def pj(self, counts, chip):
            return self.found

    counts: Any = SimpleNamespace(cycles=np.ones(2))
    chip: Any = None
    assert charged(Total(found=3), "pj", counts, chip).tolist() == [3.0, 3.0]
    assert charged(Total(found=np.array([1.0, 2.0])), "pj", counts, chip).tolist() == [1.0, 2.0]
    with pytest.raises(PluginError, match=r"for 'pj', expected an array of shape \(2,\)"):  # a sum over all axes, say
        charged(Total(found=value), "pj", counts, chip)


def units(metadata=None, metadata_bits=1, **more):
    return Units(np.ones(3) if metadata is None else metadata, metadata_bits, **more)


FIBER = Fiber(*np.full((6, 3), 2.0))


@attrs.frozen(kw_only=True)
class Given(Format):
    type_name = "given"
    found: object

    def units(self, fiber):
        return self.found


def test_units_may_be_numbers_or_arrays_of_one_per_fiber():
    found = Units(np.arange(3), metadata_bits=2, payload=1.5, payload_bits=np.ones(3))
    assert units_of(Given(found=found), FIBER) is found


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (None, "a value of type NoneType, expected Units"),
        (units(np.ones(2)), "an array of shape (2,) for 'metadata'"),
        (units(np.array([1.0, np.nan, 1.0])), "'metadata' that is negative, infinite or not a number"),
        (units(np.ones(3), metadata_bits=-1), "'metadata_bits' that is negative"),
        (units(np.ones(3), payload=np.inf), "'payload' that is negative, infinite"),
        (units(np.ones(3, complex)), "'metadata' of type complex128"),
        (units(np.array(["1", "2", "3"])), "'metadata' of type <U1"),
        (units(np.ones(3, object)), "'metadata' of type object"),
        (units(np.ma.masked_array(np.ones(3))), "a masked array of shape (3,)"),
        (units(np.ones(3), payload_bits="8"), "'payload_bits' of type <U1"),
    ],
)
def test_units_that_are_no_real_numbers_name_the_format(found, text):
    with pytest.raises(PluginError) as caught:
        units_of(Given(name="odd", found=found), FIBER)
    assert "format 'odd': units returned" in str(caught.value) and text in str(caught.value)
    assert line_of("def units", Given) in str(caught.value)


def test_a_piece_that_is_in_no_file_has_no_line():
    made = {}
    exec("class Loose(Mutation):\n    def mutate(self, genomes, context):\n        1 / 0", {"Mutation": Mutation}, made)
    assert "mutation 'Loose': mutate returned nothing" in str(wrong(made["Loose"](), "mutate", "returned nothing"))
