"""The verb `sparsemap silicon`."""

from __future__ import annotations

import click

from sparsemap.errors import listed
from sparsemap.files import aligned


@click.command("silicon")
@click.argument("hardware", nargs=-1)
@click.option("technologies", "--technology", multiple=True, help="In place of the hardware's own; may be repeated.")
@click.option("plugin_dirs", "--plugin-dir", multiple=True, metavar="DIR", type=click.Path(), help="Folder of plugins.")
def silicon_command(hardware: tuple[str, ...], technologies: tuple[str, ...], plugin_dirs: tuple[str, ...]) -> None:
    """Power and area of hardware, beside published chips.

    Power has three steps: leakage of all memories; plus all MACs busy, fed by registers; plus two reads and a write of
    the innermost memory per MAC, as if nothing were reused. Area includes the decoders and skipping units of `units`,
    but no wiring and no control. DRAM is shown without traffic.
    """
    from sparsemap import load_problem
    from sparsemap.pieces.loading import load

    from .silicon import HEADER, PLATFORMS, WORKLOAD, Silicon, chip_rows

    registry = load(plugin_dirs=plugin_dirs)
    rows, built = [HEADER], []
    for name in hardware or PLATFORMS:
        for technology in technologies or ("",):
            given = {"extends": name, "name": name, "technology": technology} if technology else name
            found = Silicon.of(load_problem(WORKLOAD, given, registry=registry))
            rows.append(found.row())
            built += [f"{found.units_mm2:.3g} mm2 of {name}"] if found.units_mm2 else []
    click.echo("\n".join(aligned(rows, "<<>")))
    if built:
        click.echo(
            f"{listed(dict.fromkeys(built))}: sparse units. Without `units` a hardware has any of them at no area"
        )
    click.echo()
    click.echo("\n".join(aligned(chip_rows(), "<>>>><")))


VERBS = (silicon_command,)
