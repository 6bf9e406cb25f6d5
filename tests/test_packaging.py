"""An installation that is not editable has every data file, the schemas of specs, and the pages of plugins."""

import runpy
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> dict:
    """What setup.py gives to setuptools."""
    setuptools = pytest.importorskip("setuptools")
    found: dict = {}
    monkeypatch.setattr(setuptools, "setup", found.update)
    monkeypatch.chdir(ROOT)
    runpy.run_path("setup.py")
    return found


def test_a_build_writes_the_schemas_that_specs_refer_to(given: dict, tmp_path: Path) -> None:
    from setuptools import Distribution

    made = Distribution({key: given[key] for key in given if "package" in key} | {"script_name": "setup.py"})
    build = given["cmdclass"]["build_py"](made)
    build.build_lib = str(tmp_path)
    build.ensure_finalized()
    build.run()
    schemas = tmp_path / "sparsemap_specs" / "schemas"
    for spec in (tmp_path / "sparsemap_specs").glob("*/*.toml"):
        assert (spec.parent / spec.read_text("utf-8").split(maxsplit=2)[1]).exists(), spec
    assert "bitmask" in (schemas / "format.json").read_text("utf-8")
    pages = tmp_path / "sparsemap_plugins" / "kit" / "pages"
    assert {page.name for page in pages.glob("*.md")} == {
        page.name for page in (ROOT / "docs" / "plugins").glob("*.md")
    }


def test_every_data_file_is_in_a_package_that_setup_lists(given: dict) -> None:
    packages, data = set(given["packages"]), given["package_data"]
    lost = []
    for top, name in (("plugins", "sparsemap_plugins"), ("specs", "sparsemap_specs")):
        for file in (ROOT / top).rglob("*"):
            if (
                not file.is_file()
                or file.suffix in (".pyc", ".py", ".c", ".h", ".so", ".pyd")
                or file.name.startswith(".")
            ):
                continue
            if file.parent == ROOT / "specs" / "schemas":  # written for editors, and anew by every build
                continue
            package = ".".join([name, *file.parent.relative_to(ROOT / top).parts])
            if package not in packages or not any(fnmatch(file.name, text) for text in data[package]):
                lost.append(str(file.relative_to(ROOT)))
    assert not lost


def test_units_of_earlier_builds_with_another_suffix_are_removed(
    given: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python prefers the suffix of its own version, whatever was built last."""
    from setuptools import Distribution, Extension

    monkeypatch.chdir(tmp_path)
    made = Distribution({"packages": ["mine"], "ext_modules": [Extension("mine.unit", [], py_limited_api=True)]})
    build = given["cmdclass"]["build_ext"](made)
    build.build_lib = "lib"
    build.ensure_finalized()
    built = Path("lib", build.get_ext_filename("mine.unit"))
    old = [Path("mine", name) for name in ("unit.cpython-311-x86_64-linux-gnu.so", "unit.so", "unit.pyd")]
    for file in (built, *old, Path("mine", "unit.py")):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"")
    build.copy_extensions_to_source()
    assert {path.name for path in Path("mine").iterdir()} == {built.name, "unit.py"} and "abi3" in built.name


def test_wheels_are_for_the_stable_abi(given: dict) -> None:
    assert given["options"] == {"bdist_wheel": {"py_limited_api": "cp311"}}
    assert all(unit.py_limited_api and unit.optional for unit in given["ext_modules"])
