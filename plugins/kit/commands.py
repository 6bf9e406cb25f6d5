"""The verb `new-plugin`."""

from __future__ import annotations

from pathlib import Path

import click

from sparsemap.errors import readable


class ListsKinds(click.Command):
    """Command with the supported kinds at the end of its help."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from .generate import kinds

        self.epilog = f"Kinds: {', '.join(kinds())}."
        super().format_epilog(ctx, formatter)


@click.command("new-plugin", cls=ListsKinds)
@click.argument("name")
@click.option("--kind", required=True, help="What the plugin adds, such as format or searcher; the kinds are below.")
@click.option(
    "--out", default=".", type=click.Path(file_okay=False, path_type=Path), metavar="DIR",
    help="Folder that the plugin's folder goes into; default: the current one.",
)  # fmt: skip
def new_plugin(name: str, kind: str, out: Path) -> None:
    """Write a plugin NAME to start from.

    The plugin is a package with a module, a spec, and passing tests. NAME is lower-case words with hyphens, such as
    wide-bitmask, the name of the package and of its piece."""
    from sparsemap.cli.stdout import wrote
    from sparsemap.pieces.loading import load
    from sparsemap.writing import write_texts

    from .generate import files_of

    folder = out / name
    texts = files_of(name, kind, load())
    if folder.exists() and any(folder.iterdir()):
        raise click.UsageError(f"'{folder}' is not empty; give another NAME, or --out DIR")
    write_texts({folder / path: text for path, text in texts.items()})
    wrote(folder / path for path in texts)
    click.echo(f"install and test it: cd {readable(str(folder))} && pip install -e '.[test]' && pytest", err=True)


VERBS = (new_plugin,)
