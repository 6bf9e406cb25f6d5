"""The files of a new plugin, made of the template of its kind."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from sparsemap import __version__
from sparsemap.errors import SpecError, unknown
from sparsemap.pieces.registry import Registry

TEMPLATES = Path(__file__).parent / "_templates"
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

PROJECT = """[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "plugin-name"
version = "0.1"
description = "ABOUT, for SparseMap"
requires-python = ">=3.11"
dependencies = ["sparsemap>=VERSION"]

[project.optional-dependencies]
test = ["pytest>=8.0"]

[project.entry-points.sparsemap]
plugin_name = "plugin_name"

[tool.setuptools]
packages = ["plugin_name"]

[tool.setuptools.package-data]
plugin_name = ["*.toml"]

[tool.pytest.ini_options]
testpaths = ["tests"]
"""
README = """# plugin-name

ABOUT for SparseMap.

```bash
pip install -e '.[test]'
pytest
sparsemap USE
```

Without installing it, `--plugin-dir .` loads it for one command, and `SPARSEMAP_PLUGIN_DIRS=. pytest` tests it.
"""


def kinds() -> list[str]:
    """The kinds that have a template."""
    return sorted(path.parent.name.replace("_", "-") for path in TEMPLATES.glob("*/__init__.py"))


def files_of(name: str, kind: str, registry: Registry) -> dict[str, str]:
    """The files of a plugin by their path in its folder; SpecError if the name will not do."""
    if kind not in kinds():
        raise SpecError.at("", "--kind", unknown("kind", kind, kinds()))
    module = name.replace("-", "_")
    if not NAME.fullmatch(name):
        raise SpecError.at("", "NAME", f"expected lower-case words with hyphens, such as wide-{kind}; found {name!r}")
    if keyword.iskeyword(module) or keyword.issoftkeyword(module):
        raise SpecError.at("", "NAME", f"'{module}' is a word of Python's own, and no package can be called so")
    if find_spec(module) is not None:
        raise SpecError.at("", "NAME", f"there is a module '{module}' already; a longer name would be of its own")
    taken = [known for known in registry.kinds() if name in {*registry.names(known), *registry.types(known)}]
    if taken:
        raise SpecError.at("", "NAME", f"there is a {taken[0]} '{name}' already")
    folder = TEMPLATES / kind.replace("-", "_")
    texts = {path.name: path.read_text("utf-8") for path in sorted(folder.iterdir()) if path.is_file()}
    about = texts["__init__.py"].partition('"""')[2].partition(",")[0]
    spec = re.search(r'^kind = "(.*)"$', texts.get("spec.toml", ""), re.M)
    values = {
        "plugin-name": name,
        "plugin_name": module,
        "PluginName": "".join(word.capitalize() for word in name.split("-")),
        "ABOUT": about,
        "VERSION": ".".join(__version__.split(".")[:2]),
        "USE": f"describe {spec[1] if spec else kind} {name}",
    }
    files = {"pyproject.toml": PROJECT, "README.md": README, "plugin_name/__init__.py": texts["__init__.py"]}
    if "spec.toml" in texts:
        files["plugin_name/plugin-name.toml"] = texts["spec.toml"]
    files["tests/test_plugin_name.py"] = texts["test_plugin.py"]
    return {filled(path, values): filled(text, values) for path, text in files.items()}


def filled(text: str, values: Mapping[str, str]) -> str:
    for token, value in values.items():
        text = text.replace(token, value)
    return text
