"""Verbs about pieces and their plugins: list, describe, check, plugins."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from ..errors import readable, told
from .answers import answers
from .group import loaded, plugin_dirs
from .stdout import answer, wrote

if TYPE_CHECKING:
    from ..pieces.registry import Registry


@click.command("list")
@click.argument("kind", required=False)
@click.argument("name", required=False)
@plugin_dirs
def list_(kind: str | None, name: str | None, plugin_dirs: tuple[str, ...]) -> None:
    """List kinds, pieces of KIND, or fields of NAME.

    KIND is a kind such as workload, hardware, format or searcher. NAME is a piece, a type or a TOML file: prints the
    fields with units and meanings, and the origin; for a network the layers."""
    from . import output as cli_output
    from .hints import kind_of
    from .keys import first_sentence

    registry = loaded(plugin_dirs)
    if kind is not None and name is not None:
        _describe(kind, name, registry)
        return
    if kind is None:
        kinds = {name: len(registry.names(name)) for name in registry.kinds()}
        table = cli_output.table([["kind", "pieces"], *([name, str(count)] for name, count in kinds.items())])
        answer(kinds, table)
        return
    kind = _singular(kind, registry)
    if kind not in registry.kinds() and (found := kind_of(registry, kind)):
        raise click.UsageError(f"{kind} is a {found}: sparsemap list {found} {kind}")
    # mm2 before mm10
    names = sorted(registry.names(kind), key=lambda x: [int(p) if p.isdigit() else p for p in re.split(r"(\d+)", x)])
    specs = {name: registry.spec(kind, name) for name in names}
    rows = [[x, str(y.get("description") or first_sentence(registry.type(kind, y["type"])))] for x, y in specs.items()]
    types = [[name, first_sentence(cls)] for name, cls in registry.types(kind).items() if name not in names]
    tables = [cli_output.table(rows)] if rows else []
    tables += [f"types, which a spec gives their fields\n{cli_output.table(types)}"] if types else []
    answer(dict(rows), lambda: click.echo("\n\n".join(tables)))


def _singular(kind: str, registry: Registry) -> str:
    """Accepts plurals: `workload` for `workloads`."""
    plural = kind not in registry.kinds() and kind.endswith("s") and kind[:-1] in registry.kinds()
    return kind[:-1] if plural else kind


@click.command()
@click.argument("kind")
@click.argument("name")
@plugin_dirs
def describe(kind: str, name: str, plugin_dirs: tuple[str, ...]) -> None:
    """Describe the piece NAME of KIND."""
    _describe(kind, name, loaded(plugin_dirs))


def _describe(kind: str, name: str, registry: Registry) -> None:
    from ..pieces.registry import is_path
    from ..pieces.study_spec import Network
    from . import output as cli_output
    from .describe import described
    from .networks import described_network

    kind = _singular(kind, registry)
    if kind == Network.kind and (is_path(name) or registry.has(kind, name)):
        about, rows = described_network(registry, name)
        answer(rows, about)
        return
    found = described(registry, kind, name)
    answer(found.to_dict(), found.text(cli_output.width()))


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILE...")
@plugin_dirs
def check(files: tuple[str, ...], plugin_dirs: tuple[str, ...]) -> None:
    """Check spec files of any kind.

    FILE may be a folder of spec files, or the folder of a plugin: formats in Python are then tested too. Files checked
    together may name each other's pieces.

    All mistakes are reported at once."""
    from .check import check_classes, check_files

    packages = tuple(text for text in files if _has_types(Path(text)))  # plugins, whose types their specs need
    registry = loaded((*plugin_dirs, *(text for text in packages if text not in plugin_dirs)))
    found: dict[str, list[Any]] = {text: [] for text in packages if Path(text, PACKAGE).is_file()}
    found |= {**check_classes(packages, registry), **dict(check_files(_files(files, packages), registry))}
    if asked := answers():
        asked.give({file: [attrs.asdict(mistake) for mistake in mistakes] for file, mistakes in found.items()})
    else:
        for line in told(mistake for mistakes in found.values() for mistake in mistakes):
            click.secho(line, err=True, fg="red")
        for file in (file for file, mistakes in found.items() if not mistakes):
            click.echo(f"{readable(file)}: fine")
    if any(found.values()):
        raise SystemExit(1)


PACKAGE = "pyproject.toml"
"""A file of package folders, not a spec."""


def _has_types(folder: Path) -> bool:
    """Whether a folder is a package, or has Python files with hooks."""
    modules = [*folder.glob("__init__.py"), *folder.glob("*/__init__.py")]
    return (folder / PACKAGE).is_file() or any(b"register_" in file.read_bytes() for file in modules)


def _files(given: tuple[str, ...], packages: tuple[str, ...]) -> list[str]:
    """The files, and the TOML files below the folders; packages may have none."""
    found: list[str] = []
    for text in given:
        below = [text]
        if Path(text).is_dir():
            below = sorted(str(path) for path in Path(text).rglob("*.toml") if path.name != PACKAGE)
        if not below and text not in packages:
            raise click.UsageError(f"no TOML file in folder '{text}'")
        found += below
    return found


@click.command()
@plugin_dirs
def plugins(plugin_dirs: tuple[str, ...]) -> None:
    """List the plugins and the hooks that they use."""
    from . import output as cli_output

    found: list[dict[str, Any]] = [
        {"name": plugin.name, "version": plugin.version, "file": plugin.file, "hooks": list(plugin.hooks)}
        for plugin in loaded(plugin_dirs).plugins
    ]
    rows = [[row["name"], row["version"] or "-", ", ".join(row["hooks"]) or "specs only", row["file"]] for row in found]
    answer(found, cli_output.table([["plugin", "version", "hooks", "file"], *rows]))


@click.command()
@click.argument("kind", required=False)
@click.option("--all", "every", is_flag=True, help="All kinds.")
@click.option("--out", type=click.Path(file_okay=False), metavar="DIR", help="Write KIND.json to DIR.")
@click.option("--markdown", is_flag=True, help="Print a reference of all keys instead, for people.")
@plugin_dirs
def schema(kind: str | None, every: bool, out: str | None, markdown: bool, plugin_dirs: tuple[str, ...]) -> None:
    """Print the JSON Schema of spec files of KIND.

    Editors complete and check a spec with the line `#:schema PATH` on top. A schema knows the names of the loaded
    plugins."""
    from . import reference
    from . import schema as schemas

    registry = loaded(plugin_dirs)
    if (kind is None) != every:
        raise click.UsageError("give a KIND or --all")
    as_json = answers() is not None
    if (out is not None) + markdown + as_json > 1:
        raise click.UsageError("--markdown and --json print, --out writes; expected one of them")
    if every and not (out or markdown or as_json):
        raise click.UsageError("--all needs --out DIR, --markdown or --json")
    kinds = schemas.kinds(registry) if kind is None else (_singular(kind, registry),)
    if markdown:
        click.echo(reference.text(registry, [name for name in kinds if name in registry.kinds()] or kinds), nl=False)
        return
    found = {name: schemas.schema(registry, name) for name in kinds}
    if out is None:
        table = found if every else found[kinds[0]]
        answer(table, lambda: click.echo(schemas.text(table), nl=False))
        return
    from ..writing import write_texts

    wrote(write_texts({Path(out) / f"{name}.json": schemas.text(table) for name, table in found.items()}))


VERBS = (list_, describe, check, plugins, schema)
