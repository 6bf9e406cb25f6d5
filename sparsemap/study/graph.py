"""The graph of a network for its plan: tensors handed over between layers, and the traffic of operations in between."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import attrs

from ..errors import SpecError
from ..pieces.contracts import Operation, Workload
from ..pieces.data_specs import Converter, VectorUnit
from ..pieces.registry import Registry
from ..problem.chip import Chip
from ..problem.network import INPUT, Node


@attrs.frozen
class GraphNode:
    """A layer or an operation; each repetition is a node."""

    name: str
    node: Node
    inputs: tuple[str, ...]
    """Names of graph nodes, or "input"."""
    operands: tuple[str, ...]
    """Tensor name of each input of a layer; empty for operations, and if unknown."""
    words: int
    """Words of the output, without padding and holes; 0 for a network without shapes."""
    live: int
    """Output words in need of room at once."""


def graph_of(nodes: Sequence[Node], batch: int = 1) -> tuple[GraphNode, ...]:
    """The nodes of a network in order."""
    found: list[GraphNode] = []
    last: dict[str, str] = {}
    words: dict[str, int] = {}
    for node in nodes:
        inputs = tuple(last.get(name, name) for name in node.inputs)
        for turn in range(node.repeat):
            name = f"{node.name}#{turn + 1}" if node.repeat > 1 else node.name
            given = [words.get(one, batch * math.prod(s)) for one, s in zip(inputs, node.given, strict=False)]
            words[name], live = _words(node, batch, given)
            found.append(GraphNode(name, node, inputs, _operands(node), words[name], live))
            inputs = (name,)
        last[node.name] = found[-1].name
    return tuple(found)


def handed_on(nodes: Sequence[Node], registry: Registry) -> tuple[Node, ...]:
    """Nodes whose outputs have the density consuming layers read, after the activation; the largest of several."""
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


def _words(node: Node, batch: int, given: Sequence[int]) -> tuple[int, int]:
    """Words and live words of the output; a node without moves hands on its inputs (`given` words), copies left out."""
    if not node.shape:
        return 0, 0
    if node.loops is not None:
        words = math.prod(next(t.shape(node.loops.sizes) for t in node.loops.tensors if t.output))
        return words, words
    assert isinstance(node.piece, Operation)
    words = batch * math.prod(node.shape)
    live = node.piece.live(words)
    if not node.piece.moves:
        whole = batch * sum(map(math.prod, node.given))
        words = live = max(0, live - whole) + min(live, sum(given))
    return words, live


def consumers(graph: Sequence[GraphNode]) -> dict[str, list[GraphNode]]:
    """Consumers of each node's output."""
    found: dict[str, list[GraphNode]] = {one.name: [] for one in graph}
    for one in graph:
        for name in dict.fromkeys(one.inputs):
            if name != INPUT:
                found[name].append(one)
    return found


def stuck(one: GraphNode, takers: Sequence[GraphNode], level: str, capacity: float) -> str:
    """Reason against the output of a node living in a level on chip with `capacity` words; empty if possible."""
    if not takers:
        return "the network's output"
    if not one.words:
        return "the network does not say its shape"
    for taker in takers:
        if taker.node.loops is not None and not taker.operands:
            return f"no rank map: nobody knows which tensor of {taker.name} it is"
    if one.live > capacity:
        return f"{one.live:,} words, {level} holds {math.floor(capacity):,}"
    return ""


Words = tuple[float, int, Chip]
"""Number of words, their level, and a chip with the words' width."""


def passed(operation: Operation, words: Sequence[Words], output: Words) -> tuple[float, float]:
    """pJ and cycles of an operation, from reading its inputs and writing its output at their levels.

    A pure concatenation moves only words of another level or width; words of no input live in the outermost level."""
    return _sum(by_level(operation, words, output))


def by_level(operation: Operation, words: Sequence[Words], output: Words) -> dict[int, tuple[float, float]]:
    """Cost of an operation by level: pJ, and busy cycles."""
    return _moved(moves_of(operation, words, output))


def bytes_by_level(operation: Operation, words: Sequence[Words], output: Words) -> dict[int, float]:
    """Bytes read and written by an operation, by level."""
    found = dict[int, float]()
    for count, level, chip, _ in moves_of(operation, words, output):
        found[level] = found.get(level, 0.0) + count * float(chip.word_bits[level]) / 8.0
    return found


def moves_of(operation: Operation, words: Sequence[Words], output: Words) -> list[tuple[float, int, Chip, str]]:
    """Reads and writes of an operation: words, level, chip of their width, and action."""
    size, home, chip = output
    if not operation.moves:
        kept = max(0, size - sum(count for count, _, _ in words)), 0, chip
        there = [(min(count, size), level, of) for count, level, of in (*words, kept)]
        words = [one for one in there if one[1] != home or unlike(one, chip)]
    written = size if operation.moves else sum(count for count, _, _ in words)
    return [*((*one, "read") for one in words), (written, home, chip, "write")]


def unlike(words: Words, chip: Chip) -> bool:
    """Whether words have another width at their level than words of a chip."""
    count, level, own = words
    return bool(count) and bool(own.word_bits[level] != chip.word_bits[level])


def widest_of(chips: Iterable[Chip], default: Chip) -> Chip:
    """The chip with the widest words."""
    return max(chips, key=lambda chip: float(chip.word_bits[0]), default=default)


@attrs.frozen
class WordChips:
    """A network's chip in words of each tensor between nodes."""

    made: Mapping[str, Chip]
    """By node and for the input, in words written."""
    taken: Mapping[tuple[str, str], Chip]
    """By layer and input, in words read by the layer."""

    def unfit(self, layer: str, given: Mapping[str, Words]) -> list[tuple[Words, Chip]]:
        """Inputs of a layer (by name) with words of another width, each with the chip in words of the layer."""
        pairs = [(words, self.taken[layer, name]) for name, words in given.items() if (layer, name) in self.taken]
        return [(words, chip) for words, chip in pairs if unlike(words, chip)]


def rewritten(words: Sequence[tuple[Words, Chip]]) -> tuple[float, float]:
    """pJ and cycles of rewriting words at their level, each in words of another chip."""
    reads = [(*one, "read") for one, _ in words]
    return _sum(_moved([*reads, *((count, level, chip, "write") for (count, level, _), chip in words)]))


def loaded(words: Sequence[tuple[float, Chip]], level: int) -> tuple[float, float]:
    """pJ and cycles of moving words, each with a chip of their width, from the outermost level to a level."""
    reads = [(count, 0, chip, "read") for count, chip in words]
    return _sum(_moved([*reads, *((count, level, chip, "write") for count, chip in words)]))


def converted(
    converter: Converter, read: float, written: float, words: float, level: int, chip: Chip
) -> tuple[float, float]:
    """pJ and cycles of converting a tensor of `words` words at its level: `read` and `written` are words plus metadata."""
    energy, cycles = _sum(_moved([(read, level, chip, "read"), (written, level, chip, "write")]))
    return energy + converter.pj * words, max(cycles, math.ceil(words / converter.words_per_cycle))


def vector_cost(unit: VectorUnit | None, one: GraphNode) -> tuple[float, float]:
    """pJ and busy cycles of the vector unit for an operation, or for the activation of a layer; 0 without a unit."""
    piece = one.node.activation or one.node.piece
    if unit is None or not isinstance(piece, Operation):
        return 0.0, 0.0
    steps = piece.vector_steps(one.node.shape)
    pj = math.fsum(count * unit.pj.get(kind, 0.0) for kind, count in steps.items())
    cycles = math.fsum(count * unit.cycles.get(kind, 1.0) for kind, count in steps.items())
    return one.words * pj, math.ceil(one.words * cycles / unit.lanes * (1.0 - 1e-12))


def _moved(moves: Sequence[tuple[float, int, Chip, str]]) -> dict[int, tuple[float, float]]:
    """pJ and busy cycles by level of words read or written."""
    energy, busy = dict[int, float](), dict[tuple[int, str], float]()
    for count, level, chip, action in moves:
        energy[level] = energy.get(level, 0.0) + count * float(chip.energy_pj[action][level])
        limits = {action: getattr(chip, f"{action}_bandwidth"), "both": chip.bandwidth}
        for port, limit in limits.items():
            busy[level, port] = busy.get((level, port), 0.0) + count / float(limit[level])
    return {level: (pj, max(n for (s, _), n in busy.items() if s == level)) for level, pj in energy.items()}


def _sum(spent: Mapping[int, tuple[float, float]]) -> tuple[float, float]:
    """pJ of all levels, and the cycles of the slowest level."""
    cycles = max((cycles for _, cycles in spent.values()), default=0.0)
    return sum(pj for pj, _ in spent.values()), math.ceil(cycles * (1.0 - 1e-12))
