"""Verbs for access to other verbs, `extra` and `import`, and `init` and `cite`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

from ..errors import SearchError, listed, nearest
from ..pieces import defaults
from .group import RENAMED, loaded, say_moved
from .help_texts import names_with_texts
from .stdout import answer


class Extra(click.Group):
    """Group of the verbs below `extra`, all built-in verbs outside `GROUPS`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        root: Any = ctx.find_root().command
        return root.extras(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        root: Any = ctx.find_root().command
        found: click.Command | None = root.get_command(ctx, cmd_name)
        if found and cmd_name in RENAMED:
            say_moved(f"extra {cmd_name}")
            return found
        return found if cmd_name in self.list_commands(ctx) else None


@click.group("extra", cls=Extra)
def extra() -> None:
    """Citations, pruning, sweeps, schemas, training, weight blocks."""


class Importer(click.Command):
    """A verb for files of other programs; `sparsemap import` takes the first verb to accept a file by `reads`."""

    def __init__(self, *args: Any, reads: Callable[[Path], bool], files: str, **kwargs: Any) -> None:
        """`files`: the kind of files, in words for help."""
        super().__init__(*args, **kwargs)
        self.reads, self.files = reads, files


class SpecRunner(click.Command):
    """A verb for specs of a plugin's own kind; `sparsemap run` hands names and files of the kind to the verb."""

    def __init__(self, *args: Any, runs: str, **kwargs: Any) -> None:
        """`runs`: the kind."""
        super().__init__(*args, **kwargs)
        self.runs = runs


class Run(click.Command):
    """The verb `run`; a word with the name or file of a `SpecRunner`'s kind replaces it by the runner, options included."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if parent is not None and (found := self._runner(parent, args)):
            return found.make_context(info_name, args, parent, **extra)
        return super().make_context(info_name, args, parent, **extra)

    @staticmethod
    def _runner(parent: click.Context, args: list[str]) -> SpecRunner | None:
        from ..pieces.registry import is_path
        from .hints import kind_of

        after = dict(pairwise(reversed(args)))
        words = [word for word in args if not word.startswith("-")]
        registry = loaded(tuple(word for word in words if after.get(word) == "--plugin-dir"))
        files = {kind_of(registry, word) for word in words if is_path(word)}
        own = {*registry.names("study"), *registry.names("network")}
        if own & {*words} or files & {"study", "network"}:
            return None
        root: Any = parent.find_root().command
        for verb in root.every(parent):
            if isinstance(verb, SpecRunner) and verb.runs in registry.kinds():
                names = registry.names(verb.runs)
                # a misspelt name is the verb's too, which suggests the nearest
                near = {*words} & {*names} or (words and nearest(words[0], [*names, *own]) in names)
                if near or verb.runs in files:
                    return verb
        return None


@click.command("import", add_help_option=False, context_settings={"ignore_unknown_options": True})
@click.argument("words", metavar="FILE [OPTIONS]", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def import_(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Read an ONNX model, or a project of another mapper.

    The kind of FILE decides the output; `sparsemap import FILE --help` shows the options of its kind."""
    root: Any = ctx.find_root().command
    known = [verb for verb in root.every(ctx) if isinstance(verb, Importer)]
    named = [word for word in words if not word.startswith("-")]
    found = next((verb for word in named for verb in known if verb.reads(Path(word))), None)
    if found is None and named and "--help" not in words and "-h" not in words:
        kinds = listed(verb.files for verb in known)
        raise SearchError(f"{named[0]}: no file that can be imported; expected {kinds}")
    if found is None:
        click.echo(ctx.get_help())
        click.echo("\n" + names_with_texts({verb.files: verb.get_short_help_str(60) for verb in known}, "  "))
        return
    with found.make_context(ctx.info_name, list(words), parent=ctx.parent) as own:
        found.invoke(own)


@click.command()
@click.argument("folder", default=".", type=click.Path(file_okay=False, path_type=Path))
@click.option("--workload", default=defaults.START[0], show_default=True, help="Which workload to start from.")
@click.option("--hardware", default=defaults.START[1], show_default=True, help="Which hardware to start from.")
def init(folder: Path, workload: str, hardware: str) -> None:
    """Write a workload, a hardware and a study to start from.

    FOLDER gets workload.toml and hardware.toml, copies of pieces from `sparsemap list workload` and `sparsemap list
    hardware` with their comments, and study.toml, which compares the hardware with another."""
    from ..writing import write_texts
    from .starting import starting_texts

    texts = starting_texts(loaded(()), folder, workload, hardware)
    if there := [str(path) for path in texts if path.exists()]:
        raise SearchError(f"{listed(there)} exist; name another folder: sparsemap init FOLDER")
    files = first, second, third = [str(path) for path in write_texts(texts)]
    then = f"sparsemap check {' '.join(files)}\nsparsemap search {first} {second}\nsparsemap compare {third}"
    answer({"files": files}, lambda: click.echo(f"wrote {listed(files)}; edit them, then:\n\n{then}"))


@click.command()
def cite() -> None:
    """Print BibTeX of SparseMap and of its papers."""
    from .citing import bibtex, citation

    table = citation()
    answer(table, bibtex(table))


VERBS = (extra, import_, init, cite)
