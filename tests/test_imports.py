"""Which module may import which (ARCHITECTURE.md, "Directions that hold"). A failure names the import and the rule."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

ROOT = Path(__file__).parents[1]
CORE = ROOT / "sparsemap"
PLUGINS = ROOT / "plugins"

ROWS = {
    "text": ("errors", "units", "primes", "expressions", "field_types", "tables", "toml_io"),
    "contracts": ("kinds", "designs", "hookspecs", "backend"),
    "pieces": ("specs", "registry", "loading"),
    "problem": ("problem", "space", "evaluation"),
    "search": ("front", "history", "moves", "result", "journal", "search", "folder"),
    "use": ("api", "design_file", "workers", "parallel", "comparison", "testing"),
    "commands": ("cli", "__main__"),
}
"""Rows of modules; at the top of its file a module imports from its own row or from rows above. `cli` is all `cli*`."""

LATE = {
    ("result", "design_file"): "a result writes its design; a design file needs problems, which results know already",
}
"""Imports against the direction that happen within a function, and why."""

PUBLIC = (
    *(
        "sparsemap",
        "backend",
        "design_file",
        "designs",
        "errors",
        "evaluation",
        "expressions",
        "front",
        "hookspecs",
        "kinds",
    ),
    *("loading", "moves", "primes", "problem", "result", "search", "space", "testing", "toml_io", "units"),
)
"""What plugins may import; the other modules of the core may change without notice."""

HEAVY = (
    *("scipy", "matplotlib", "joblib", "torch", "distributed", "yaml", "pandas"),
    *("nevergrad", "gymnasium", "stable_baselines3"),
)
"""Packages of extras: imported in the function that needs them."""

NAMED = {("api", "baselines"): "`gym_env` hands out the environment of the baselines; nothing else depends on it"}
"""Built-in plugins that a core module names, and why."""


@attrs.frozen
class Import:
    """One imported module; `level` dots in front of `name`."""

    line: int
    name: str
    level: int
    top: bool
    """Whether it happens when the file is imported."""

    @property
    def package(self) -> str:
        return self.name.partition(".")[0]


def imports(path: Path) -> list[Import]:
    """Imports of a file, those for type checkers left out."""
    return list(_imports(ast.parse(path.read_text("utf-8")), True))


def _imports(node: ast.AST, top: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            for other in child.orelse:
                yield from _imports(ast.Module([other], []), top)
        elif isinstance(child, ast.Import):
            yield from (Import(child.lineno, alias.name, 0, top) for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and child.module:
            yield Import(child.lineno, child.module, child.level, top)
        elif isinstance(child, ast.ImportFrom):
            yield from (Import(child.lineno, alias.name, child.level, top) for alias in child.names)
        else:
            inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from _imports(child, top and not inside)


def row(module: str) -> int | None:
    """The row that a core module is in."""
    name = "cli" if module.startswith("cli") else module
    return next((number for number, names in enumerate(ROWS.values()) if name in names), None)


def own(item: Import) -> str:
    """The core module that a core module imports, "" for anything else."""
    if item.level == 1:
        return item.package if (CORE / f"{item.package}.py").exists() else ""
    return item.name.split(".")[1] if item.package == "sparsemap" and "." in item.name else ""


def core_files() -> list[Path]:
    return [path for path in sorted(CORE.glob("*.py")) if path.stem != "__init__"]


def plugin_files() -> list[Path]:
    return sorted(PLUGINS.glob("*/**/*.py"))


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", core_files(), ids=lambda path: path.stem)
def test_core_modules_import_from_their_own_row_or_above(path: Path) -> None:
    mine = row(path.stem)
    assert mine is not None, f"{shown(path)} is in no row: add it to ROWS here and to the table in ARCHITECTURE.md"
    names = list(ROWS)
    wrong = []
    for item in imports(path):
        module = own(item)
        if not module or module == "sparsemap" or (path.stem, module) in LATE:
            continue
        other = row(module)
        assert other is not None, f"{shown(path)}:{item.line} imports {module}, which is in no row"
        if other > mine:
            where = f"{shown(path)}:{item.line}: '{path.stem}' (row {names[mine]}) imports '{module}' ({names[other]})"
            wrong.append(f"{where}; rows import from rows above. For annotations: `if TYPE_CHECKING`.")
    assert not wrong, "\n".join(wrong)


def test_the_core_imports_without_circles() -> None:
    graph = {path.stem: {own(item) for item in imports(path) if item.top} - {""} for path in core_files()}
    done: set[str] = set()
    while ready := {name for name, below in graph.items() if name not in done and below <= done}:
        done |= ready
    assert not graph.keys() - done, f"these import each other: {sorted(graph.keys() - done)}"


@pytest.mark.parametrize("path", core_files(), ids=lambda path: path.stem)
def test_the_core_neither_imports_nor_names_a_plugin(path: Path) -> None:
    folders = {folder.parent.name for folder in PLUGINS.glob("*/__init__.py")}
    texts = [
        (node.lineno, node.value)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    texts += [(item.line, item.name) for item in imports(path) if item.package == "sparsemap_plugins"]
    found = [
        f"{shown(path)}:{line} names the plugin '{name}'; the core knows pieces by the names that specs give them"
        for line, text in texts
        for name in sorted(folders)
        if f"sparsemap_plugins.{name}" in text and (path.stem, name) not in NAMED
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("path", plugin_files(), ids=shown)
def test_plugins_import_public_modules_and_never_each_other(path: Path) -> None:
    mine, depth = path.relative_to(PLUGINS).parts[0], len(path.relative_to(PLUGINS).parts) - 1
    wrong = []
    for item in imports(path):
        where = f"{shown(path)}:{item.line} imports {'.' * item.level}{item.name}"
        if item.package == "sparsemap_plugins" and item.name.split(".")[1:2] != [mine]:
            wrong.append(f"{where}: plugins meet through the registry, build the piece by its name there")
        if item.level > depth:
            wrong.append(f"{where}: that is outside of the plugin '{mine}'")
        if item.package == "sparsemap" and item.name not in ("sparsemap", *(f"sparsemap.{name}" for name in PUBLIC)):
            wrong.append(f"{where}: not public; public are {', '.join(PUBLIC)}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(("package", "owner"), [("toml", "toml_io"), ("joblib", "workers")])
def test_one_module_alone_imports(package: str, owner: str) -> None:
    users = {shown(path) for path in (*core_files(), *plugin_files()) for i in imports(path) if i.package == package}
    assert users == {f"sparsemap/{owner}.py"}, f"only {owner} imports {package}"


def test_only_loading_builds_a_plugin_manager() -> None:
    builders = [
        shown(path)
        for path in (*core_files(), *plugin_files())
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute | ast.Name)
        and "PluginManager" in (getattr(node, "attr", ""), getattr(node, "id", ""))
    ]
    assert set(builders) == {"sparsemap/loading.py"}


@pytest.mark.parametrize("path", core_files(), ids=lambda path: path.stem)
def test_the_core_imports_heavy_packages_where_it_uses_them(path: Path) -> None:
    heavy = [
        f"{shown(path)}:{item.line} imports {item.name}" for item in imports(path) if item.top and item.package in HEAVY
    ]
    assert not heavy, f"import it in the function that needs it: {heavy}"


def modules_after(code: str) -> set[str]:
    """Modules that a new interpreter has imported after running the code."""
    code += "\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_sparsemap_loads_no_plugin_and_nothing_heavy() -> None:
    loaded = modules_after("import sparsemap")
    assert not {name for name in loaded if name.startswith("sparsemap_")}
    assert not loaded & {*HEAVY, "click", "rich", "toml"}, "import it where it is used"


def test_loading_all_plugins_imports_nothing_heavy() -> None:
    loaded = modules_after("from sparsemap.loading import load\nload(env={})")
    assert not loaded & set(HEAVY), "a plugin imports the package of an extra when it is loaded, not when it is used"
