"""Densities that break their contract: the first wrong answer ends the search and names density, method, file and line."""

import inspect
from pathlib import Path

import attrs
import numpy as np
import pytest
from click.testing import CliRunner
from sparsemap_plugins.densities.uniform import Uniform

from sparsemap import DensityModel, PluginError
from sparsemap.cli.main import cli
from sparsemap.pieces.occupancies import checked

SHAPE, TILE = (16, 16), (4, 4)


def line_of(text, function):
    """`FILE, line N` of the only line of a function that holds a text."""
    lines, start = inspect.getsourcelines(function)
    (number,) = [start + i for i, line in enumerate(lines) if text in line]
    return f"{Path(__file__).name}, line {number}"


class Honest:
    """The occupancy of a uniform tensor, some of whose answers a case changes."""

    density, by_shape, actual = 0.25, True, False

    def __init__(self):
        self.right = Uniform(density=0.25).occupancy((256,))

    def distribution(self, tile):
        return self.right.distribution((int(np.prod(tile)),))

    def empty(self, tile):
        return self.right.empty((int(np.prod(tile)),))

    def empty_within(self, sub_tile, tile, k):
        return self.right.empty_within((int(np.prod(sub_tile)),), (int(np.prod(tile)),), k)

    def largest(self, tile):
        return self.right.largest((int(np.prod(tile)),))


def lying(method, change):
    """An occupancy whose method changes its right answer."""

    def lies(self, *given):
        return change(getattr(super(cls, self), method)(*given))

    cls = type("Lying", (Honest,), {method: lies})
    return cls()


@attrs.frozen(kw_only=True)
class Given(DensityModel):
    type_name = "given"
    made = None

    def occupancy(self, shape):
        return self.made


def of(occupancy):
    model = type("Own", (Given,), {"made": occupancy})(name="mine")
    return checked(model, SHAPE)


def random_twice():
    rng = np.random.default_rng(0)

    def change(found):
        p = found[1] * rng.uniform(0.5, 1.5, len(found[1]))
        return found[0], p / p.sum()

    return change


WRONG = {
    "probabilities add up to 2": (
        "distribution",
        lambda f: (f[0], 2 * f[1]),
        "a sum of 2 for a tile of 4 x 4, expected prob",
    ),
    "a probability is negative": ("distribution", lambda f: (f[0], -f[1]), "expected probabilities that add up to 1"),
    "a probability is NaN": ("distribution", lambda f: (f[0], f[1] * np.nan), "nan for a tile of 4 x 4"),
    "more nonzeros than words": ("distribution", lambda f: (f[0] + 16, f[1]), "expected 0 to 16, ascending"),
    "occupancies descend": ("distribution", lambda f: (f[0][::-1], f[1]), "expected 0 to 16, ascending"),
    "half words": (
        "distribution",
        lambda f: (f[0] / 2, f[1]),
        "occupancy 0.5 for a tile of 4 x 4, expected whole numbers",
    ),
    "other values each time": ("distribution", random_twice(), "other values when asked again for a tile of 4 x 4"),
    "one number": ("distribution", lambda f: (f[0], np.float64(1.0)), "expected (K,) twice"),
    "nothing": ("distribution", lambda f: (f[0][:0], f[1][:0]), "arrays of shapes (0,) and (0,)"),
    "emptier than empty": ("empty", lambda f: 1.5, "1.5 for a tile of 4 x 4, expected 0 to 1"),
    "less than never empty": ("empty", lambda f: -0.5, "-0.5 for a tile of 4 x 4, expected 0 to 1"),
    "empty is NaN": ("empty", lambda f: np.nan, "nan for a tile of 4 x 4, expected 0 to 1"),
    "an endless tile": ("largest", lambda f: 1e300, "1e+300 for a tile of 4 x 4, expected 0 to 16"),
    "sub-tiles emptier than empty": ("empty_within", lambda f: f + 1.0, "expected probabilities"),
}


@pytest.mark.parametrize(("method", "change", "text"), WRONG.values(), ids=WRONG)
def test_a_wrong_answer_names_density_method_file_and_line(method, change, text):
    found = of(lying(method, change))
    given = {
        "distribution": (TILE,),
        "empty": (TILE,),
        "largest": (TILE,),
        "empty_within": ((2, 2), TILE, np.arange(5.0)),
    }
    with pytest.raises(PluginError) as caught:
        getattr(found, method)(*given[method])
    told = str(caught.value)
    assert f"density 'mine': {method} returned" in told and text in told
    assert line_of("def lies", lying) in told


def test_what_a_method_raises_is_its_own_error_and_not_the_cost_model_s():
    def oops(found):
        raise ZeroDivisionError("no tile")

    with pytest.raises(PluginError) as caught:
        of(lying("empty", oops)).empty(TILE)
    assert "density 'mine': empty raised ZeroDivisionError: no tile" in str(caught.value)
    assert line_of("raise ZeroDivisionError", oops) in str(caught.value)


def test_right_answers_pass_as_they_are_and_other_attributes_too():
    found, right = of(Honest()), Honest()
    for one, other in zip(found.distribution(TILE), right.distribution(TILE), strict=True):
        assert np.array_equal(one, other)
    assert (found.empty(TILE), found.largest(TILE)) == (right.empty(TILE), right.largest(TILE))
    assert (found.density, found.by_shape, found.actual) == (0.25, True, False)
    assert not hasattr(found, "alike")


PLUGIN = """
import numpy as np
import attrs
from sparsemap import DensityModel, hookimpl


class Half:
    density, by_shape, actual = 0.5, False, False

    def distribution(self, tile):
        return np.array([0.0, float(np.prod(tile))]), np.array([1.0, 1.0])

    def empty(self, tile):
        return 0.5

    def empty_within(self, sub_tile, tile, k):
        return (k == 0) * 1.0

    def largest(self, tile):
        return float(np.prod(tile))


@attrs.frozen(kw_only=True)
class All(DensityModel):
    type_name = "all-or-nothing"

    def occupancy(self, shape):
        return Half()


@hookimpl
def register_density_models():
    return [All]
"""


def test_a_search_with_such_a_plugin_ends_and_names_its_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("plug/all").mkdir(parents=True)
    Path("plug/all/__init__.py").write_text(PLUGIN)
    Path("w.toml").write_text(
        'kind = "workload"\nname = "w"\neinsum = "Z[m, n] = P[m, k] * Q[k, n]"\ndims = { m = 8, k = 8, n = 8 }\n'
        'density = { P = { type = "all-or-nothing" }, Q = 0.5 }\n'
    )
    done = CliRunner().invoke(cli, ["search", "w.toml", "edge-16gbps", "--budget", "60", "--plugin-dir", "plug"])
    assert (
        done.exit_code == 2
        and "plug/all/__init__.py, line 10: density 'all-or-nothing': distribution returned" in done.stderr
    )
    assert "analytic" not in done.stderr and "Traceback" not in done.stderr
