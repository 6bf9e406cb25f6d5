"""One design counted by every tool: designs of SparseMap and Timeloop in peers' models, and the reverse."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
from explain import facts_of, reason_for
from harness import Environment, Figures
from sparsemap_plugins.exchange import accelforge, zigzag
from sparsemap_plugins.exchange.dense import dense
from sparsemap_plugins.exchange.from_accelforge import import_files as of_accelforge
from sparsemap_plugins.exchange.from_zigzag import import_files as of_zigzag
from sparsemap_plugins.exchange.nest import Layer, Nest, PlainChip, PlainMemory

from sparsemap.errors import SparseMapError
from sparsemap.pieces.registry import Registry
from sparsemap.problem import design_file
from sparsemap.problem.designs import Design
from sparsemap.spec.notes import Notes
from sparsemap.spec.yaml_tables import YamlSource
from sparsemap.spec.yaml_text import yaml_text
from sparsemap.writing import write_texts

WRITERS = {"accelforge": accelforge.tables, "ZigZag": zigzag.tables}
CASES = Path(__file__).resolve().parents[2] / "tests" / "conformance"
FILES = {"accelforge": ("arch.yaml", "workload.yaml", "mapping.yaml"),
         "ZigZag": ("accelerator.yaml", "workload.yaml", "mapping.yaml")}  # fmt: skip


def reference_case(case: Mapping[str, Any]) -> tuple[PlainChip, Layer, Nest]:
    """A dense case of `tests/conformance` in the plain form of the exchange."""
    hw, mapping, tensors = case["hw"], case["mapping"], case["workload"]["tensors"]
    names, memories = list(hw["levels"]), []
    for i, (name, level) in enumerate(hw["levels"].items()):
        inner = hw["levels"][names[i + 1]] if i + 1 < len(names) else hw["mac"]
        words = level["capacity_words"]
        memories.append(PlainMemory(
            name=name, capacity_bits=words and words * hw["word_bits"], fanout=inner["instances"] // level["instances"],
            read_pj=level["energy"]["read"], write_pj=level["energy"]["write"], read_bandwidth=level["read_bw"],
            write_bandwidth=level["write_bw"],
        ))  # fmt: skip
    small = {dim: dim.lower() for dim in case["workload"]["dims"]}
    ranks = {
        name: tuple(tuple((small[d], c) for d, c in rank) for rank in one["proj"]) for name, one in tensors.items()
    }
    sizes = {small[dim]: size for dim, size in case["workload"]["dims"].items()}
    temporal, spatial, places = list[tuple[str, int]](), [], dict[tuple[int, str], int]()
    for i, name in enumerate(names):
        stored = [one for one in tensors if one not in mapping.get("bypass", {}).get(name, [])]
        places |= {(i, one): len(temporal) for one in stored}
        temporal += [(small[d], n) for d, n in mapping[f"L{i + 1}_T"] if n > 1]
        spatial.append(tuple((small[d], n) for d, n in mapping.get(f"L{i + 1}_S", []) if n > 1))
    chip = PlainChip(memories=tuple(memories), word_bits=hw["word_bits"], mac_pj=hw["mac"]["energy"]["compute"])
    return chip, Layer(case["id"].lower(), sizes, ranks), Nest(tuple(temporal), tuple(spatial), places)


def timeloop_figures(case: Mapping[str, Any]) -> Figures:
    """Timeloop's committed figures of a case: words of the whole chip."""
    counts = {}
    for name, level in case["ref"]["levels"].items():
        for tensor, one in level["tensors"].items():
            used = one["instances_avg"]
            counts[f"{name}/{tensor}/read"] = one["read"][0] * used
            counts[f"{name}/{tensor}/write"] = (one["fill"][0] + one["update"][0]) * used
    return Figures(case["ref"]["energy"], case["ref"]["cycles"], counts)


def ours(design: Design) -> Figures:
    """SparseMap's figures of a dense design without charges; split levels of a memory are added."""
    problem = design.problem
    found = problem.cost_model.evaluate(design.batch, problem, detail=True)
    if not found.valid[0]:
        raise SparseMapError(f"not valid: {', '.join(found.reasons_of(0))}")
    detail: Any = found.detail
    counts: dict[str, float] = {}
    for s, level in enumerate(problem.levels):
        for t, tensor in enumerate(problem.tensors):
            used, key = float(detail.instances_active[t, s, 0]), f"{level.name.partition('/')[0]}/{tensor.name}"
            words = {"read": detail.dense_reads, "write": detail.dense_fills + detail.dense_updates}
            for action, rows in words.items():
                counts[f"{key}/{action}"] = counts.get(f"{key}/{action}", 0.0) + float(rows[t, s, 0]) * used
    return Figures(float(found.energy_pj[0]), float(found.cycles[0]), counts)


@attrs.frozen
class Replay:
    """Figures of a design in a peer's model, or the reason against them, and the losses on the way."""

    figures: Figures | None
    losses: tuple[str, ...] = ()
    error: str = ""


def in_peer(peer: Environment, chip: PlainChip, layer: Layer, nest: Nest, folder: Path) -> Replay:
    """A design in a peer's model."""
    notes = Notes()
    try:
        files = WRITERS[peer.name](chip, layer, nest, notes)
    except SparseMapError as problem:
        return Replay(None, error=str(problem))
    write_texts({folder / name: yaml_text(table) for name, table in files.items()})
    # loops.yaml fixes the places that ZigZag's mapping file leaves open
    losses = tuple(note.text for note in notes.rows if note.cause != "loops placed by ZigZag")
    done = peer.run("replay", folder)
    first, second, output = layer.ranks
    names = {"I": first, "W": second, "O": output}
    return Replay(done.figures and peer.in_words(done.figures, chip.word_bits, names), losses, done.error)


def plain(design: Design) -> tuple[PlainChip, Layer, Nest]:
    own = dense(design)
    return PlainChip.of(own.problem), Layer.of(own.problem), Nest.of(own)


def from_peer(name: str, folder: Path, registry: Registry) -> tuple[Design, list[str]]:
    """The design in a peer's files; `SparseMapError` with the reasons if there is none."""
    notes, files = Notes(), [folder / file for file in FILES[name]]
    accelforge_files = name == "accelforge"
    tables = of_accelforge(files, "", "", notes) if accelforge_files else of_zigzag(files, "", "", False, notes)
    if "design" not in tables:
        raise SparseMapError("; ".join(note.text for note in notes.rows if note.stops) or "no mapping")
    return design_file.structure(tables["design"], registry, "design"), [note.text for note in notes.rows]


def of_nest(chip: PlainChip, layer: Layer, nest: Nest, registry: Registry) -> Design:
    tables = nest.tables(chip, layer, Notes(), YamlSource())
    return design_file.structure(tables["design"], registry, "design")


def cases(root: Path, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """Committed cases by id."""
    found = []
    for name in names:
        text = (root / f"cases-{name[0]}.jsonl").read_text("utf-8")
        found.append(next(case for line in text.splitlines() if (case := json.loads(line))["id"] == name))
    return found


# ----------------------------------------------------------------------------------------------------- counts by every tool

COMMITTED = ("A-0000", "B-0002")
"""A matrix product and a convolution with Timeloop's figures."""
SEARCHED = ("square-256", "square-512", "conv-1x1")
"""Problems with designs of peers to replay; the first is also searched by SparseMap."""


def count_rows(peers: list[Environment], searches: Path, root: Path, registry: Registry) -> Iterator[dict[str, Any]]:
    """Figures of nine designs in every model, with a reason for each count other than SparseMap's."""
    for case in cases(CASES, COMMITTED):
        design = of_nest(*reference_case(case), registry)
        yield from _counted(case["id"], "SparseMap", design, {"Timeloop": timeloop_figures(case)}, peers, root, ())
    folder = searches / "wide"
    best = folder / SEARCHED[0] / "SparseMap-widest" / "best"
    if best.exists():  # unless other problems were asked for
        yield from _counted(SEARCHED[0], "SparseMap", design_file.load(best, registry), {}, peers, root, ())
    for peer in peers:
        for problem in SEARCHED:
            place = folder / problem / f"{peer.name}-default"
            try:
                design, remarks = from_peer(peer.name, place, registry)
            except SparseMapError as error:
                yield {"problem": problem, "tool": peer.name, "origin": peer.name, "error": str(error)}
                continue
            done = peer.run("replay", place)
            if done.figures is None:
                yield {"problem": problem, "tool": peer.name, "origin": peer.name, "error": done.error}
                continue
            bits = design.problem.hardware.word_bits
            names = {name: name for name in ("W", "I", "O")}  # as imported
            given = peer.in_words(done.figures, bits, names)
            yield from _counted(problem, peer.name, design, {peer.name: given}, peers, root, tuple(remarks))


def _counted(
    problem: str, origin: str, design: Design, given: Mapping[str, Figures], peers: list[Environment], root: Path,
    remarks: tuple[str, ...],
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Rows of a design: energy, cycles, and words by memory, tensor and action."""
    own = dense(design)
    found, facts, base = dict(given), facts_of(own), ours(own)
    losses = dict.fromkeys(found, remarks)
    for peer in peers:
        if peer.name not in found:
            folder = root / "counts" / f"{origin}-{problem}" / peer.name
            folder.mkdir(parents=True, exist_ok=True)
            replay = in_peer(peer, *plain(own), folder)
            losses[peer.name] = replay.losses
            if replay.figures is None:
                yield {"problem": problem, "origin": origin, "tool": peer.name, "error": replay.error}
            else:
                found[peer.name] = replay.figures
    for tool, figures in {"SparseMap": base, **found}.items():
        row = {"problem": problem, "origin": origin, "tool": tool}
        for quantity in ("energy_pj", "cycles"):
            yield row | {"quantity": quantity, "value": getattr(figures, quantity)}
        for key, words in base.counts.items():
            value = figures.counts.get(key, 0.0)
            reason = "" if tool == "SparseMap" else reason_for(tool, key, words, value, facts, losses.get(tool, ()))
            yield row | {"quantity": key, "value": value, "reason": reason}
