"""Workflows, metadata and the citation agree with each other and with the repository."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from sparsemap import __version__
from sparsemap.cli.citing import bibtex, citation
from sparsemap.cli.main import cli

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
WHEELS = PROJECT["tool"]["cibuildwheel"]


def workflow(name):
    """The table of a workflow."""
    return yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text("utf-8"))


def runs(name):
    """All commands of a workflow."""
    jobs = workflow(name)["jobs"].values()
    return "\n".join(step.get("run", "") for job in jobs for step in job.get("steps", ()))


def classified():
    found = [
        re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", text) for text in PROJECT["project"]["classifiers"]
    ]
    return [match[1] for match in found if match]


def test_versions_of_python_are_the_same_everywhere():
    built = [f"3.{name[3:-2]}" for name in WHEELS["build"].split()]
    tested = workflow("tests")["jobs"]["all"]["strategy"]["matrix"]["python"]
    assert built == classified() and [built[0], built[-1]] == tested
    assert PROJECT["project"]["requires-python"] == f">={built[0]}"
    setup = (ROOT / "setup.py").read_text("utf-8")
    assert f'"0x030{int(built[0][2:]):X}0000"' in setup and f'"cp{built[0].replace(".", "")}"' in setup


def test_wheels_are_built_for_the_systems_of_pyproject():
    wheels = workflow("wheels")["jobs"]["wheel"]["strategy"]["matrix"]["include"]
    known = {"ubuntu": "linux", "macos": "macos", "windows": "windows"}
    built = {(known[row["system"].split("-")[0]], row["archs"]) for row in wheels}
    assert built == {(system, arch) for system in known.values() for arch in WHEELS[system]["archs"]}


def test_the_tests_of_wheels_exist_and_leave_the_clone_alone():
    words = WHEELS["test-command"].split()
    assert "pythonpath=" in words and words[words.index("-m", 2) + 1] == "installed"
    for word in words:
        if word.startswith("{project}"):
            folder = ROOT / word.removeprefix("{project}/")
            assert any("pytest.mark.installed" in path.read_text("utf-8") for path in folder.rglob("test_*.py")), folder


def test_workflows_run_what_the_repository_documents():
    assert ".ci/run" in runs("tests").split("\n")
    assert "mkdocs build --strict" in runs("site") and "mike deploy" in runs("site")
    for check in ("twine check --strict", "abi3audit --strict", "-size +4M", "build --sdist"):
        assert check in runs("wheels")


def test_a_release_is_published_without_a_password():
    jobs = workflow("release")["jobs"]
    assert jobs["wheels"]["uses"] == "./.github/workflows/wheels.yml"
    publish = jobs["publish"]
    assert publish["permissions"] == {"id-token": "write"} and publish["needs"] == "wheels"
    assert publish["steps"][-1]["uses"].startswith("pypa/gh-action-pypi-publish@")
    assert "secrets." not in (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")


def test_the_citation_is_of_this_version_and_of_the_papers():
    table = citation()
    assert table["version"] == __version__ == PROJECT["project"]["version"]
    assert table["license"] == PROJECT["project"]["license"]
    assert table["authors"][0]["name"] in (ROOT / "LICENSE").read_text("utf-8")
    text = bibtex(table)
    assert re.findall(r"^@(\w+)\{(\w+),$", text, re.M) == [
        ("software", "sparsemap"), ("article", "zhao"), ("article", "kao"), ("article", "aggarwal"), ("article", "dalberto")
    ]  # fmt: skip
    assert "CITATION.cff" in PROJECT["project"]["license-files"]


@pytest.mark.parametrize("words", [["cite"], ["extra", "cite"]])
def test_cite_prints_bibtex(words):
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0 and done.stdout.startswith("@software{sparsemap,") and not done.stderr
