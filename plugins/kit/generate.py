"""The files of a new plugin: the executed blocks of its kind's page in docs/plugins, under a name of their own."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from sparsemap import __version__
from sparsemap.errors import SpecError, unknown

if TYPE_CHECKING:
    from sparsemap.pieces.registry import Registry

HERE = Path(__file__).parent
PAGES = HERE / "pages" if (HERE / "pages").is_dir() else HERE.parents[1] / "docs" / "plugins"
"""A build puts the pages beside this module."""
BLOCK = re.compile(r"^`([\w./-]+)`:?\n```(?:python|toml)\n(.*?)^```", re.M | re.S)
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


SMALL = '"matmul-32x64x48", "edge-16gbps"'
STUDY = """kind = "study"
name = "plugin-name"
description = "two searchers on a small workload"
workloads = ["matmul-32x64x48"]
hardware = ["edge-16gbps"]
searchers = ["sparsemap", "random"]
budget = 200
out = "runs/plugin-name"
"""
SPECS_ALONE = '"""ABOUT, `plugin-name`: the TOML file beside this one."""\n'
REGISTER = """

@hookimpl
def register_specs():
    return [Path(__file__).parent]
"""
TESTS = """from sparsemap import load_problem, search
from sparsemap.pieces.loading import load
IMPORTS
REGISTRY = load()
PROBLEM = load_problem(
    PARTS,
    registry=REGISTRY,
)


def test_it_keeps_the_contract():
    CHECK


def test_a_search_with_it_evaluates_its_budget():
    assert search(PROBLEM, budget=500SEARCHER).evaluations == 500
"""


@attrs.frozen
class Example:
    """What a plugin of a kind is made of."""

    page: str
    """The page in docs/plugins."""
    module: str = ""
    """The block that is its module; empty: it has TOML alone."""
    spec: str = ""
    """The block that is its spec."""
    about: str = ""
    """What it is, of a plugin without Python."""
    parts: str = SMALL
    """What its tests load as a problem."""
    check: str = "assert len(PROBLEM.space)"
    """What its tests call to check the contract; a function of `sparsemap.testing`, or a statement."""
    tests: str = TESTS


def _operator(kind: str, module: str) -> Example:
    check = f'check_operator(REGISTRY.get("{kind}", "plugin-name"), PROBLEM)'
    return Example("operator", f"my-plugins/{module}/__init__.py", f"my-plugins/{module}/{module}.toml", check=check)


NODES = """from sparsemap.pieces.loading import load
from sparsemap.problem.network import nodes_of


def test_the_shapes_of_its_layers_fit():
    registry = load()
    assert nodes_of(registry.get("network", "plugin-name"), registry)
"""
CELLS = """from sparsemap.pieces.loading import load
from sparsemap.study.study import run_study


def test_all_its_searches_end(tmp_path):
    outcomes = run_study(load().get("study", "plugin-name"), out=str(tmp_path))
    assert [outcome.state for outcome in outcomes] == ["done"] * 2
"""
EXAMPLES = {
    "charge": Example(
        "charge", "my-plugins/refresh/__init__.py", "my-plugins/refresh/refreshed.toml",
        parts=f'{SMALL}, cost_model="plugin-name"', check="check_cost_model(PROBLEM.cost_model, PROBLEM)",
    ),
    "cost-model": Example(
        "cost-model", "my-plugins/roofline/__init__.py",
        parts=f'{SMALL}, cost_model="plugin-name"', check="check_cost_model(PROBLEM.cost_model, PROBLEM)",
    ),
    "crossover": _operator("crossover", "two_cuts"),
    "density": Example(
        "density", "my-plugins/coin_flips/__init__.py", "flips.toml",
        parts='"plugin-name", "edge-16gbps"', check="check_density(PROBLEM.tensors[0].density)",
    ),
    "exporter": Example(
        "exporter", "my-plugins/loops_csv/__init__.py",
        check='assert REGISTRY.get("exporter", "plugin-name").text(search(PROBLEM, budget=500), PROBLEM)',
    ),
    "format": Example(
        "format", "my-plugins/word_bitmask/__init__.py", "my-plugins/word_bitmask/bytes.toml",
        parts=f'{SMALL}, {{"extends": "paper", "formats": {{"candidates": ["uncompressed", "plugin-name"]}}}}',
        check='check_format(REGISTRY.get("format", "plugin-name"))',
    ),
    "hardware": Example(
        "hardware", spec="clustered.toml", about="A hardware", parts='"matmul-32x64x48", "plugin-name"',
        check="assert PROBLEM.compute_instances",
    ),
    "init": _operator("init", "best_of_several"),
    "mechanism": Example(
        "mechanism", "my-plugins/look_ahead/__init__.py", "my-plugins/look_ahead/skip4.toml",
        parts=f'{SMALL}, {{"extends": "paper", "gate-skip": {{"candidates": ["none", "plugin-name"]}}}}',
        check='check_mechanism(REGISTRY.get("mechanism", "plugin-name"))',
    ),
    "memory-level": Example(
        "memory-level", "my-plugins/reserving/__init__.py", "my-plugins/reserving/reserving.toml",
        parts='"matmul-32x64x48", "plugin-name"', check="check_memory_level(PROBLEM.levels[1].memory)",
    ),
    "mutation": _operator("mutation", "stepping"),
    "network": Example("network", spec="tiny.toml", about="A network", tests=NODES),
    "objective": Example(
        "objective", "my-plugins/deadline/__init__.py",
        parts=f'{SMALL}, objective="plugin-name"', check="check_objective(PROBLEM.objective)",
    ),
    "operation": Example("network", "my-plugins/upsampling/__init__.py", "decoder.toml", tests=NODES),
    "searcher": Example(
        "searcher", "my-plugins/climbing/__init__.py",
        check='check_searcher(REGISTRY.get("searcher", "plugin-name"), PROBLEM)',
    ),
    "segment": Example(
        "segment", "my-plugins/one_order/__init__.py", "my-plugins/one_order/space.toml",
        parts=f'{SMALL}, "plugin-name"', check='check_segment(PROBLEM.space.segments["orders"], PROBLEM)',
    ),
    "selection": _operator("selection", "tournament"),
    "space": Example("segment", spec="weight-stationary.toml", about="A space", parts=f'{SMALL}, "plugin-name"'),
    "study": Example("", about="A study", tests=CELLS),
    "technology": Example(
        "technology", "my-plugins/flat/__init__.py",
        parts='"matmul-32x64x48", {"extends": "edge-16gbps", "technology": "plugin-name"}',
        check="check_technology(PROBLEM.technology, PROBLEM)",
    ),
    "workload": Example(
        "workload", "my-plugins/layers/__init__.py", "classifier.toml",
        parts='"plugin-name", "edge-16gbps"', check="assert PROBLEM.loops.sizes",
    ),
}  # fmt: skip
"""By kind, the blocks that a plugin of it is made of, and what its tests do."""


def kinds() -> list[str]:
    """The kinds that a plugin can be written for."""
    return sorted(EXAMPLES)


def files_of(name: str, kind: str, registry: Registry) -> dict[str, str]:
    """The files of a plugin by their path in its folder; SpecError if the name will not do."""
    if kind not in EXAMPLES:
        raise SpecError.at("", "--kind", unknown("kind", kind, kinds()))
    package = name.replace("-", "_")
    if not NAME.fullmatch(name):
        raise SpecError.at("", "NAME", f"expected lower-case words with hyphens, such as wide-{kind}; found {name!r}")
    if keyword.iskeyword(package) or keyword.issoftkeyword(package):
        raise SpecError.at("", "NAME", f"'{package}' is a word of Python's own, and no package can be called so")
    if find_spec(package) is not None:
        raise SpecError.at("", "NAME", f"there is a module '{package}' already; a longer name would be of its own")
    taken = [known for known in registry.kinds() if name in registry.type_names(known) or registry.has(known, name)]
    if taken:
        raise SpecError.at("", "NAME", f"there is a {taken[0]} '{name}' already")
    example = EXAMPLES[kind]
    module, spec = _blocks(example)
    described = re.search(r'^kind = "(.*)"$', spec, re.M)
    values = {
        "plugin-name": name,
        "plugin_name": package,
        "PluginName": "".join(word.capitalize() for word in name.split("-")),
        "ABOUT": example.about or f"A plugin of kind {kind}",
        "VERSION": ".".join(__version__.split(".")[:2]),
        "USE": f"describe {described[1] if described else kind} {name}",
    }
    files = {"pyproject.toml": PROJECT, "README.md": README, "plugin_name/__init__.py": module}
    if spec:
        files["plugin_name/plugin-name.toml"] = spec
    files["tests/test_plugin_name.py"] = _tests(example, spec, kind)
    return {filled(path, values): filled(text, values) for path, text in files.items()}


def _blocks(example: Example) -> tuple[str, str]:
    """The module and the spec of an example with `plugin-name` and `PluginName` for the names that its page uses."""
    blocks = {"": STUDY}
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
        module = f"{start}{docstring}from pathlib import Path\n{hooked}\n{rest.lstrip()}".rstrip() + "\n" + REGISTER
    return filled(module, names), filled(spec, names)


def _tests(example: Example, spec: str, kind: str) -> str:
    check = example.check.partition("(")[0]
    imported = f"from sparsemap.testing import {check}\n" if check.startswith("check_") else ""
    searched = kind == "searcher" or 'kind = "searcher"' in spec
    searcher = ', searcher="plugin-name"' if searched else ""
    values = {"IMPORTS": imported, "PARTS": example.parts, "CHECK": example.check, "SEARCHER": searcher}
    return filled(example.tests, values)


def filled(text: str, values: Mapping[str, str]) -> str:
    for token, value in values.items():
        text = text.replace(token, value)
    return text
