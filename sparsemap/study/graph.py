"""The graph of a network as its plan needs it: which tensors layers hand over, and what operations between them move."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress

import attrs

from ..errors import SpecError
from ..pieces.contracts import Operation, Workload
from ..pieces.data_specs import Converter
from ..pieces.registry import Registry
from ..problem.chip import Chip
from ..problem.network import INPUT, Node


@attrs.frozen
class GraphNode:
    """A layer or an operation; of one that is repeated, each time is a node."""

    name: str
    node: Node
    inputs: tuple[str, ...]
    """Names of graph nodes, or "input"."""
    operands: tuple[str, ...]
    """Of a layer, the tensor that each input is; empty for operations, and where nobody knows."""
    words: int
    """Of its output: no padding and no holes; 0 where the network has no shapes."""


def graph_of(nodes: Sequence[Node], batch: int = 1) -> tuple[GraphNode, ...]:
    """The nodes of a network in its order."""
    found: list[GraphNode] = []
    last: dict[str, str] = {}
    for node in nodes:
        inputs = tuple(last.get(name, name) for name in node.inputs)
        for turn in range(node.repeat):
            name = f"{node.name}#{turn + 1}" if node.repeat > 1 else node.name
            found.append(GraphNode(name, node, inputs, _operands(node), _words(node, batch)))
            inputs = (name,)
        last[node.name] = found[-1].name
    return tuple(found)


def handed_on(nodes: Sequence[Node], registry: Registry) -> tuple[Node, ...]:
    """The nodes of a network with the density of every output that of what layers read of it: after the activation. Of
    several, the largest; of what only operations take, its own."""
    found = []
    for node in nodes:
        takers = [other for other in nodes if node.name in other.inputs or (other is node and node.repeat > 1)]
        read = [
            (tensor.density.occupancy(tensor.shape(other.loops.sizes)).density, tensor)
            for other in takers
            if other.loops is not None
            for name, given in zip(_operands(other), other.inputs, strict=False)
            for tensor in other.loops.tensors
            if tensor.name == name and (given == node.name or other is node)
        ]
        found.append(node)
        if node.loops is not None and read and isinstance(node.piece, Workload):
            _, densest = max(read, key=lambda one: one[0])
            output = next(t for t in node.loops.tensors if t.output)
            if densest.density != output.density and len(densest.ranks) == len(output.ranks):
                with suppress(SpecError):  # a workload whose densities are fixed
                    piece = node.piece.with_densities({output.name: densest.density})
                    found[-1] = attrs.evolve(node, piece=piece, loops=piece.loops(registry))
    return tuple(found)


def _operands(node: Node) -> tuple[str, ...]:
    if node.loops is None or not node.shape:
        return ()
    weights = getattr(node.piece, "weights", "")
    names = tuple(t.name for t in node.loops.tensors if not t.output and t.name != weights)
    return names if len(names) == len(node.inputs) else ()


def _words(node: Node, batch: int) -> int:
    if not node.shape:
        return 0
    if node.loops is None:
        return batch * math.prod(node.shape)
    return math.prod(next(t.shape(node.loops.sizes) for t in node.loops.tensors if t.output))


def consumers(graph: Sequence[GraphNode]) -> dict[str, list[GraphNode]]:
    """By node, those that take its output."""
    found: dict[str, list[GraphNode]] = {one.name: [] for one in graph}
    for one in graph:
        for name in dict.fromkeys(one.inputs):
            if name != INPUT:
                found[name].append(one)
    return found


def stuck(one: GraphNode, takers: Sequence[GraphNode], level: str, capacity: float) -> str:
    """Why the output of a node can not live in a level on chip; empty: it can."""
    if not takers:
        return "the network's output"
    if not one.words:
        return "the network does not say its shape"
    for taker in takers:
        if taker.node.loops is not None and not taker.operands:
            return f"no rank map: nobody knows which tensor of {taker.name} it is"
    if one.words > capacity:
        return f"{one.words:,} words, {level} holds {math.floor(capacity):,}"
    return ""


def passed(
    operation: Operation, words: Sequence[tuple[int, int]], output: tuple[int, int], chip: Chip
) -> tuple[float, float]:
    """pJ and cycles of an operation that reads its inputs and writes its output where they live: (words, level) each.

    An operation that only puts words behind each other moves those alone that do not live where its output does: words
    that no input has, such as the keys that a decoder keeps, live in the outermost level.
    """
    return _sum(by_level(operation, words, output, chip))


def by_level(
    operation: Operation, words: Sequence[tuple[int, int]], output: tuple[int, int], chip: Chip
) -> dict[int, tuple[float, float]]:
    """The same by level: pJ, and the cycles for which it is busy."""
    size, home = output
    if not operation.moves:
        kept = max(0, size - sum(count for count, _ in words))
        words = [(min(count, size), level) for count, level in (*words, (kept, 0)) if level != home]
    read, written = words, size if operation.moves else sum(count for count, _ in words)
    return _moved([(count, level, "read") for count, level in read] + [(written, home, "write")], chip)


def converted(
    converter: Converter, read: float, written: float, words: float, level: int, chip: Chip
) -> tuple[float, float]:
    """pJ and cycles of a pass that rewrites a tensor of so many `words` where it lives: `read` and `written` are words with
    their metadata."""
    energy, cycles = _sum(_moved([(read, level, "read"), (written, level, "write")], chip))
    return energy + converter.pj * words, max(cycles, math.ceil(words / converter.words_per_cycle))


def _moved(moves: Sequence[tuple[float, int, str]], chip: Chip) -> dict[int, tuple[float, float]]:
    """pJ and busy cycles by level of words that are read or written: (words, level, action) each."""
    energy, busy = dict[int, float](), dict[int, list[float]]()
    for count, level, action in moves:
        energy[level] = energy.get(level, 0.0) + count * float(chip.energy_pj[action][level])
        busy.setdefault(level, [0.0, 0.0])[action == "write"] += count
    found = {}
    for level, (out, into) in busy.items():
        limits = chip.read_bandwidth[level], chip.write_bandwidth[level], chip.bandwidth[level]
        cycles = max(n / float(b) for n, b in zip((out, into, out + into), limits, strict=True))
        found[level] = energy[level], cycles
    return found


def _sum(spent: Mapping[int, tuple[float, float]]) -> tuple[float, float]:
    """pJ of all levels, and the cycles of the slowest."""
    cycles = max((cycles for _, cycles in spent.values()), default=0.0)
    return sum(pj for pj, _ in spent.values()), math.ceil(cycles * (1.0 - 1e-12))
