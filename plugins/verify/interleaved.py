"""Layers executed one after the other or in turns, with what is between them in a buffer and nowhere else.

Each layer takes one turn of its outermost loop at a time, on words that the buffer has: a word that is read and not there
is an error. The producer runs when the next turn of the consumer lacks words; words that no later turn reads are given
up. As the tiles of all layers stay where they are meanwhile, the counts of a layer are those of its own nest, walked over
the tensors that really come and go.
"""

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
    """What layers of a chain cost as claimed and as executed, and what was in the buffer between them."""

    trials: int
    correct: bool
    """Whether the last output is the one of the layers in plain order."""
    claimed: tuple[float, float]
    """pJ and cycles, sums over the layers."""
    executed: tuple[float, float]
    """On the mean of the trials."""
    most_words: tuple[int, ...]
    """Of each tensor between two layers, the most words that were there at a time .."""
    room: tuple[int, ...]
    """.. and the words that its layers say."""
    gets: tuple[tuple[str, float, float], ...]
    """Of each layer but the first one its name, and the share of nonzeros in what it takes: as its density says, and as it
    gets from sparse products, which have zeros of their own."""

    @property
    def ratio(self) -> float:
        """EDP as executed over the claim."""
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
    """A layer as it runs turn by turn; its operand `taken` is what the layer before it makes (-1: the first layer)."""

    sim: Simulation
    taken: int

    @property
    def nest(self) -> ExecutedNest:
        return self.sim.nest

    @cached_property
    def count(self) -> int:
        """Turns of the outermost loop, if a tensor slides by along it; or all at once."""
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
        """(words of what the layer before makes,) where each is in this layer's operand, padding around it."""
        box = self.nest.shape(self.taken)
        if len(box) != len(shape):
            tensor = self.sim.problem.tensors[self.taken].name
            raise DesignError(f"{self._name} takes {tensor} of {len(box)} ranks, and is given {len(shape)}")
        begin = [max(0, width - size) // 2 for width, size in zip(box, shape, strict=True)]
        index = np.indices(shape).reshape(len(shape), -1) + np.array(begin)[:, None]
        there = (index < np.array(box)[:, None]).all(axis=0)
        return np.where(there, flat(np.minimum(index, np.array(box)[:, None] - 1).T, box), -1)

    def real(self, tensor: int) -> Array:
        """(words,) bool: those of the sizes that are given, not those that padding of the sizes adds."""
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
    """A tensor between two layers: NaN where a word is not there."""

    def __init__(self, maker: Turns, taker: Turns) -> None:
        self.place = taker.inside(maker.nest.shape(maker.nest.output))
        """(words of the producer's output,) of the consumer's operand; -1: it has no such word."""
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
        """Words (n,) of the producer's output, as they are after its activation."""
        place = self.place[words]
        self.words[place[place >= 0]] = values[place >= 0]
        live = ~np.isnan(self.words) & self.counts & (self.last > self.done)
        self.most = max(self.most, int(live.sum()))

    def used(self, turn: int) -> None:
        """The consumer's turn is over."""
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
    """Executes designs of layers each of which takes what the one before it makes, in turns where tensors slide by.

    Weights and the input are random; an output keeps the nonzeros that the next layer's density says, as after an
    activation. `DesignError` where a layer does not take what the one before makes.
    """
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
    """The operand of a layer that resides on chip, which is what the layer before it makes."""
    shape = maker.nest.shape(maker.nest.output)
    for t in taker.nest.operands:
        if taker.problem.homes[t] and len(taker.nest.shape(t)) == len(shape):
            return t
    names = f"'{taker.problem.workload.name}' after '{maker.problem.workload.name}'"
    raise DesignError(f"{names}: no operand of {len(shape)} ranks resides on chip")


def _kept(layer: Turns) -> int:
    """Words that a layer says of its operand on chip."""
    problem = layer.sim.problem
    return problem.resident[layer.taken, problem.homes[layer.taken]]


def _drawn(
    chain: Sequence[Turns], rng: np.random.Generator
) -> tuple[list[dict[int, Array]], Array, list[tuple[float, float]]]:
    """By layer, its operands, flat; the last output; and per layer that takes one, the share of nonzeros in what is made
    for it, by its density and as it is. Layers in plain order."""
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
    """The last output, of layers that take turns."""
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
