"""The verb `sparsemap import-model`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sparsemap.cli.group import json_option
from sparsemap.cli.study import run_options, run_written
from sparsemap.errors import SparseMapError, SpecError, readable

if TYPE_CHECKING:
    from .importer import ModelImport


@click.command("import-model")
@click.argument("model", metavar="MODEL", type=click.Path(path_type=Path))
@click.option("-o", "--out", type=click.Path(dir_okay=False, path_type=Path), help="TOML file.  [default: MODEL.toml]")
@click.option(
    "--batch", type=click.IntRange(1), help="Samples at a time, where the model leaves it open.  [default: 1]"
)
@click.option("--dim", "dims", multiple=True, metavar="NAME=N", help="Size of a named dimension of an input.")
@click.option(
    "--activations", default="range", show_default=True, metavar="range|dense|FILE.npz",
    help="Densities of activations: 0.1 to 1 behind a ReLU; 1; or measured on samples, an array per input.",
)  # fmt: skip
@click.option("--densities", type=click.Choice(["measured", "dense"]), default="measured", show_default=True)
@click.option("--save-weights", is_flag=True, help="Write sparse weights beside the file, as `data` densities.")
@click.option("--network", default="", metavar="NETWORK", help="Name or file that has the layers of a file of weights.")
@click.option("--overwrite", is_flag=True, help="Replace the file, and with --run results of other searches.")
@click.option("--strict", is_flag=True, help="Fail where a node that multiplies or joins layers is left out.")
@run_options
@click.option("-q", "--quiet", is_flag=True)
@json_option
def import_model(
    model: Path, out: Path | None, batch: int | None, dims: tuple[str, ...], activations: str, densities: str,
    save_weights: bool, network: str, overwrite: bool, strict: bool, hardware: str, designs: int | None, quiet: bool,
    as_json: bool,
) -> ModelImport:  # fmt: skip
    """Read MODEL, an ONNX file, as a network with the densities of its weights.

    Shapes are inferred, shares of nonzero weights counted, and N:M and block patterns found where weights keep to them.
    MODEL may also be weights alone, .safetensors or .npz, for the layers of --network. With --run the network is searched
    on each hardware, with the very nonzeros of its weights; results and report go to the folder `runs` beside the file.
    """
    from sparsemap.cli import output
    from sparsemap.cli.networks import network_of
    from sparsemap.pieces.loading import load
    from sparsemap.problem.network import nodes_of

    from .importer import ModelImport, import_model, import_weights

    registry, out, save_weights = load(), out or Path(f"{model.stem}.toml"), save_weights or bool(hardware)
    if out.exists() and not overwrite:
        going = ", with which --run goes on where it stopped" if hardware else ""
        raise click.UsageError(f"{out} exists; name another file (-o), or overwrite it (--overwrite{going})")
    shown = not quiet and sys.stderr.isatty()

    def progress(text: str) -> None:
        if shown:
            click.echo(f"\r\x1b[K{readable(text)}", nl=False, err=True)

    if model.suffix in (".safetensors", ".npz"):
        if not network:
            raise click.UsageError(f"{model.name} holds weights; name the network of their layers with --network")
        piece, base, file = network_of(registry, network)
        nodes = nodes_of(piece, registry, base, file)
        found = ModelImport(model, out, registry, save_weights, progress, piece.name)
        import_weights(found, piece, nodes)
    elif network:
        raise click.UsageError("--network is for weights (.safetensors, .npz); an ONNX model has its own layers")
    else:
        found = ModelImport(model, out, registry, save_weights, progress)
        try:
            import_model(found, batch, _sizes(dims), activations, densities)
        except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError) as error:
            text = f"cannot be imported: it has what nobody expected ({type(error).__name__}: {error})"
            raise SpecError.at(str(model), "", text) from error
    progress("")
    if strict and found.skipped:
        raise SparseMapError("\n".join(found.notes))
    found.write()
    if as_json:
        click.echo(json.dumps({"file": str(out), "notes": found.notes, **found.table}, indent=2, default=str))
    elif not quiet:
        output.show(output.table(found.rows()) + "\n\n" + "\n".join(found.summary()) + "\n")
        click.echo(f"wrote {readable(str(out))}")
    for note in found.notes:
        output.say(f"note: {note}", "yellow")
    if hardware:
        run_written(out, hardware, designs, out.parent / "runs", overwrite)
    return found


def _sizes(dims: tuple[str, ...]) -> dict[str, int]:
    sizes = {}
    for text in dims:
        name, equals, size = text.rpartition("=")
        if not equals or not name or not size.isdecimal() or not 0 < int(size) < 2**31:
            raise click.BadParameter(f"found {text!r}, expected NAME=N with a whole number", param_hint="--dim")
        sizes[name] = int(size)
    return sizes


VERBS = (import_model,)
