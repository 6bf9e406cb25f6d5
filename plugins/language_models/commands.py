"""The verb behind `sparsemap run MODEL`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import click

from sparsemap.cli.verbs import SpecRunner


def _read(ctx: click.Context, option: click.Parameter, text: str | None) -> Any:
    """The value of an option in words of its own."""
    from . import texts

    return None if text is None else texts.READERS[option.name or ""](text)


@click.command("language-model", cls=SpecRunner, runs="language-model")
@click.argument("model")
@click.option("--hardware", required=True, metavar="HARDWARE", help="A name or a TOML file.")
@click.option(
    "--context", "contexts", callback=_read, default="2k", show_default=True, metavar="TOKENS,...",
    help="Tokens of a sequence: the prompt of prefill, and what decode has seen, its own token included.",
)  # fmt: skip
@click.option(
    "--lengths", callback=_read, metavar="TOKENS:SHARE,...|CSV",
    help="In place of --context: lengths with shares, or a CSV file with columns length and count; adds their mean.",
)  # fmt: skip
@click.option(
    "--batch", "batches", callback=_read, default="1", show_default=True, metavar="N,...", help="Sequences at a time.",
)  # fmt: skip
@click.option(
    "--prompts", type=click.IntRange(min=1), default=1, show_default=True, help="Prompts that prefill reads at a time."
)
@click.option("--phase", default="", metavar="PHASE", help="prefill, decode or encode.  [default: all of the model]")
@click.option(
    "--weights", "density", default="1", callback=_read, metavar="SHARE|N:M",
    help="Nonzeros among the weights of blocks, such as 0.5 or 2:4.  [default: dense]",
)  # fmt: skip
@click.option(
    "--experts", "loads", callback=_read, metavar="TOKENS,...|CSV",
    help="Tokens of each expert, in any unit, or a CSV file with a column tokens.  [default: equal]",
)  # fmt: skip
@click.option(
    "--weight-bits", callback=_read, metavar="BITS|FORMAT", help="Of weights.  [default: the hardware's word]"
)
@click.option("--group", type=click.IntRange(min=1), help="Weights that share a 16-bit scale.  [default: no scales]")
@click.option(
    "--cache-bits", callback=_read, metavar="BITS|FORMAT", help="Of keys and values.  [default: those of activations]"
)
@click.option(
    "--activation-bits", callback=_read, metavar="BITS|FORMAT", help="Of activations.  [default: the hardware's word]"
)
@click.option("--objective", default="edp", show_default=True, help="A name or expression.")
@click.option("--searcher", help="A name or TOML file.  [default: what the objective asks for]")
@click.option("--space", help="A name or TOML file.  [default: as in a search]")
@click.option("--cost-model", help="A name or TOML file.")
@click.option(
    "--budget", type=click.IntRange(min=1), default=1000, show_default=True, help="Designs per distinct layer."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--jobs", "-j", default=1, show_default=True, type=click.IntRange(min=1), help="Layers at a time.")
@click.option("--out", default="", type=click.Path(file_okay=False), metavar="DIR", help="Folder for the results.")
@click.option("--overwrite", is_flag=True, help="Discard the results of other searches in DIR.")
@click.option("--plugin-dir", "plugin_dirs", multiple=True, metavar="DIR", type=click.Path(), help="Folder of plugins.")
@click.option("--quiet", "-q", is_flag=True, help="No progress and no table; errors are still printed.")
def language_model(
    model: str, hardware: str, contexts: tuple[int, ...], batches: tuple[int, ...], prompts: int, phase: str,
    plugin_dirs: tuple[str, ...], out: str, quiet: bool, weight_bits: Any, cache_bits: Any, activation_bits: Any,
    group: int | None, loads: tuple[float, ...] | None, **how: Any,
) -> None:  # fmt: skip
    """Run a language MODEL: tokens per second, energy and bytes per token.

    MODEL is a name (`sparsemap list language-model`) or a TOML file. Every row of the table is a step: prefill of a
    prompt, or decoding a token of each sequence. The roofline is the least time of weights and cache at the bandwidth
    of DRAM, and of all multiplications. With --out the same command resumes a stopped run, further contexts and batches
    reuse equal layers, and DIR gets serving.csv, serving.json, a figure, and a plan per part."""
    from sparsemap.cli import output
    from sparsemap.cli.answers import answers
    from sparsemap.cli.networks import study_progress
    from sparsemap.cli.study import write_command
    from sparsemap.pieces.loading import load

    from .report import WIDE, about, check, draw, table, write
    from .serving import points_of, served
    from .texts import fitting

    registry = load(plugin_dirs=plugin_dirs)
    found = fitting(registry.resolve("language-model", model), click.get_current_context(), loads)
    bits = {"weight": weight_bits, "cache": cache_bits, "activation": activation_bits, "group": group}

    def watched(cells: Any) -> AbstractContextManager[Any]:
        return study_progress(quiet, cells, out)

    points = points_of(found, tuple(how["lengths"] or contexts), batches, phase, prompts)
    if out and not how["overwrite"]:
        check(Path(out), found.name)
    serving = served(registry, found, hardware, points, bits, out, watched=watched, plugin_dirs=plugin_dirs, **how)
    written = write(serving, Path(out)) if out else []
    if out:
        try:
            written += draw(serving, Path(out))
        except ImportError as error:
            output.say(f"no figure was drawn: {error}", "yellow")
        write_command(out)
    if asked := answers():
        asked.give(serving.to_dict())
    elif not quiet:
        click.echo(output.table(table(serving), "<>>>>>><>>>><", less=WIDE) + "\n")
        click.echo("\n".join(output.wrapped(line) for line in about(serving)))
    if not quiet:
        files = f"{', '.join(path.name for path in written)} and a folder per part are in {out}"
        output.say(files if out else "nothing was kept; --out DIR keeps designs and tables")


VERBS = (language_model,)
