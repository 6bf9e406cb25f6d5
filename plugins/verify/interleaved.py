"""Execution of layers in sequence or in turns, with the tensors between layers in buffers only.

Each layer runs a turn of its outermost loop at a time, on words in the buffer. Reading a word absent from the buffer is
an error. The producer runs when the consumer's next turn lacks words; words unread by later turns are dropped. All
tiles of a layer stay in place meanwhile, so a layer's counts follow from its own nest, walked over the real tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import attrs
import numpy as np

from sparsemap.errors import DesignError, SparseMapError
from sparsemap.files import four_digits, percent
from sparsemap.pieces.contracts.base import Array
from sparsemap.problem.designs import Designs
from sparsemap.problem.problem import Problem

from .charges import ChargedTrial, charges_of
from .expected import evaluate
from .nest import ExecutedNest, flat
from .products import reference_output
from .run import refuse_large
from .simulate import Simulation


@attrs.frozen
class ChainVerification:
    """Claimed and executed cost of a chain of layers, and the contents of the buffers between the layers."""

    trials: int
    correct: bool
    """Whether the last output equals the output of the layers in plain order."""
    claimed: tuple[float, float]
    """pJ and cycles, summed over the layers."""
    executed: tuple[float, float]
    """pJ and cycles, summed over the layers, mean of the trials."""
    most_words: tuple[int, ...]
    """Most words in the buffer at a time, for each tensor between two layers."""
    room: tuple[int, ...]
    """Words reserved by the layers, for each tensor between two layers."""
    gets: tuple[tuple[str, float, float], ...]
    """Name of each layer after the first, and the share of nonzeros in its input: by its density, and after sparse
    products with zeros of their own."""

    @property
    def ratio(self) -> float:
        """Executed EDP over claimed EDP."""
        return self.executed[0] * self.executed[1] / (self.claimed[0] * self.claimed[1])

    def table(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {**attrs.asdict(self), "ratio": self.ratio}

    def text(self) -> str:
        lines = [f"{len(self.room) + 1} layers in turns, {self.trials} trials"]
        for name, claim, found in zip(("energy pJ", "cycles"), self.claimed, self.executed, strict=True):
            told = four_digits(claim), four_digits(found)
            lines.append(f"{name:10} claimed {told[0]}, executed {told[1]} ({found / claim:.3f}x)")
        lines.append(f"EDP        executed over claimed {self.ratio:.3f}x")
        for most, room in zip(self.most_words, self.room, strict=True):
            lines.append(f"between    {most:,} words at most, {room:,} kept")
        lines += [
            f"nonzeros   '{name}' counts on {percent(claim)} nonzeros, gets {percent(share)}: products have zeros of their own"
            for name, claim, share in self.gets
            if share < 0.99 * claim
        ]
        right = "right, and no word between the layers was in another level"
        return "\n".join([*lines, f"output     {right if self.correct else 'WRONG'}"])


@attrs.frozen(slots=False)
class Turns:
    """A layer in turns; its operand `taken` is the output of the layer before (-1: the first layer)."""

    sim: Simulation
    taken: int

    @property
    def nest(self) -> ExecutedNest:
        return self.sim.nest

    @cached_property
    def count(self) -> int:
        """Turns of the outermost loop if a tensor slides by along it, else 1."""
        loops, problem = self.nest.loops, self.sim.problem
        slides = problem.slides
        return loops[0].bound if loops and any(dim == loops[0].axis for dim in slides.values()) else 1

    def points(self, turn: int) -> Array:
        """(N, D) computes of a turn."""
        sizes = list(self.nest.sizes)
        first = [0] * len(sizes)
        if self.count > 1:
            axis = self.nest.loops[0].axis
            sizes[axis] //= self.count
            first[axis] = turn * sizes[axis]
        return np.indices(sizes).reshape(len(sizes), -1).T + first

    def words(self, tensor: int, points: Array) -> Array:
        return flat(points @ self.nest.access[tensor].T, self.nest.shape(tensor))

    def inside(self, shape: Sequence[int]) -> Array:
        """(words of the preceding output,) position of each word in this layer's operand, with padding around; -1:
        outside."""
        box = self.nest.shape(self.taken)
        if len(box) != len(shape):
            tensor = self.sim.problem.tensors[self.taken].name
            raise DesignError(f"{self._name} takes {tensor} of {len(box)} ranks, and is given {len(shape)}")
        begin = [max(0, width - size) // 2 for width, size in zip(box, shape, strict=True)]
        index = np.indices(shape).reshape(len(shape), -1) + np.array(begin)[:, None]
        there = (index < np.array(box)[:, None]).all(axis=0)
        return np.where(there, flat(np.minimum(index, np.array(box)[:, None] - 1).T, box), -1)

    def real(self, tensor: int) -> Array:
        """(words,) bool: words inside the original sizes, without padding of the sizes."""
        problem = self.sim.problem
        sizes = [problem.loops.sizes[dim] for dim in problem.dims]
        shape = self.nest.shape(tensor)
        places, real = np.indices(shape).reshape(len(shape), -1), self.nest.widths(tensor, np.array(sizes))
        there: Array = np.all(np.array(real)[:, None] > places, axis=0)
        return there

    @property
    def _name(self) -> str:
        return f"'{self.sim.problem.workload.name}'"


class Buffer:
    """A tensor between two layers, with NaN for absent words."""

    def __init__(self, maker: Turns, taker: Turns) -> None:
        self.place = taker.inside(maker.nest.shape(maker.nest.output))
        """(words of the producer's output,) position in the consumer's operand; -1: none."""
        box = int(np.prod(taker.nest.shape(taker.taken)))
        self.padding = np.ones(box, dtype=bool)
        self.padding[self.place[self.place >= 0]] = False
        self.words = np.where(self.padding, 0.0, np.nan)
        self.counts = np.zeros(box, dtype=bool)
        self.counts[self.place[(self.place >= 0) & maker.real(maker.nest.output)]] = True
        self.counts &= taker.real(taker.taken)
        self.last = np.full(box, -1)
        for turn in range(taker.count):
            self.last[taker.words(taker.taken, taker.points(turn))] = turn
        self.done, self.most = -1, 0

    def put(self, words: Array, values: Array) -> None:
        """Store words (n,) of the producer's output, after its activation."""
        place = self.place[words]
        self.words[place[place >= 0]] = values[place >= 0]
        live = ~np.isnan(self.words) & self.counts & (self.last > self.done)
        self.most = max(self.most, int(live.sum()))

    def used(self, turn: int) -> None:
        """End the consumer's turn and drop the words unread by later turns."""
        self.done = turn
        self.words[(self.last <= turn) & ~self.padding] = np.nan

    def lacks(self, words: Array) -> bool:
        return bool(np.isnan(self.words[words]).any())


def verify_chain(
    layers: Sequence[tuple[Problem, Designs]],
    trials: int = 5,
    seed: int = 0,
    force: bool = False,
    progress: Callable[[int], None] | None = None,
) -> ChainVerification:
    """Execute designs of a chain of layers, in turns where tensors slide by.

    Weights and the first input are random. An output keeps the nonzeros of the next layer's density, as after an
    activation. `DesignError` if a layer cannot take the output of the layer before."""
    if len(layers) < 2:
        raise SparseMapError(f"expected two layers or more, found {len(layers)}")
    for problem, _ in layers:
        refuse_large(int(np.prod([int(size) for size in problem.sizes.values()], dtype=object)), trials, force)
    sims = [Simulation(*layer) for layer in layers]
    chain = [Turns(sim, -1 if not i else _taken(sims[i - 1], sim)) for i, sim in enumerate(sims)]
    claims = [evaluate(sim.problem, sim.designs) for sim in sims]
    claimed = sum(float(c.energy_pj[0]) for c in claims), sum(float(c.cycles[0]) for c in claims)
    executed, correct, most = np.zeros(2), True, np.zeros(len(layers) - 1, dtype=int)
    shares = np.zeros((len(layers) - 1, 2))
    for number, sequence in enumerate(np.random.SeedSequence(seed).spawn(trials)):
        rng = np.random.default_rng(sequence)
        values, output, each = _drawn(chain, rng)
        shares += np.array(each) / trials
        found, buffers = _in_turns(chain, values)
        correct = correct and bool(np.array_equal(found, output))
        most = np.maximum(most, [buffer.most for buffer in buffers])
        for layer, given in zip(chain, values, strict=True):
            trial = layer.sim.trial(rng, charged=True, given=given)
            correct = correct and trial.energy.tally.correct
            paid = ChargedTrial(layer.sim, trial).pay(charges_of(layer.sim.problem)).values
            executed += [paid["energy_pj", None, None], paid["cycles", None, None]]
        if progress is not None:
            progress(number + 1)
    room = tuple(_kept(layer) for layer in chain[1:])
    energy, cycles = (executed / trials).tolist()
    names = [sim.problem.workload.name for sim in sims[1:]]
    gets = tuple((name, claim, share) for name, (claim, share) in zip(names, shares.tolist(), strict=True))
    return ChainVerification(trials, correct, claimed, (energy, cycles), tuple(most.tolist()), room, gets)


def _taken(maker: Simulation, taker: Simulation) -> int:
    """The on-chip operand of a layer that takes the output of the layer before."""
    shape = maker.nest.shape(maker.nest.output)
    for t in taker.nest.operands:
        if taker.problem.homes[t] and len(taker.nest.shape(t)) == len(shape):
            return t
    names = f"'{taker.problem.workload.name}' after '{maker.problem.workload.name}'"
    raise DesignError(f"{names}: no operand of {len(shape)} ranks resides on chip")


def _kept(layer: Turns) -> int:
    """Words reserved by a layer for its on-chip operand."""
    problem = layer.sim.problem
    return problem.resident[layer.taken, problem.homes[layer.taken]]


def _drawn(
    chain: Sequence[Turns], rng: np.random.Generator
) -> tuple[list[dict[int, Array]], Array, list[tuple[float, float]]]:
    """Operands by layer, flat; the last output; and nonzero shares of each later layer's input.

    A pair of shares is by density and as produced. Layers run in plain order."""
    found, output, shape, shares = [], np.zeros(0), tuple[int, ...](), []
    for layer in chain:
        nest, given = layer.nest, dict[int, Array]()
        for t in nest.operands:
            mask = np.asarray(nest.occupancies[t].draw(rng), dtype=bool).reshape(-1)
            words = rng.integers(1, 10, mask.shape).astype(np.float64)
            if t == layer.taken:
                words, place = np.zeros(mask.shape), layer.inside(shape)
                words[place[place >= 0]] = output[place >= 0]
                made = place[place >= 0]
                shares.append((float(mask[made].mean()), float((mask & (words != 0.0))[made].mean())))
            given[t] = np.where(mask, words, 0.0)
        found.append(given)
        output = reference_output(nest, [given.get(t, np.zeros(0)) for t in range(len(nest.access))])
        shape = nest.shape(nest.output)
    return found, output, shares


def _in_turns(chain: Sequence[Turns], values: Sequence[dict[int, Array]]) -> tuple[Array, list[Buffer]]:
    """The last output of the layers in turns, and the buffers between the layers."""
    buffers = [Buffer(maker, taker) for maker, taker in pairwise(chain)]
    turns = [0] * len(chain)
    output = np.zeros(int(np.prod(chain[-1].nest.shape(chain[-1].nest.output))))

    def run(at: int) -> None:
        layer, turn = chain[at], turns[at]
        points = layer.points(turn)
        given = dict(values[at])
        if at:
            words = layer.words(layer.taken, points)
            while buffers[at - 1].lacks(words):
                run(at - 1)
            given[layer.taken] = buffers[at - 1].words
        made = layer.words(layer.nest.output, points)
        product = np.prod([given[t][layer.words(t, points)] for t in layer.nest.operands], axis=0)
        some, index = np.unique(made, return_inverse=True)
        sums = np.bincount(index, product, len(some))
        turns[at] += 1
        if at:
            buffers[at - 1].used(turn)
        if at + 1 == len(chain):
            output[some] += sums
            return
        place, after = buffers[at].place[some], values[at + 1][chain[at + 1].taken]
        kept = np.where(place >= 0, after[place] != 0, False)  # what the activation leaves
        buffers[at].put(some, np.where(kept, sums, 0.0))

    while turns[-1] < chain[-1].count:
        run(len(chain) - 1)
    return output, buffers
