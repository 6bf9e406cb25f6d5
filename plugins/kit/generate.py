"""The files of a new plugin: the executed blocks of its kind's page in docs/plugins, under a new name."""

from __future__ import annotations

import keyword
import re
import tomllib
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from sparsemap import __version__
from sparsemap.errors import SpecError, unknown
from sparsemap.file_formats import SPEC

if TYPE_CHECKING:
    from sparsemap.pieces.registry import Registry

HERE = Path(__file__).parent
PAGES = HERE / "pages" if (HERE / "pages").is_dir() else HERE.parents[1] / "docs" / "plugins"
"""Folder of the pages; a build puts the pages beside this module."""
BLOCK = re.compile(r"^`([\w./-]+)`:?\n```(?:python|toml)\n(.*?)^```", re.M | re.S)
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

TEXTS = tomllib.loads((HERE / "_templates" / "kinds.toml").read_text("utf-8"))
"""Texts of files, and by kind the fields of an `Example`."""
SMALL = '"matmul-32x64x48", "edge-16gbps"'
SPECS_ALONE = '"""ABOUT, `plugin-name`: the TOML file beside this one."""\n'


@attrs.frozen
class Example:
    """The parts of a plugin of a kind."""

    page: str = ""
    """The page in docs/plugins."""
    module: str = ""
    """The page's block with the module; empty: a plugin of TOML alone."""
    spec: str = ""
    """The page's block with the spec."""
    about: str = ""
    """Description of a plugin without Python."""
    parts: str = "SMALL"
    """Pieces of the problem in the tests."""
    check: str = "assert len(PROBLEM.space)"
    """Contract check of the tests: a function of `sparsemap.testing`, or a statement."""
    tests: str = "usual"
    """Name of the text of tests."""


EXAMPLES = {kind: Example(**table) for kind, table in TEXTS["kind"].items()}


def kinds() -> list[str]:
    """The supported kinds of plugins."""
    return sorted(EXAMPLES)


def files_of(name: str, kind: str, registry: Registry) -> dict[str, str]:
    """The files of a plugin by their path in its folder; SpecError for an unsuitable name."""
    if kind not in EXAMPLES:
        raise SpecError.at("", "--kind", unknown("kind", kind, kinds()))
    package, fault = name.replace("-", "_"), ""
    taken = [known for known in registry.kinds() if name in registry.type_names(known) or registry.has(known, name)]
    if not NAME.fullmatch(name):
        fault = f"expected lower-case words with hyphens, such as wide-{kind}; found {name!r}"
    elif keyword.iskeyword(package) or keyword.issoftkeyword(package):
        fault = f"'{package}' is a word of Python's own, and no package can be called so"
    elif find_spec(package) is not None:
        fault = f"there is a module '{package}' already; a longer name would be of its own"
    elif taken:
        fault = f"there is a {taken[0]} '{name}' already"
    if fault:
        raise SpecError.at("", "NAME", fault)
    example = EXAMPLES[kind]
    module, spec = _blocks(example)
    described = re.search(r'^kind = "(.*)"$', spec, re.M)
    values = {
        "plugin-name": name, "plugin_name": package, "PluginName": "".join(map(str.capitalize, name.split("-"))),
        "ABOUT": example.about or f"A plugin of kind {kind}", "VERSION": ".".join(__version__.split(".")[:2]),
        "USE": f"list {described[1] if described else kind} {name}",
    }  # fmt: skip
    files = {"pyproject.toml": TEXTS["project"], "README.md": TEXTS["readme"], "plugin_name/__init__.py": module}
    if spec:
        files["plugin_name/plugin-name.toml"] = f'format = "{SPEC.text}"\n{spec}'
    files["tests/test_plugin_name.py"] = _tests(example, spec, kind)
    return {filled(path, values): filled(text, values) for path, text in files.items()}


def _blocks(example: Example) -> tuple[str, str]:
    """Module and spec of an example, with `plugin-name` and `PluginName` instead of the page's names."""
    blocks = {"": TEXTS["study"]}
    if example.page:
        blocks = {"": "", **dict(BLOCK.findall((PAGES / f"{example.page}.md").read_text("utf-8")))}
    module, spec = blocks[example.module] if example.module else SPECS_ALONE, blocks[example.spec]
    named = re.search(r'^name = "(.*)"$', spec, re.M)
    names = {f'"{named[1]}"': '"plugin-name"'} if named else {}
    if found := re.search(r"class (\w+)\(\w+\):(?:(?!\nclass ).)*?type_name(?:: [\w\[\]]+)? = \"(.*?)\"", module, re.S):
        names |= {f'"{found[2]}"': '"plugin-name"', f".{found[2]}]": ".plugin-name]", found[1]: "PluginName"}
    if spec:
        start, docstring, rest = module.partition('"""\n')
        hooked = "" if "import hookimpl" in rest or ", hookimpl" in rest else "\nfrom sparsemap import hookimpl\n"
        whole = f"{start}{docstring}from pathlib import Path\n{hooked}\n{rest.lstrip()}"
        module = f"{whole.rstrip()}\n{TEXTS['register']}"
    return filled(module, names), filled(spec, names)


def _tests(example: Example, spec: str, kind: str) -> str:
    check = example.check.partition("(")[0]
    imported = f"from sparsemap.testing import {check}\n" if check.startswith("check_") else ""
    searched = kind == "searcher" or 'kind = "searcher"' in spec
    searcher = ', searcher="plugin-name"' if searched else ""
    values = {"IMPORTS": imported, "PARTS": example.parts, "CHECK": example.check, "SEARCHER": searcher, "SMALL": SMALL}
    return filled(TEXTS["tests"][example.tests], values)


def filled(text: str, values: Mapping[str, str]) -> str:
    for token, value in values.items():
        text = text.replace(token, value)
    return text
