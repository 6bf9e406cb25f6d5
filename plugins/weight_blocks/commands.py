"""The verbs of weight block sparsity: `compile` and `simulate`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from sparsemap.cli.group import NumberRange, loaded, plugin_dirs
from sparsemap.errors import SpecError, placed, readable

if TYPE_CHECKING:
    from .layers import MeshLayer
    from .schedule import Schedule

A_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
A_FOLDER = click.Path(file_okay=False, path_type=Path)
SEED = click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Of random choices.")


@click.command("compile")
@click.argument("network")
@click.argument("hardware")
@click.option("--sparsity", type=NumberRange(0, 1), help="Share of pruned blocks.  [default: the network's zeros]")
@click.option("--masks", type=click.Path(exists=True, path_type=Path), help="Kept blocks: .npz, .json, folder of .npy.")
@click.option(
    "--tile",
    default="1",
    show_default=True,
    metavar="auto|M",
    help="Tiles of rows in which chains of layers that go from DDR to DDR run as one; auto: as many as are fastest.",
)
@click.option("--out", required=True, type=A_FOLDER, help="Folder for the schedule.")
@plugin_dirs
def compile_command(
    network: str, hardware: str, sparsity: float | None, masks: Path | None, tile: str, out: Path,
    plugin_dirs: tuple[str, ...],
) -> None:  # fmt: skip
    """Compile a NETWORK for a mesh of cores, HARDWARE.

    Writes schedule.json with sub-volumes, places and times of all layers and with all instructions, masks.json with the
    kept blocks of all parts, for even pruning, times.md with all layers beside their times with dense weights, and
    layers.csv with all durations. Blocks without a nonzero weight are pruned, unless --masks or --sparsity decide; the
    first convolution then stays dense, and so does a fully connected layer at the end of a network of convolutions."""
    from sparsemap.cli.networks import network_of
    from sparsemap.cli.progress import steps_bar
    from sparsemap.cli.stdout import wrote
    from sparsemap.markdown import markdown_table
    from sparsemap.problem.network import nodes_of
    from sparsemap.writing import write_text

    from .machine import CoreMesh
    from .networks import layers_of, read_masks
    from .schedule import best_tiles, chains, compile_layers, compile_tiled
    from .schedule_file import write_schedule

    if masks is not None and sparsity is not None:
        raise click.UsageError("--sparsity and --masks exclude each other.")
    if tile != "auto" and not (tile.isascii() and tile.isdigit() and int(tile)):
        raise click.BadParameter(f"expected 'auto' or a whole number from 1 on, found '{tile}'", param_hint="--tile")
    registry = loaded(plugin_dirs)
    piece, base, file = network_of(registry, network)
    spec = registry.resolve("hardware", hardware)
    nodes = nodes_of(piece, registry, base, file)
    with placed("", hardware if Path(hardware).suffix else f"hardware {spec.name}"):
        machine = CoreMesh.of(spec, registry)
    try:
        kept = read_masks(masks) if masks else None
        layers = layers_of(
            nodes, sparsity, kept, machine.block, machine.columns, rectified=piece.rectified, returned=piece.outputs
        )
    except SpecError as error:
        raise error.within("", file) from None
    with steps_bar(len(layers), piece.name) as bar:
        schedule = compile_layers(layers, machine, progress=lambda: bar.update(1))
    counts: dict[str, int] = {}
    if tile == "auto":
        schedule, counts = best_tiles(layers, machine)
    elif tile != "1":
        found = chains(schedule, layers)
        counts = {chain[0].name: int(tile) for chain in found}
        schedule = compile_tiled(layers, machine, [(chain, int(tile)) for chain in found])
    title = f"{piece.name} on {spec.name}"
    whole = [attrs.evolve(one, mask=None, density=1.0) for one in layers]
    dense = compile_layers(whole, machine) if any(one.density < 1 for one in layers) else None
    paths = write_schedule(out, piece.name, spec.name, schedule)
    write_text(out / "times.md", markdown_table(times(schedule, dense)) + "\n")
    paths.append(out / "times.md")
    summary = _summary(title, schedule, dense, sparsity)
    click.echo(summary)
    if tile != "1":
        said = ", ".join(f"{count} from {name} on" for name, count in counts.items())
        click.echo(f"tiles of chains: {said}" if said else "no chain of layers is tiled")
    wrote(paths, "wrote", seconds=schedule.seconds, summary=summary.splitlines())


def times(schedule: Schedule, dense: Schedule | None) -> list[list[str]]:
    """A table of all layers: microseconds, also with dense weights, and the division of the layer."""
    whole = {one.cut.layer.name: one.seconds for one in dense.layers} if dense else {}
    beside = ["dense us", "dense / us"] if whole else []
    rows = [["layer", "us", *beside, "kept", "co", "ci", "rows", "tiles", "passes", "DDR"]]
    for one in schedule.layers:
        layer, before = one.cut.layer, whole.get(one.cut.layer.name, 0.0)
        ratio = [f"{before * 1e6:.1f}", f"{before / one.seconds:.2f}"] if before else [""] * len(beside)
        kept = f"{kept_share(layer):.1%}" if one.cut.convolves else ""
        spilled = "to DDR" if one.placement.spilled else ""
        line = [layer.name, f"{one.seconds * 1e6:.1f}", *ratio, kept]
        rows.append([*line, *map(str, attrs.astuple(one.splits)), spilled])
    return rows


def kept_share(layer: MeshLayer) -> float:
    """Share of the kept blocks of a convolution; even masks keep whole blocks in every block row."""
    import numpy as np

    return float(np.mean(layer.kept(1))) / layer.blocks[1]


def _summary(title: str, schedule: Schedule, dense: Schedule | None, sparsity: float | None) -> str:
    """A table of the slowest layers, and the total."""
    from sparsemap.files import aligned

    head, *every = times(schedule, dense)
    slowest = sorted(every, key=lambda row: -float(row[1]))[:10]
    convs = [one for one in schedule.layers if one.cut.convolves]
    padding = sum(one.profile.padding for one in convs if one.cut.layer.mask is not None)
    stored = sum(schedule.machine.rows * one.profile.bytes.sum() for one in convs)
    total = f"{title}: {schedule.seconds * 1e3:.4f} ms, a model's estimate"
    if dense:
        total += f"; {dense.seconds * 1e3:.4f} ms with dense weights, {dense.seconds / schedule.seconds:.2f}x"
    lines = [total, "", *aligned([head, *slowest], "<" + ">" * (len(head) - 2) + "<", gap=2), ""]
    lines.append(f"the {len(slowest)} of {len(schedule.layers)} layers that take longest; all of them in times.md")
    if sparsity:
        blocks = [(one.cut.layer, math.prod(one.cut.layer.blocks)) for one in convs if one.cut.layer.density < 1]
        kept = sum(kept_share(layer) * count for layer, count in blocks)
        pruned = 1 - kept / max(1, sum(count for _, count in blocks))
        lines.append(f"{pruned:.1%} of the blocks of {len(blocks)} layers are pruned, {sparsity:.1%} were wanted")
    lines.append(f"{stored:,.0f} bytes of weights in records")
    if padding:
        lines.append(f"{padding:,} blocks are stored and computed because rows of cores keep different numbers")
    return "\n".join(lines)


@click.command("simulate")
@click.argument("folder", type=click.Path(exists=True, path_type=Path), metavar="OUT")
@SEED
@click.option("--weights", type=A_FILE, help="int8 weights by layer (.npz, .safetensors), with NAME.bias, NAME.shift.")
@click.option("--input", "image", type=A_FILE, help="int8 input (.npy), channels first, or rows of words.")
@click.option("--outputs", type=click.Path(dir_okay=False, path_type=Path), help="Write the network's outputs (.npz).")
@click.pass_context
def simulate_command(
    context: click.Context, folder: Path, seed: int, weights: Path | None, image: Path | None, outputs: Path | None,
) -> None:  # fmt: skip
    """Execute the output of `sparsemap extra compile` in OUT.

    First compares the file with its layers, compiled again: the first wrong value is an error. Then runs the instructions
    on arrays of bytes, with random weights and inputs or yours. Outputs must equal dense convolutions of the masked
    weights bit by bit, no stale byte may be read, and bytes and cycles must be those of the time model. Last, the
    pipelines run as events, with two buffers and with one. The exit status is 1 after a difference, also of more than
    1 % in the time of a layer."""
    from sparsemap.arrays import read_arrays
    from sparsemap.cli.progress import steps_bar
    from sparsemap.cli.stdout import answer
    from sparsemap.writing import replacing

    from .machinery import BrokenSchedule
    from .schedule_file import read_schedule
    from .simulate import NetworkData, given_weights, simulate

    compiled = read_schedule(folder)
    own = given_weights(compiled, read_arrays(weights)) if weights else None
    array = next(iter(read_arrays(image, (".npy",)).values())) if image else None
    data = NetworkData.of(compiled, seed, own, array)
    with steps_bar(len(compiled.schedule.layers), compiled.network) as bar:
        try:
            outcome = simulate(compiled, data, lambda name: bar.update(1))
        except BrokenSchedule as error:
            click.echo(f"\n{error}", err=True)
            context.exit(1)
    answer(outcome.table(), lambda: click.echo(outcome.text()))
    if outputs:
        import numpy as np

        arrays: Any = outcome.outputs
        with replacing(outputs) as temporary, open(temporary, "wb") as file:
            np.savez(file, **arrays)
        click.echo(f"wrote {readable(str(outputs))}")
    if not outcome.correct:
        context.exit(1)


VERBS = (compile_command, simulate_command)
