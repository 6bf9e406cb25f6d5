"""`sparsemap extra sweep`: designs over densities of a tensor; and the scenarios of a design on the command line."""

import json

import pytest
from click.testing import CliRunner
from sparsemap_plugins.robust.sweep import densities_of

from sparsemap import load_problem, search
from sparsemap.cli.main import cli
from sparsemap.pieces.loading import load

EINSUM = {"einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": {"m": 64, "k": 128, "n": 32}}
RANGE = {"type": "range", "low": 0.1, "high": 1.0, "points": [1.0, 0.1], "nominal": 0.5}
HARDWARE = {"extends": "edge-16gbps", "levels": {"GLB": {"capacity": "4 KB"}}}


@pytest.fixture(scope="module")
def registry():
    return load()


@pytest.fixture(scope="module")
def designs(registry, tmp_path_factory):
    """Designs for a range of densities and for one density."""
    folder = tmp_path_factory.mktemp("designs")
    for name, density, seed in (("aware", RANGE, 0), ("sparse", 0.1, 0)):
        workload = {**EINSUM, "density": {"P": density, "Q": {"type": "n-of-m", "n": 2, "m": 4}}}
        search(
            load_problem(workload, HARDWARE, objective="robust:edp", cost_model="timeloop", registry=registry),
            600,
            seed,
        ).write(folder / name)
    return folder


def run(*args, code=0):
    outcome = CliRunner().invoke(cli, [str(arg) for arg in args])
    assert outcome.exit_code == code, outcome.output
    return outcome.stdout if code == 0 else outcome.output


def swept(designs, *options, code=0, of=("aware", "sparse")):
    return run("extra", "sweep", *(designs / name / "design.toml" for name in of), *options, code=code)


def test_densities_are_listed_or_stepped_through_with_the_last_one_among_them():
    assert densities_of("1:0.05:0.1") == (1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.05)
    assert densities_of("0.1:0.3:0.1") == (0.1, 0.2, 0.3)
    assert densities_of("1,0.5,0.1") == (1, 0.5, 0.1)


@pytest.mark.parametrize(
    "text", ["", "1;0.5", "1:0.5", "1:0.5:0", "1:0.1:-0.1", "2,1", "1:0:0.1", "nan", "1:0.1:0.0001"]
)
def test_other_texts_are_no_densities(text, designs):
    with pytest.raises(ValueError, match="densities"):
        densities_of(text)
    output = swept(designs, "--tensor", "P", "--densities", text, code=2)
    assert "--densities" in output and "Traceback" not in output


def test_a_sweep_is_what_files_with_other_densities_say(designs):
    table = json.loads(swept(designs, "--tensor", "P", "--densities", "1,0.5,0.1", "--json"))
    assert table["unit"] == "pJ * cycles"
    aware, sparse = (row["points"] for row in table["designs"])
    text = (designs / "sparse" / "design.toml").read_text()
    assert "P = 0.1\n" in text
    for point in sparse:
        changed = designs / "changed.toml"
        changed.write_text(text.replace("P = 0.1\n", f"P = {point['density']}\n"))
        alone = json.loads(CliRunner().invoke(cli, ["show", str(changed), "--json"]).stdout)
        assert {key: alone[key] for key in ("valid", "edp", "reasons")}.items() <= point.items()
    alone = json.loads(run("show", designs / "aware" / "design.toml", "--json"))
    assert aware[0]["edp"] == alone["scenarios"]["P=1"]["edp"]
    assert aware[1]["edp"] == alone["edp"]  # the nominal density


def test_the_best_is_marked_and_an_invalid_design_has_its_reason(designs):
    text = swept(designs, "--tensor", "P", "--densities", "1,0.1")
    dense, sparse = (line.split() for line in text.splitlines()[3:5])
    assert dense[0] == "1" and dense[1].endswith("*") and dense[2] == "invalid"
    assert sparse[0] == "0.1" and sparse[2].endswith("*")
    assert "sparse at P = 1: capacity:GLB   GLB: needs" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--tensor", "X"), "no tensor 'X'"),
        (("--tensor", "Q"), "workload.density.Q: a density of type 'n-of-m' cannot be had at another share"),
        (("--tensor", "P", "--objective", "pareto:energy,delay"), "several values"),
        (("--tensor", "P", "--objective", "epd"), "did you mean 'edp'"),
    ],
)
def test_what_cannot_be_swept_is_said(options, message, designs):
    assert message in " ".join(swept(designs, *options, code=2, of=("aware",)).split())


def test_reports_show_a_scenario(designs):
    file = designs / "aware" / "design.toml"
    there = json.loads(run("show", file, "--json"))["scenarios"]["P=0.1"]
    shown = json.loads(run("show", "breakdown", file, "--scenario", "P=0.1", "--json"))
    assert (shown["energy_pj"], shown["cycles"]) == (there["energy_pj"], there["cycles"])
    assert "did you mean 'P=0.1'" in run("show", "breakdown", file, "--scenario", "P=0.15", code=2)
    plain = designs / "sparse" / "design.toml"
    assert "has no scenarios" in run("show", "breakdown", plain, "--scenario", "P=1", code=2)
