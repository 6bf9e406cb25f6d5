"""`verify` of designs in formats whose codes are too narrow without other charges, or whose formulas are not their codecs'."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from sparsemap.cli.main import cli

SPACE = 'kind = "space"\nname = "own"\nextends = "full"\nformats = { candidates = ["uncompressed", "mine"] }\n'
FEW = """
kind = "workload"
name = "few"
type = "matmul"
m = 16
k = 32
n = 16
density = { P = 0.1, Q = 0.1 }
"""
NARROW = 'kind = "format"\nname = "mine"\ncompressed = true\nlists = "coordinates"\ncount_bits = 1\n'
FREE = """
import attrs
from pathlib import Path
from sparsemap import hookimpl
from sparsemap_plugins.declarative.formats import ExpressionFormat


@attrs.frozen(kw_only=True)
class Free(ExpressionFormat):
    type_name = "free"

    def encoded(self, fiber, outer):
        return attrs.evolve(super().encoded(fiber, outer), metadata=0.0 * fiber.fibers)


@hookimpl
def register_formats():
    return [Free]


@hookimpl
def register_specs():
    return [str(Path(__file__).parent)]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("plug/mine").mkdir(parents=True)
    Path("plug/mine/space.toml").write_text(SPACE)
    Path("few.toml").write_text(FEW)


def run(*args, code=0):
    done = CliRunner().invoke(cli, [*map(str, args), "--plugin-dir", "plug"])
    assert done.exit_code == code, (done.stdout, done.stderr)
    return done.stdout


@pytest.mark.parametrize("model", ["physical", "timeloop"])
def test_a_code_that_other_charges_make_unreadable_is_executed_under_its_own(model):
    """Offsets end the fibers, so that nobody writes the narrow counts; without `pointers` the design has no code."""
    Path("plug/mine/mine.toml").write_text(NARROW)
    shown = run(
        "search", "few.toml", "edge-16gbps", "--space", "own", "--budget", 300, "--cost-model", model, "--out", "o"
    )
    assert " M(" in shown
    told = run("verify", "o", "--trials", 1)
    assert f"\n{model} " in told and "yes, in every trial" in told
    assert "\npointers " not in told


def test_a_format_that_charges_less_than_it_writes_is_named_and_ends_with_an_error():
    Path("plug/mine/__init__.py").write_text(FREE)
    Path("plug/mine/mine.toml").write_text(
        'kind = "format"\nname = "mine"\ntype = "free"\ncompressed = true\nlists = "mask"\n'
    )
    assert "M(" in run("search", "few.toml", "edge-16gbps", "--space", "own", "--budget", 100, "--out", "o")
    told = run("verify", "o", "--trials", 1, code=1)
    assert "INCONSISTENT FORMAT: format 'mine'" in told and "expected 96.00 (`encode`), given 0.00 (`encoded`)" in told


@pytest.mark.parametrize("bits", ["-1", '"0 / 0"', '"1 / 0"', '"-length"'])
def test_a_format_in_toml_with_bits_that_are_none_is_refused_with_its_file(bits):
    """A constant at once, an expression where it is first asked, under every cost model."""
    Path("plug/mine/mine.toml").write_text(NARROW.replace("count_bits = 1", f"count_bits = {bits}"))
    for model in ("physical", "timeloop"):
        args = (
            "search",
            "mm1",
            "edge-16gbps",
            "--space",
            "own",
            "--budget",
            50,
            "--cost-model",
            model,
            "--plugin-dir",
            "plug",
        )
        done = CliRunner().invoke(cli, [*map(str, args)])
        assert done.exit_code == 2 and done.stderr.startswith("plug/mine/mine.toml: "), done.stderr
