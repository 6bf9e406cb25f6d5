"""The verb `sparsemap import`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sparsemap.cli.answers import answers
from sparsemap.cli.group import other_verb
from sparsemap.cli.study import run_options, run_written
from sparsemap.cli.verbs import Importer
from sparsemap.errors import SparseMapError, SpecError, listed, readable

if TYPE_CHECKING:
    from .importer import ModelImport

SUFFIXES = (".onnx", ".safetensors", ".npz")


@click.command("import-model", cls=Importer, files="FILE.onnx", reads=lambda file: file.suffix in SUFFIXES)
@click.argument("model", metavar="MODEL", type=click.Path(path_type=Path))
@click.option("-o", "--out", type=click.Path(dir_okay=False, path_type=Path), help="TOML file.  [default: MODEL.toml]")
@click.option(
    "--batch", type=click.IntRange(1), help="Samples at a time, where the model leaves it open.  [default: 1]"
)
@click.option("--dim", "dims", multiple=True, metavar="NAME=N", help="Size of an open dimension, or of TENSOR:AXIS.")
@click.option("--branch", "branches", multiple=True, metavar="IF=then|else", help="What an If runs, where data decide.")
@click.option("--loop", "loops", multiple=True, metavar="LOOP=N", help="Steps of a Loop, where data decide.")
@click.option(
    "--activations", default="range", show_default=True, metavar="range|dense",
    help="Densities of activations: 0.1 to 1 behind a ReLU, or 1.",
)  # fmt: skip
@click.option(
    "--samples", metavar="FILE.npz", type=click.Path(path_type=Path),
    help="Measure the activations instead: an array per input, samples first.",
)  # fmt: skip
@click.option(
    "--densities", default="measured", show_default=True, metavar="measured|dense|SHARE|N:M", help="Of weights.",
)  # fmt: skip
@click.option("--prune", default="", metavar="N:M", help="Prune the weights first, as the verb `prune` does by size.")
@click.option("--save-weights", is_flag=True, help="Write sparse weights beside the file, as `data` densities.")
@click.option("--network", default="", metavar="NETWORK", help="Name or file that has the layers of a file of weights.")
@click.option("--overwrite", is_flag=True, help="Replace the file, and with --run results of other searches.")
@click.option("--allow-missing", is_flag=True, help="Leave out what multiplies and cannot be imported, and say so.")
@run_options
@click.option("-q", "--quiet", is_flag=True)
def import_model(
    model: Path, out: Path | None, batch: int | None, dims: tuple[str, ...], branches: tuple[str, ...],
    loops: tuple[str, ...], activations: str, samples: Path | None, densities: str, prune: str, save_weights: bool, network: str,
    overwrite: bool, allow_missing: bool, hardware: str, designs: int | None, quiet: bool,
) -> ModelImport:  # fmt: skip
    """Read an ONNX model as a network.

    The densities are measured on its weights. Shapes are inferred, shares of nonzero weights counted, and N:M and block
    patterns found where weights follow a pattern. MODEL may also be weights alone, .safetensors or .npz, for the layers
    of --network. With --run the network is searched on each hardware, with the exact nonzeros of its weights; results
    and report go to the folder `runs` beside the file."""
    from sparsemap.cli import output
    from sparsemap.cli.networks import network_of
    from sparsemap.pieces.loading import load
    from sparsemap.problem.network import nodes_of

    from .folding import ImportChoices
    from .importer import ModelImport, import_weights
    from .model_import import import_model

    registry, out = load(), out or Path(f"{model.stem}.toml")
    save_weights = save_weights or bool(hardware and not prune)
    if out.suffix != ".toml":
        raise click.UsageError(f"--out is {str(out)!r}, expected a TOML file, such as {out.name + '.toml'!r}")
    if out.exists() and not overwrite:
        going = ", with which --run goes on where it stopped" if hardware else ""
        raise click.UsageError(f"{out} exists; name another file (-o), or overwrite it (--overwrite{going})")
    if activations not in ("range", "dense"):
        raise click.UsageError(f"--activations is {activations!r}, expected range or dense; --samples takes a file")
    if samples and activations != "range":
        raise click.UsageError("--samples measures the activations; leave out --activations")
    shown = not quiet and sys.stderr.isatty()

    def progress(text: str) -> None:
        if shown:
            click.echo(f"\r\x1b[K{readable(text)}", nl=False, err=True)

    if model.suffix in (".safetensors", ".npz"):
        if not network:
            raise click.UsageError(f"{model.name} holds weights; name the network of their layers with --network")
        given: dict[str, Any] = {"batch": batch, "dim": dims, "branch": branches, "loop": loops, "prune": prune}
        given |= {"samples": samples, "activations": activations != "range", "densities": densities != "measured"}
        if idle := [f"--{option}" for option, value in given.items() if value]:
            need = "need" if idle[1:] else "needs"
            raise click.UsageError(f"{model.name} holds weights; {listed(idle)} {need} an ONNX model")
        piece, base, file = network_of(registry, network)
        nodes = nodes_of(piece, registry, base, file)
        found = ModelImport(model, out, registry, save_weights, progress, piece.name)
        import_weights(found, piece, nodes)
    elif network:
        raise click.UsageError("--network is for weights (.safetensors, .npz); an ONNX model has its own layers")
    else:
        found = ModelImport(model, out, registry, save_weights, progress)
        choices = ImportChoices(
            batch=batch, dims=_pairs("--dim", dims), loops=_pairs("--loop", loops),
            branches=_pairs("--branch", branches, ("then", "else")),
        )  # fmt: skip
        try:
            import_model(found, choices, samples or activations, densities)
        except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError) as error:
            text = f"cannot be imported: it has what nobody expected ({type(error).__name__}: {error})"
            raise SpecError.at(str(model), "", text) from error
    progress("")
    if found.skipped and not allow_missing:
        missing = "\n".join(found.missing())
        raise SparseMapError(f"{missing}\nnothing is written; --allow-missing imports the rest")
    found.write()
    if asked := answers():
        asked.give({"file": out, "notes": found.notes, **found.table})
    elif not quiet:
        output.show(output.table(found.rows()) + "\n\n" + "\n".join(found.summary()) + "\n")
        if not network:
            output.show("\n" + output.table(found.work()) + "\n")
        click.echo(f"wrote {readable(str(out))}")
    for note in found.notes:
        output.say(f"note: {note}", "yellow")
    if prune:
        _prune(found, prune, hardware, designs)
    elif hardware:
        run_written(out, hardware, designs, out.parent / "runs", overwrite)
    return found


def _prune(found: ModelImport, pattern: str, hardware: str, designs: int | None) -> None:
    """Pass the weights of a model to the verb `prune`, with the written network."""
    import numpy as np

    from sparsemap.writing import replacing

    verb = other_verb("prune")
    if verb is None or found.model is None:
        raise click.UsageError("--prune needs an ONNX model, and the plugin that has the verb `prune`")
    folder = found.out.parent / f"{found.out.stem}-pruned"
    with replacing(folder / "weights.npz") as temporary, open(temporary, "wb") as file:
        np.savez(file, allow_pickle=False, **found.weights())
    more = {"method": "nm-only", "criterion": "l1", "pattern": pattern, "network": str(found.out), "out": folder}
    click.get_current_context().invoke(
        verb, source=str(folder / "weights.npz"), hardware=hardware, designs=designs, **more
    )


def _pairs(option: str, texts: tuple[str, ...], words: tuple[str, ...] = ()) -> dict[str, Any]:
    """Values by name: whole numbers, or one of the allowed words."""
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.rpartition("=")
        fits = value in words if words else value.isdecimal() and 0 < int(value) < 2**31
        if not equals or not name or not fits:
            expected = f"NAME={'|'.join(words)}" if words else "NAME=N with a whole number"
            raise click.BadParameter(f"found {text!r}, expected {expected}", param_hint=option)
        found[name] = value if words else int(value)
    return found


VERBS = (import_model,)
