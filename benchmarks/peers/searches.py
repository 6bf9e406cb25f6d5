"""Side-by-side searches: the same problem and chip in every tool, and every found design in every tool's model."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from harness import Done, Environment, Figures, run
from problems import CHIPS, PROBLEMS, WIDEST_SPACE, workload
from replays import WRITERS, from_peer, in_peer, ours, plain
from sparsemap_plugins.exchange.dense import dense
from sparsemap_plugins.exchange.nest import Layer, PlainChip

from sparsemap import load_problem
from sparsemap.errors import SparseMapError
from sparsemap.pieces.registry import Registry
from sparsemap.problem import design_file
from sparsemap.problem.designs import Design
from sparsemap.spec import toml_text
from sparsemap.spec.notes import Notes
from sparsemap.spec.yaml_text import yaml_text
from sparsemap.writing import write_texts

Row = dict[str, Any]
OWN = {
    "default": ("--cost-model", "timeloop"),
    "short": ("--cost-model", "timeloop", "--budget", "2000"),
    "widest": ("--cost-model", "timeloop", "--space", "space.toml"),
}
"""Options of `sparsemap search` by setting."""
SCRIPT_LINES = {"accelforge": 5, "ZigZag": 2}
"""Lines of Python for a search: import, read, objective, search, best."""


def lines_of(folder: Path, names: tuple[str, ...]) -> int:
    """Number of lines with content in files of a user."""
    texts = [(folder / name).read_text("utf-8") for name in names]
    return sum(bool(line.strip()) and not line.lstrip().startswith("#") for text in texts for line in text.splitlines())


def own_search(problem: str, chip: str, setting: str, folder: Path) -> tuple[Done, int]:
    """A search by the command in a process, and the number of lines of files and command."""
    files = {"workload.toml": workload(problem), "chip.toml": CHIPS[chip]}
    files |= {"space.toml": WIDEST_SPACE} if setting == "widest" else {}
    write_texts({folder / name: toml_text.dumps(table) for name, table in files.items()})
    command = [sys.executable, "-m", "sparsemap", "search", "workload.toml", "chip.toml", *OWN[setting], "--quiet"]
    done = run([*command, "--overwrite", "--out", "best"], folder)
    return done, lines_of(folder, tuple(files)) + 1


def peer_search(peer: Environment, problem: str, chip: str, setting: str, folder: Path) -> tuple[Done, int]:
    """A search of a peer in a process, and the number of lines of files and script."""
    own = load_problem(workload(problem), CHIPS[chip], cost_model="timeloop")
    loops = {name: own.loops.sizes[name] for name in own.dims}  # sizes as given, without padding
    layer = Layer(problem, loops, Layer.of(own).ranks)
    free = setting == "widest"
    files = WRITERS[peer.name](PlainChip.of(own), layer, None, Notes(), free=free)
    write_texts({folder / name: yaml_text(table) for name, table in files.items()})
    count = lines_of(folder, tuple(files)) + SCRIPT_LINES[peer.name]
    return peer.run("widest" if free and peer.name == "ZigZag" else "search", folder), count


def models(
    design: Callable[[], Design],
    found: dict[str, Figures | None],
    peers: list[Environment],
    folder: Path,
    foreign: bool,
) -> Iterator[tuple[str, Figures | None, str]]:
    """A design's figures by model, and the reason or loss for each; `foreign`: also in models of other tools."""
    try:
        own = design()
        parts = plain(own)
    except SparseMapError as problem:
        for name in ("SparseMap", *(peer.name for peer in peers)):
            yield (name, found[name], "") if name in found else (name, None, str(problem))
        return
    try:
        yield "SparseMap", ours(dense(own)), ""
    except SparseMapError as problem:
        yield "SparseMap", None, str(problem)
    for peer in peers:
        if peer.name in found:
            yield peer.name, found[peer.name], ""
            continue
        if not foreign:
            continue
        place = folder / f"in-{peer.name}"
        place.mkdir(parents=True, exist_ok=True)
        replay = in_peer(peer, *parts, place)
        yield peer.name, replay.figures, replay.error or "; ".join(replay.losses)


def cell(
    problem: str, chip: str, settings: dict[str, list[str]], peers: list[Environment], root: Path, registry: Registry
) -> Iterator[Row]:
    """Rows of a problem on a chip: processor time, lines, and EDP by model, for every tool and setting."""
    by_name = {peer.name: peer for peer in peers}
    for tool, own in settings.items():
        for setting in own:
            folder = root / chip / problem / f"{tool}-{setting}"
            folder.mkdir(parents=True, exist_ok=True)
            row = {
                "problem": problem,
                "kind": PROBLEMS[problem]["kind"],
                "chip": chip,
                "tool": tool,
                "setting": setting,
            }
            if tool == "SparseMap":
                done, count = own_search(problem, chip, setting, folder)
                read: Callable[[], Design] = lambda at=folder: design_file.load(at / "best", registry)  # noqa: E731
            else:
                done, count = peer_search(by_name[tool], problem, chip, setting, folder)
                read = lambda at=folder, name=tool: from_peer(name, at, registry)[0]  # noqa: E731
            row |= {"seconds": round(done.seconds, 2), "lines": count, "error": done.error}
            if not done.error:
                found = {tool: done.figures} if done.figures else {}
                for name, figures, remark in models(read, found, peers, folder, setting != "short"):
                    row[f"edp {name}"] = figures and figures.edp
                    row[f"remark {name}"] = remark
            yield row
