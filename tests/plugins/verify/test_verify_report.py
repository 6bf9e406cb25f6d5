"""The command, what it refuses, and that one seed gives one report."""

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner
from sparsemap_plugins.verify import TooLarge, run, verify
from sparsemap_plugins.verify.report import CountRow, spread
from verify_designs import BITMASK, build, example, random_design

import sparsemap.cli.main
from sparsemap.errors import DesignError
from sparsemap.spec import toml_text

SPARSE = example(p=0.25, q=0.5, p_formats=BITMASK, PEB="skip-q", MAC="gate-q")


def cli(*arguments):
    return CliRunner().invoke(sparsemap.cli.main.cli, ["verify", *map(str, arguments)])


@pytest.fixture
def file(tmp_path):
    def write(table):
        path = tmp_path / "design.toml"
        toml_text.write(path, {"kind": "design", "name": "design", **table})
        return path

    return write


def test_one_seed_one_report():
    first, again, other = (verify(*build(SPARSE), trials=5, seed=seed).text() for seed in (3, 3, 4))
    assert first == again
    assert first != other


def test_report_says_what_was_measured_and_why_it_differs():
    text = verify(*build(SPARSE), trials=20).text()
    assert "20 trials, seed 0" in text
    assert "output equal to the dense product: yes, in every trial" in text
    assert "explained: Q13" in text
    assert "eliminated, gated and skipped computes leave partial sums alone" in text


def test_large_problems_are_refused_with_an_estimate():
    table = example()
    table["workload"]["dims"] = {"m": 4096, "k": 4096, "n": 4096}
    table["mapping"]["L1_T"] = ["m=2048", "k=512", "n=512"]
    with pytest.raises(TooLarge) as refused:
        verify(*build(table))
    assert "68,719,476,736 multiply-accumulates" in str(refused.value)
    assert "days" in str(refused.value)
    assert "--force" in str(refused.value)


def test_a_refusal_says_how_many_trials_would_do():
    table = example()
    table["workload"]["dims"] = {"m": 128, "k": 128, "n": 128}
    table["mapping"]["L1_T"] = ["m=64", "k=16", "n=16"]
    with pytest.raises(TooLarge, match=r"\d+ trials would fit in a minute"):
        verify(*build(table), trials=2000)


def test_invalid_designs_are_refused():
    table = example()
    table["hardware"]["levels"][2]["capacity"] = "2 words"
    with pytest.raises(DesignError, match="capacity:PEB"):
        verify(*build(table))


def test_command(file):
    done = cli(file(SPARSE), "--trials", 3, "--seed", 7)
    assert done.exit_code == 0, done.output
    assert "3 trials, seed 7" in done.output
    found = json.loads(cli(file(SPARSE), "--trials", 3, "--json").output)
    assert found["output_correct"] is True
    (row,) = [row for row in found["rows"] if (row["quantity"], row["level"], row["tensor"]) == ("fill", "PEB", "Q")]
    assert row["expected"] == row["mean"] == 128
    assert row["verdict"] == "exact"


def test_loops_of_a_large_design_are_shortened(file, monkeypatch):
    """The command says so; from Python, a large design is refused."""
    monkeypatch.setattr(run, "LIMIT_SECONDS", 0.06)
    table = example()
    table["workload"]["dims"] = {"m": 4096, "k": 4096, "n": 4096}
    table["mapping"]["L1_T"] = ["m=2048", "k=512", "n=512"]
    done = cli(file(table), "--trials", 2)
    assert "Traceback" not in done.output and "output equal to the dense product: yes" in done.output
    assert re.search(r"shorter loops, of about a minute: m [\d,]+ of 4,096, k [\d,]+ of 4,096", done.output)
    with pytest.raises(TooLarge, match="more than verify does without --force"):
        verify(*build(table), trials=2)


def test_a_large_design_that_cannot_be_shortened_is_refused(file, monkeypatch, tmp_path):
    """Actual data are of the whole tensor."""
    monkeypatch.setattr(run, "LIMIT_SECONDS", 0.2)
    table = example()
    table["workload"]["dims"] = {"m": 64, "k": 64, "n": 512}
    table["mapping"]["L1_T"] = ["m=32", "k=8", "n=64"]
    np.save(tmp_path / "p.npy", np.eye(64))
    table["workload"]["density"] = {"P": {"type": "data", "file": str(tmp_path / "p.npy")}, "Q": 0.5}
    done = cli(file(table), "--trials", 2)
    assert "Traceback" not in done.output and done.exit_code == 2
    assert "more than verify does without --force" in done.output


def test_metadata_of_windows_is_said_to_be_read_in_proportion_to_words():
    table = random_design("conv", 3, sizes=(2, 3, 4))
    table["workload"]["density"] = {"P": 0.5, "Q": 0.5, "Z": 1.0}
    table["formats"] = {**table["formats"], "P": BITMASK}
    assert any("windows or strides" in note for note in verify(*build(table), trials=2).notes)


def row(**changes):
    given = {"quantity": "read", "level": "GLB", "tensor": "P", "expected": 100.0, "mean": 100.0, "stderr": 1.0}
    return CountRow(**{**given, "trials": 20, **changes})


def test_verdicts():
    assert row().verdict == "exact"
    assert row(mean=102.0).verdict == "within"  # 2.093 standard errors
    assert row(mean=104.0).verdict == "chance"
    assert row(mean=104.0, rounding=2.0).verdict == "rounding"
    assert row(mean=120.0).verdict == "off"
    assert row(mean=120.0).causes == (("?", 20.0),)
    assert row(mean=120.0, parts=(("Q13", 19.0),)).verdict == "explained"
    assert row(mean=120.0, parts=(("Q13", 10.0),), rest="Q12").causes == (("Q13", 10.0), ("Q12", 10.0))
    assert row(quantity="cycles", level="", tensor="", mean=120.0).verdict == "follows"


def test_spread():
    assert spread([3.0]) == (3.0, 0.0)
    mean, error = spread([1.0, 2.0, 3.0, 4.0])
    assert (mean, error) == (2.5, pytest.approx((5 / 3 / 4) ** 0.5))
