"""Costs of the designs of a network's layers, by the tensors on chip."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import attrs
import numpy as np

from ..errors import SearchError
from ..pieces.contracts.base import Array
from ..problem.designs import Designs
from ..problem.evaluation import Detail
from ..problem.layouts import by_layout
from ..problem.network import INPUT
from .cells import Outcome
from .fused import FusedPlan, Kept
from .join import TablePoint
from .packets import Packet, bare, packets, uncompressed
from .slides import Outermost, outermost, sliced


@attrs.frozen(slots=False)
class LayerTables:
    """Tables of distinct layers, from the outcomes of a plan's cells by folder."""

    fused: FusedPlan
    outcomes: Mapping[str, Outcome]
    _tables: dict[tuple[str, Kept], Sequence[TablePoint]] = attrs.field(factory=dict, init=False)

    @cached_property
    def genomes(self) -> dict[str, list[tuple[int, ...]]]:
        """By content, designs of the searches of a layer, and variants: uncompressed between layers, or for sliding."""
        found = {}
        for content, cells in self.fused.searched.items():
            some = list(self.fused.plan.given.get(cells[()].folder, ()))
            pinned = list[tuple[int, ...]]()
            for kept, cell in cells.items():
                numbers = self.outcomes[cell.folder].numbers if cell.folder in self.outcomes else {}
                mine = some if not set(kept) & set(self.fused.weights[content]) else pinned
                mine += [tuple(row["genome"]) for row in numbers.get("hull") or ()]
            base = self.fused.variant(content)
            for mine in filter(None, (some, pinned) if self.fused.matched else ()):
                mine += uncompressed(base, mine, self.edges[content])
            if some and (walks := self.walks[content]):  # designs without pinned weights are enough
                some += sliced(base, some, walks)
            found[content] = list(dict.fromkeys([*some, *pinned]))
        return found

    @cached_property
    def walks(self) -> dict[str, list[str]]:
        """By content, the dimensions tensors may slide along."""
        fused, found = self.fused, dict[str, list[str]]()
        for content, group in fused.layers.items():
            made = [slide.made for one in group for slide in fused.sliding.get(one.name, ())]
            taken = [slide.taken for one in group for name in one.inputs for slide in fused.sliding.get(name, ())]
            base, loops = fused.variant(content), group[0].node.loops
            assert loops is not None
            found[content] = [d for d in dict.fromkeys([*made, *taken]) if base.sizes[d] == loops.sizes[d]]
        return found

    @cached_property
    def designs(self) -> dict[str, Designs]:
        """By content, the decoded `genomes`."""
        found = {}
        for content, some in self.genomes.items():
            genomes = np.array(some, dtype=np.int64)
            found[content] = self.fused.variant(content).space.decode(genomes) if some else Designs({})
        return found

    @cached_property
    def edges(self) -> dict[str, list[int]]:
        """By content, the tensors of a layer shared with another node."""
        found = {}
        for content, group in self.fused.layers.items():
            base = self.fused.variant(content)
            taken = {t for one in group for t, name in zip(one.operands, one.inputs, strict=False) if name != INPUT}
            found[content] = [t for t, tensor in enumerate(base.tensors) if tensor.output or tensor.name in taken]
        return found

    def points(self, content: str, kept: Kept) -> Sequence[TablePoint]:
        """Points of the designs of a layer with tensors `kept` on chip; `design` of a point is the genome."""
        if (content, kept) not in self._tables:
            self._tables[content, kept] = self._points(content, kept)
        return self._tables[content, kept]

    def stored(self, content: str, point: TablePoint) -> float:
        """Words and metadata of the weights of a layer in a design, in the network's widest words."""
        share = self.fused.share(self.fused.variant(content).in_words_of(self.index_of_weights(content)))
        return share * self.own_words(content, point)

    def own_words(self, content: str, point: TablePoint) -> float:
        """Words and metadata of the weights of a layer in a design, in words of the layer."""
        return self.sizes[content][bare(point)[0].design][self.index_of_weights(content)]

    def data_words(self, content: str, point: TablePoint) -> float:
        """Words of the weights of a layer in a design, without metadata, in words of the layer."""
        _, need = self._own[content]
        return float(need[2, self.index_of_weights(content), self.genomes[content].index(bare(point)[0].design)])

    def index_of_weights(self, content: str) -> int:
        """Index of the tensor of weights of a layer."""
        (name,) = self.fused.trained[content]
        return [tensor.name for tensor in self.fused.variant(content).tensors].index(name)

    @cached_property
    def pinned_words(self) -> dict[str, float]:
        """By content, room of pinned weights: the stored size in the best design with all tensors on chip."""
        found = {}
        for content, weights in self.fused.weights.items():
            if weights and (points := self.points(content, (*self.fused.wanted[content][-1], *weights))):
                best = min(points, key=lambda point: self.fused.value(point.energy_pj, point.cycles))
                found[content] = self.stored(content, best)
        return found

    @cached_property
    def packets(self) -> dict[str, dict[Any, dict[int, Packet]]]:
        """By content and genome, the packets of each shared tensor; empty if formats change at no cost."""
        found: dict[str, dict[Any, dict[int, Packet]]] = {}
        for content, genomes in self.genomes.items() if self.fused.matched else ():
            edges = self.edges[content]
            told = packets(self.fused.variant(content), self.designs[content], edges) if genomes else []
            found[content] = {g: dict(zip(edges, p, strict=True)) for g, p in zip(genomes, told, strict=True)}
        return found

    @cached_property
    def outermost(self) -> dict[str, dict[Any, Outermost]]:
        """By content and genome, the first loop outside the level on chip."""
        found = {}
        for content, genomes in self.genomes.items():
            told = outermost(self.fused.variant(content), self.designs[content]) if genomes else []
            found[content] = dict(zip(genomes, told, strict=True))
        return found

    def _points(self, content: str, kept: Kept) -> list[TablePoint]:
        """Costs of the designs of a layer with tensors `kept` on chip.

        Details are evaluated once: other tensors need the same room, kept ones the metadata of the whole tensor."""
        genomes, problem = self.genomes[content], self.fused.variant(content, kept)
        if not genomes:
            return []
        costs, need = self._own[content]
        if kept:
            designs = problem.space.decode(np.array(genomes, dtype=np.int64))
            told = problem.evaluator.evaluate_designs(designs)
            costs = np.where(told.valid, [told.energy_pj, told.cycles], np.inf)
            home = np.array([tensor.name in kept for tensor in problem.tensors])
            weights = np.array([tensor.name in self.fused.trained[content] for tensor in problem.tensors])
            need = need.copy()
            need[0, home], need[1, home] = 0.0, np.where(weights[home, None], 0.0, need[3, home])  # weights: `stored`
        chip, s = problem.chip, self.fused.home
        bits = need[1].sum(axis=0) if np.all(chip.shared_capacity[s]) else 0.0
        share = self.fused.share(chip)
        room = share * (need[0].sum(axis=0) + np.ceil(bits / chip.word_bits[s]))
        found = zip(*costs.tolist(), np.broadcast_to(room, len(genomes)).tolist(), genomes, strict=True)
        return [TablePoint(*one) for one in found if math.isfinite(one[0]) and math.isfinite(one[1])]

    @cached_property
    def _own(self) -> dict[str, tuple[Array, Array]]:
        """By content, costs and needs of the designs with all tensors off chip (`_told`)."""
        return {content: self._told(content) for content in self.genomes}

    def _told(self, content: str) -> tuple[Array, Array]:
        """(2, n) pJ and cycles, infinite for invalid designs; (4, T, n) words of the level on chip and metadata bits for
        its tiles, then the tensor's words and metadata bits of the whole tensor."""
        problem, s, count = self.fused.variant(content), self.fused.home, len(self.genomes[content])
        costs, need = np.full((2, count), np.inf), np.zeros((4, len(problem.tensors), count))
        copies = problem.cost_model.copies(problem)
        each = np.ones((len(problem.tensors), 1)) if copies is None else np.asarray(copies)[:, s, None]
        width = problem.widths(problem.chip)[:, s, None]
        for rows, some in by_layout(self.designs[content]):
            told = problem.evaluator.evaluate_designs(some, detail=True)
            detail = told.detail or Detail()
            if detail.data_words_max is None or detail.cells is None:
                model = problem.cost_model.name
                raise SearchError(
                    f"cost model '{model}' does not tell the room that designs need; --no-fuse gives the layers alone"
                )
            costs[:, rows] = np.where(told.valid, [told.energy_pj, told.cycles], np.inf)
            need[0][:, rows], need[2][:, rows] = detail.data_words_max[:, s] * each * width, detail.data_words_max[:, 0]
            for t, cells in enumerate(detail.cells):
                for row, cell, times in ((1, cells[s], each[t]), (3, cells[0], 1.0)):
                    if cell is not None and (ranks := cell.metadata) is not None:
                        need[row, t, rows] = ranks.bits(ranks.largest) * times
        return costs, need

    @cached_property
    def sizes(self) -> dict[str, dict[Any, list[float]]]:
        """By content and genome, words of each whole tensor including metadata."""
        found = {}
        for content, genomes in self.genomes.items():
            _, need = self._own[content]
            problem = self.fused.variant(content)
            bits = np.array([[problem.in_words_of(t).word_bits[0]] for t in range(len(problem.tensors))])
            found[content] = dict(zip(genomes, (need[2] + np.ceil(need[3] / bits)).T.tolist(), strict=True))
        return found

    @cached_property
    def recoded(self) -> dict[str, set[Any]]:
        """By content, the genomes of designs with the output uncompressed at some level."""
        found: dict[str, set[Any]] = {"": set()}
        for content, genomes in self.genomes.items():
            base, columns = self.fused.variant(content), self.designs[content].columns
            output = next(t for t, tensor in enumerate(base.tensors) if tensor.output)
            levels = columns.get("decoded", np.full((len(base.tensors), len(genomes)), len(base.levels)))[output]
            found[content] = {g for g, s in zip(genomes, levels.tolist(), strict=True) if s < len(base.levels)}
        return found
