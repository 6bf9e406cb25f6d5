"""Which folder may import which (ARCHITECTURE.md, "Directions that hold"). A failure names the import and the rule."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import attrs
import pytest

from sparsemap.pieces.loading import load

ROOT = Path(__file__).parents[1]
CORE = ROOT / "sparsemap"
PLUGINS = ROOT / "plugins"

ROOMS = ("inner", "spec", "pieces", "problem", "searching", "study", "testing", "cli")
"""Folders of the core in the order of the flow: a module imports from its own room and from those before it."""

SHARED = (
    "csv_files",
    "errors",
    "extras",
    "file_formats",
    "files",
    "large_primes",
    "latex",
    "markdown",
    "plots",
    "primes",
    "writing",
)
"""Modules beside the rooms that every room may import; they import none."""

HEAVY = (
    *("scipy", "matplotlib", "torch", "distributed", "yaml", "pandas", "onnx"),
    *("nevergrad", "gymnasium", "stable_baselines3"),
)
"""Packages of extras: imported in the function that needs them."""


@attrs.frozen
class Import:
    """One imported module by its full name."""

    line: int
    name: str
    top: bool
    """Whether it happens when the file is imported."""

    @property
    def package(self) -> str:
        return self.name.partition(".")[0]

    @property
    def room(self) -> str:
        """The room or module directly below `sparsemap`; "" outside of it."""
        parts = self.name.split(".")
        return parts[1] if parts[0] == "sparsemap" and len(parts) > 1 else ""


def full_name(path: Path) -> tuple[str, ...]:
    """The packages that a file is in: ("sparsemap", "spec"), ("sparsemap_plugins", "reports")."""
    parts = path.relative_to(ROOT).parts[:-1]
    return ("sparsemap_plugins", *parts[1:]) if parts[0] == "plugins" else parts


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def below(node: ast.AST) -> Iterator[ast.AST]:
    """Statements of a node, and what holds others: cases and handlers. No expression has any."""
    for field in ("body", "orelse", "handlers", "cases", "finalbody"):
        yield from getattr(node, field, ())


def statements(node: ast.AST) -> Iterator[ast.AST]:
    for child in below(node):
        yield child
        yield from statements(child)


@cache
def imports(path: Path) -> list[Import]:
    """Imports of a file, those for type checkers left out."""
    return list(_imports(tree(path), True, full_name(path)))


def _imports(node: ast.AST, top: bool, package: tuple[str, ...]) -> Iterator[Import]:
    for child in below(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for other in child.orelse:
                yield from _imports(ast.Module([other], []), top, package)
        elif isinstance(child, ast.Import):
            yield from (Import(child.lineno, alias.name, top) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            base = package[: len(package) - child.level + 1] if child.level else ()
            whole = ".".join((*base, *([child.module] if child.module else [])))
            for alias in child.names:
                names_module = child.module is None or (ROOT / whole.replace(".", "/") / f"{alias.name}.py").exists()
                yield Import(child.lineno, f"{whole}.{alias.name}" if names_module else whole, top)
        else:
            inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
            yield from _imports(child, top and not inside, package)


def core_files() -> list[Path]:
    return [path for path in sorted(CORE.rglob("*.py")) if path != CORE / "__init__.py"]


def plugin_files() -> list[Path]:
    return sorted(PLUGINS.glob("*/**/*.py"))


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_every_folder_of_the_core_is_a_room_and_says_what_it_is_for() -> None:
    assert {path.parent.name for path in CORE.glob("*/__init__.py")} == set(ROOMS)
    for room in ROOMS:
        text = ast.get_docstring(ast.parse((CORE / room / "__init__.py").read_text("utf-8"))) or ""
        assert len(text.splitlines()) >= 3, f"sparsemap/{room}/__init__.py: say what the room is for and what is public"


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_from_itself_and_from_rooms_before_it(room: str) -> None:
    allowed = {"", *SHARED, *ROOMS[: ROOMS.index(room) + 1]}
    wrong = [
        f"{shown(path)}:{item.line} imports {item.name}; rooms import from those before: {', '.join(ROOMS)}. "
        "For annotations: `if TYPE_CHECKING`."
        for path in sorted((CORE / room).rglob("*.py"))
        for item in imports(path)
        if item.room not in allowed and item.name != "sparsemap.__version__"
    ]
    assert not wrong, "\n".join(wrong)


TYPES = {
    "boundary": {"Chip", "Place", "Space"},
    "contracts": {
        "Budget",
        "Chip",
        "Design",
        "Designs",
        "Evaluation",
        "Level",
        "Place",
        "Problem",
        "Result",
        "Scenario",
        "Space",
    },
    "hookspecs": {"Best", "Execution", "Problem", "Result", "Snapshot"},
}
"""By module of `pieces`, the types of rooms below that its annotations name: what a method of a piece is given."""


def test_annotations_of_contracts_name_what_methods_are_given_and_no_other_room_looks_below() -> None:
    """Imports for type checkers, which the other tests leave out."""
    wrong = []
    for path in core_files():
        room = path.relative_to(CORE).parts[0]
        if room not in ROOMS or room == "testing":
            continue
        below = set(ROOMS[ROOMS.index(room) + 1 :])
        known = (
            TYPES.get((path.stem if path.parent.name == room else path.parent.name), set())
            if room == "pieces"
            else set()
        )
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                for item in (inside for inside in ast.walk(node) if isinstance(inside, ast.ImportFrom)):
                    base = full_name(path)[: len(full_name(path)) - item.level + 1]
                    names = {alias.name for alias in item.names} - known
                    if (*base, *(item.module or "").split("."))[1] in below and names:
                        wrong.append(f"{shown(path)}:{item.lineno} names {', '.join(sorted(names))}")
    assert not wrong, "\n".join(wrong)


def test_shared_modules_import_no_room() -> None:
    wrong = [
        f"{shown(path)}:{item.line} imports {item.name}"
        for path in (CORE / f"{name}.py" for name in SHARED)
        if path.exists()
        for item in imports(path)
        if item.room in ROOMS
    ]
    assert not wrong, "\n".join(wrong)


def test_the_core_imports_without_circles() -> None:
    def module(path: Path) -> str:
        return ".".join((*full_name(path), *([path.stem] if path.stem != "__init__" else [])))

    names = {module(path): path for path in core_files()}
    graph = {name: {i.name for i in imports(path) if i.top} & names.keys() - {name} for name, path in names.items()}
    done: set[str] = set()
    while ready := {name for name, below in graph.items() if name not in done and below <= done}:
        done |= ready
    assert not graph.keys() - done, f"these import each other: {sorted(graph.keys() - done)}"


SAME_WORD = {
    "sparsemap": "the program, the packages and the group of entry points; the default searcher is called like them",
    "edp": "the energy-delay product, a number of every result; the objective is called like it",
    "filters": "what a mechanism's contract gives",
    "data": "what a result says of the files it depends on",
    "int8": "a type of arrays; a number format is called like it",
    "mm2": "the unit of areas; a workload is called like it",
    **dict.fromkeys(
        ("energy", "delay", "power", "area", "seconds", "edp_js"), "a cost; its objective is called like it"
    ),
    "gated": "what becomes of an access or a compute; the charge for it is called like it",
    "view": "how a workload is searched, a field of it; an operation is called like it",
    "stay": "how many tensors a plan keeps on chip; a charge is called like it",
}
"""Words that the core needs for something else than the piece of that name, and for what."""

DEFAULTS = CORE / "pieces" / "defaults.py"
"""Names of what is used where nobody names anything."""


@cache
def texts(path: Path) -> list[tuple[int, str]]:
    """Lines and texts of a file, docstrings left out."""
    nodes = list(ast.walk(tree(path)))
    bodies = (node.body for node in nodes if isinstance(getattr(node, "body", None), list))
    docs = {id(node.value) for body in bodies for node in body if isinstance(node, ast.Expr)}
    found = []
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            found.append((node.lineno, node.value))
    return found


def test_the_core_imports_no_plugin() -> None:
    wrong = [
        f"{shown(path)}:{line} names {text}; the core finds plugins by looking into their folder"
        for path in core_files()
        for line, text in [*texts(path), *((item.line, item.name) for item in imports(path))]
        if re.match(r"sparsemap_plugins\.\w", text)
    ]
    assert not wrong, "\n".join(wrong)


def test_the_core_names_no_piece() -> None:
    """Types and specs are looked up by the names that users and specs give; defaults have one home."""
    registry = load(env={})
    names = {name: kind for kind in registry.kinds() for name in (*registry.names(kind), *registry.types(kind))}
    kinds = set(registry.kinds())
    wrong = [
        f"{shown(path)}:{line} names the {names[word]} '{word}'; see {shown(DEFAULTS)}"
        for path in core_files()
        if path != DEFAULTS
        for line, text in texts(path)
        for word in {text, *re.findall(r"\b[a-z0-9]+(?:-[a-z0-9]+)+\b|(?<=')[a-z0-9]+(?=')", text)}
        if word in names and word not in kinds and word not in SAME_WORD
    ]
    assert not wrong, "\n".join(wrong)


def test_every_excused_word_is_used() -> None:
    used = {text for path in core_files() for _, text in texts(path)}
    assert used >= SAME_WORD.keys()


def test_plugins_never_import_each_other() -> None:
    wrong = [
        f"{shown(path)}:{item.line} imports {item.name}: plugins meet through the registry, build the piece by its name"
        for path in plugin_files()
        for item in imports(path)
        if item.package == "sparsemap_plugins" and item.name.split(".")[1:2] != [path.relative_to(PLUGINS).parts[0]]
    ]
    assert not wrong, "\n".join(wrong)


PAGE = (ROOT / "docs" / "stability.md").read_text("utf-8")


def stable_modules() -> set[str]:
    row = next(line for line in PAGE.splitlines() if line.startswith("| modules |"))
    return set(re.findall(r"`(sparsemap[\w.]*)`", row))


def provisional_modules() -> set[str]:
    rows = re.findall(r"^\| `(sparsemap[\w.]*)` \| (.*) \|$", PAGE, re.M)
    return {f"{room}.{name}" for room, names in rows for name in re.findall(r"`([\w.]+)`", names)}


def test_plugins_import_public_modules_alone() -> None:
    public = stable_modules() | provisional_modules()
    wrong = [
        f"{shown(path)}:{item.line} imports {item.name}, which docs/stability.md does not list"
        for path in plugin_files()
        for item in imports(path)
        if item.package == "sparsemap" and item.name not in public
    ]
    assert not wrong, "\n".join(wrong)


def test_plugins_import_no_private_names() -> None:
    wrong = [
        f"{shown(path)}:{node.lineno} imports {alias.name}"
        for path in plugin_files()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == "sparsemap"
        for alias in node.names
        if alias.name.startswith("_") and alias.name != "__version__"
    ]
    assert not wrong, "\n".join(wrong)


def test_every_listed_module_exists_and_is_imported() -> None:
    used = {item.name for path in plugin_files() for item in imports(path)}
    assert provisional_modules() <= used, "shorten the list of docs/stability.md"
    for name in stable_modules() | provisional_modules():
        import_module(name)


def test_plugins_to_start_from_import_listed_modules_alone() -> None:
    """The pages of plugins, which `new-plugin` cuts its files from."""
    texts = "".join(path.read_text("utf-8") for path in sorted((ROOT / "docs" / "plugins").glob("*.md")))
    used = set(re.findall(r"^(?:from|import) (sparsemap[\w.]*)", texts, re.M))
    assert used <= stable_modules() | provisional_modules()


def test_only_toml_text_imports_toml() -> None:
    users = {shown(path) for path in (*core_files(), *plugin_files()) for i in imports(path) if i.package == "toml"}
    assert users == {"sparsemap/spec/toml_text.py"}


def test_only_loading_builds_a_plugin_manager() -> None:
    builders = [
        shown(path)
        for path in (*core_files(), *plugin_files())
        if "PluginManager" in path.read_text("utf-8")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute | ast.Name)
        and "PluginManager" in (getattr(node, "attr", ""), getattr(node, "id", ""))
    ]
    assert set(builders) == {"sparsemap/pieces/loading.py"}


def test_the_core_imports_heavy_packages_where_it_uses_them() -> None:
    heavy = [
        f"{shown(path)}:{item.line} imports {item.name}"
        for path in core_files()
        for item in imports(path)
        if item.top and item.package in HEAVY
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
    loaded = modules_after("from sparsemap.pieces.loading import load\nload(env={})")
    assert not loaded & set(HEAVY), "a plugin imports the package of an extra when it is loaded, not when it is used"


def test_a_class_name_says_one_thing():
    """A reader who meets a public name in two rooms looks for one meaning."""
    homes: dict[str, list[str]] = {}
    for folder in ("sparsemap", "plugins"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in statements(tree(path)):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    homes.setdefault(node.name, []).append(path.name)
    assert not {name: files for name, files in homes.items() if len(files) > 1}


def test_benchmarks_import_names_that_exist() -> None:
    """No test runs them whole: what has moved is noticed here."""
    missing = []
    for file in sorted((ROOT / "benchmarks").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in (
                "sparsemap",
                "sparsemap_plugins",
            ):
                module = import_module(node.module or "")
                names = [alias.name for alias in node.names]
                missing += [
                    f"{file.name}:{node.lineno}: {name}"
                    for name in names
                    if not hasattr(module, name) and find_spec(f"{node.module}.{name}") is None
                ]
    assert not missing
