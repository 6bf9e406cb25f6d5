"""Builds the plan of a network from search outcomes, and the description of every step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from ..errors import DesignError
from ..problem.network import INPUT
from ..searching.best import Best
from ..searching.breakdown import Breakdown, LevelCosts
from ..writing import write_texts
from .baselines import common_practice, layers_alone
from .cells import PLAN_FOLDER, STEADY_FOLDER, Outcome, labels_of
from .fused import FusedPlan, Kept, Key
from .fused_result import FusedLayer, FusedResult
from .fused_tables import FusedTables
from .graph import GraphNode
from .join import Chosen, JoinedPlan, TablePoint, joined, plans_with
from .network_result import NetworkResult
from .packets import PLAIN, Converted, TensorPlace, bare
from .pinned import Pinning, Planned
from .plan import Plan
from .prefetch import Ahead, Turn, prefetched


def kept(whole: Plan | FusedPlan, outcomes: Sequence[Outcome], write: bool = True) -> NetworkResult | FusedResult:
    """The result of the outcomes so far; with `write`, also writes the files into the folder of the run."""
    if isinstance(whole, Plan):
        found = whole.result(outcomes)
        if write:
            found.write(whole.folder, overwrite=True)
        return found
    result = result_of(whole, outcomes)
    if write:
        result.write(whole.plan.folder, overwrite=True)
        for some in filter(None, (result, result.steady)):
            write_designs(whole, some)
    return result


def result_of(fused: FusedPlan, outcomes: Sequence[Outcome]) -> FusedResult:
    """The result of the outcomes so far: of the searches alone, and of the join once all layers have a design."""
    base = fused.plan.result([one for one in outcomes if one.cell.folder in {c.folder for c in fused.plan.cells}])
    by_folder = {outcome.cell.folder: outcome for outcome in outcomes}
    nothing = FusedResult(base=base, home=fused.places[1], outside=fused.places[0])
    if not base.complete or len(by_folder) < len(fused.cells):
        return nothing
    tables = FusedTables(fused, by_folder)
    plan = joined(tables.steps, fused.capacity, fused.value, groups=tables.groups, known=tables.fitting)
    if plan is None:
        return attrs.evolve(nothing, error="no plan fits on the chip")
    cold = _Told(fused, tables, Planned(plan, tables.steps, tables.groups))
    steady = Pinning(tables, plan).best if fused.pins else None
    result = cold.result(base)
    return result if steady is None else attrs.evolve(result, steady=_Told(fused, tables, steady).steady(result))


@attrs.frozen(slots=False)
class _Told:
    fused: FusedPlan
    tables: FusedTables
    planned: Planned
    _limited: dict[Any, dict[str, Any]] = attrs.field(factory=dict, init=False)

    @property
    def plan(self) -> JoinedPlan:
        return self.planned.plan

    def steady(self, cold: FusedResult) -> FusedResult:
        """The result in steady state, beside the result of a `cold` inference."""
        result = attrs.evolve(
            cold, rows=self._rows({layer.layer: layer for layer in cold.base.layers}), bound=None,
            pinned={name: self._weights(name) for name in self.planned.words},
            pinned_room=self.planned.room, loading=self.planned.loading,
        )  # fmt: skip
        score = self.fused.value(result.energy_pj, result.cycles)
        return attrs.evolve(result, score=score, ahead=self._ahead(result.rows))

    def _weights(self, name: str) -> int:
        """Words of data of pinned weights, in words of the layer."""
        one = self.fused.named[name]
        chosen = next(step for step in self.plan.steps if step.step == name)
        return round(self.tables.data_words(one.node.content, chosen.point))

    def result(self, base: Any) -> FusedResult:
        fused = self.fused
        own = {layer.layer: layer for layer in base.layers}
        alone, practice, bound = *self._baselines(), self.tables.bound
        result = FusedResult(
            base=base, home=fused.places[1], outside=fused.places[0], capacity=fused.capacity, rows=self._rows(own),
            layer_by_layer=alone, common_practice=practice,
            bound=None if bound is None else fused.value(bound.energy_pj, bound.cycles),
            operations=fused.operations, matched=fused.matched, batch=fused.plan.batch,
        )  # fmt: skip
        result = attrs.evolve(result, ahead=self._ahead(result.rows))
        return attrs.evolve(result, score=fused.value(result.energy_pj, result.cycles))

    def _ahead(self, rows: Sequence[FusedLayer]) -> Ahead | None:
        """The plan with weights fetched ahead; None if this saves nothing."""
        chip, steps = self.fused.problem.chip, {step.step: step for step in self.plan.steps}
        rate = float(min(chip.bandwidth[0], chip.read_bandwidth[0]) * chip.word_bits[0]) / 8.0
        if not math.isfinite(rate):
            return None
        turns = []
        for row in rows:
            levels = row.by_level.get("levels", ())
            moved = levels[0].get("bytes_by_tensor", {}) if levels else {}
            busy = math.fsum(moved.values()) / rate if levels else row.cycles
            turn = Turn(name=row.layer, cycles=row.cycles, busy=busy, free=self.fused.capacity - row.used_words)
            own = row.weights if row.weights not in row.kept else ""
            if own and row.design and moved.get(own) and not steps[row.layer].beside:
                turn = self._fetched(turn, row, steps[row.layer].point, moved[own] / rate, rate)
            turns.append(turn)
        found = prefetched(turns)
        return found if found.words else None

    def _fetched(self, turn: Turn, row: FusedLayer, point: TablePoint, most: float, rate: float) -> Turn:
        """A layer's turn with its weights: at `most` these cycles of transfers, of `rate` bytes each."""
        content = self.fused.named[row.layer].node.content
        if not (weights := self.fused.trained[content]):
            return turn
        chip = self.fused.variant(content).in_words_of(self.tables.index_of_weights(content))
        words, genome = self.tables.own_words(content, point), bare(point)[0].design
        there = (p.cycles for p in self.tables.points(content, (*row.kept, *weights)) if p.design == genome)
        fetched = min(words * float(chip.word_bits[0]) / 8.0 / rate, most)
        room = words * self.fused.share(chip)
        return attrs.evolve(turn, floor=next(there, math.inf), fetched=fetched, words=room)

    def _rows(self, own: Mapping[str, Any]) -> tuple[FusedLayer, ...]:
        fused, rows = self.fused, []
        labels, files, held = labels_of(fused.named), dict[Any, str](), dict[str, int]()
        pinned, folder = self.planned.words, STEADY_FOLDER if self.planned.words else PLAN_FOLDER
        for step in self.plan.steps:
            point, passes = bare(step.point)
            chosen = attrs.evolve(step, point=point)
            one = fused.named[chosen.step]
            live: dict[str, Any] = dict(chosen.live)
            place: TensorPlace = live[one.name]
            inputs = tuple(live[name].level if name != INPUT else fused.places[0] for name in one.inputs)
            given = tuple(live[name].level for name in one.inputs if name != INPUT)
            held[one.name] = round(place.words / fused.shares[one.name]) if place.slides else one.live
            key = given, place.level
            kept, taken = fused.kept(one, key), dict(self._taken(one))
            on_chip = {tensor: held[taken[tensor]] for tensor in kept}
            if one.name in pinned:
                (weights,) = fused.weights[one.node.content]
                kept, on_chip = (*kept, weights), {**on_chip, weights: self._weights(one.name)}
            slid = {tensor for tensor, name in self._taken(one) if name in live and live[name].slides}
            loop = self.tables.outermost[one.node.content][chosen.point.design] if one.node.loops and slid else None
            walks = {tensor: loop[0] for tensor in kept if tensor in slid and loop}
            same = one.node.content, kept, chosen.point.design, *on_chip.items(), *walks
            limits = self._limits(one, kept, chosen) if one.node.loops else self._moves(one, key, chosen)
            row = FusedLayer(
                layer=one.name, type=one.node.piece.type_name,
                searched=own[one.node.name].searched if one.node.name in own else "", macs=one.node.macs,
                weights=getattr(one.node.piece, "weights", ""), inputs=one.inputs, from_places=inputs,
                place=place.level, slides=place.slides,
                packed=place.packet != PLAIN, words=one.words, why=self._why(one, place),
                energy_pj=chosen.point.energy_pj, cycles=chosen.point.cycles,
                live=tuple(name for name, there in live.items() if there.level == fused.places[1]),
                live_words=chosen.live_words + self.planned.room,
                used_words=chosen.used + self.planned.room, kept=kept, kept_words=on_chip, walks=walks,
                design=files.setdefault(same, f"{folder}/{labels[one.name]}.toml") if one.node.loops else "",
                genome=chosen.point.design or (), **limits,
            )  # fmt: skip
            before = sum(made.step == "inputs" for made in passes)  # which come first
            steps = [self._pass(row, made) for made in passes]
            rows += [*steps[:before], row, *steps[before:]]
        return tuple(rows)

    def _pass(self, row: FusedLayer, made: Converted) -> FusedLayer:
        """The activation, encoding or conversion of a layer's output, or the conversion of its inputs, as a separate
        step."""
        kinds = {"encoded": "encoding", "converted": "conversion", "inputs": "conversion"}
        kind, used = kinds.get(made.step, "activation"), row.used_words
        if made.step == "converted" and not row.slides:
            share = self.fused.shares[row.layer] * (row.place == self.fused.places[1])
            used = row.live_words + row.words * share
        after = {"inputs": (row.layer,), "from_places": (row.place,)}
        before = {"place": row.from_places[0], "why": "", "packed": False}
        row = attrs.evolve(row, **(before if made.step == "inputs" else after))
        return attrs.evolve(
            row, layer=f"{row.layer} {made.step}", type=kind, searched="", macs=0, slides="", energy_pj=made.energy_pj,
            cycles=made.cycles, used_words=used, kept=(), kept_words={}, walks={}, design="", genome=(), utilisation=None,
            limit="vector units" if kind == "activation" and made.cycles else "", by_level={},
        )  # fmt: skip

    def _taken(self, one: GraphNode) -> list[tuple[str, str]]:
        """Tensors of a layer, each with its producing node."""
        made = [(t.name, one.name) for t in one.node.loops.tensors if t.output] if one.node.loops else []
        return [*zip(one.operands, one.inputs, strict=False), *made]

    def _baselines(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """pJ and cycles of the layers alone, and of common practice."""
        fused, tables = self.fused, self.tables
        how, outside = (tables.steps, fused.capacity, fused.value), (fused.places[0], tables.fitting)
        alone = layers_alone(*how, *outside) or self.plan
        practice = common_practice(*how, fused.places[1], alone, *outside) or alone
        best = fused.value(self.plan.energy_pj, self.plan.cycles)
        for name, other in (("layers alone", alone), ("common practice", practice)):
            if fused.value(other.energy_pj, other.cycles) < best * (1.0 - 1e-9):
                raise AssertionError(f"{name} of '{fused.plan.network}' are better than the plan")
        return (alone.energy_pj, alone.cycles), (practice.energy_pj, practice.cycles)

    def _why(self, one: GraphNode, place: TensorPlace) -> str:
        """Reason against keeping the output of a node on chip; empty if on chip."""
        fused = self.fused
        if place.level == fused.places[1]:
            return ""
        if fused.stuck[one.name] and one.name not in fused.sliding:
            return fused.stuck[one.name]
        if one.name not in self._on_chip:
            return f"no room beside tiles and what lives ({one.words:,} words)"
        ratio = self._on_chip[one.name] / fused.value(self.plan.energy_pj, self.plan.cycles)
        if ratio < 1.0 - 1e-9:
            raise AssertionError(f"with '{one.name}' on chip a plan is {1.0 / ratio:.3f}x better than the chosen one")
        return f"on chip the network is {ratio:.3f}x worse" if ratio > 1.0 + 1e-9 else "nothing gained"

    @cached_property
    def _on_chip(self) -> dict[str, float]:
        """By node, the least cost of the network with the node's output on chip."""
        fused, planned, inside = self.fused, self.planned, self.fused.places[1]
        room = fused.capacity - planned.room
        how: Any = room, lambda place: place.level == inside, planned.groups, self.tables.fitting
        found = plans_with(planned.steps, *how)
        sums = np.array([plan for plans in found.values() for plan in plans]).reshape(-1, 2)
        values = iter(fused.values(sums).tolist())
        return {name: min(next(values) for _ in plans) for name, plans in found.items()}

    def _limits(self, one: GraphNode, kept: Kept, chosen: Chosen) -> dict[str, Any]:
        """Utilisation of the compute units, limit of the cycles, and breakdown of a layer."""
        key = one.node.content, kept, chosen.point.design
        if key not in self._limited:
            best = self._best(one, kept, chosen)
            found, computes = best.breakdown(), best.detail.computes
            share = None if computes is None else float(computes[0]) / (best.cycles * best.problem.compute_instances)
            limit = found.limit.removeprefix("the ")
            self._limited[key] = {"utilisation": share, "limit": limit, "by_level": found.to_dict()}
        return self._limited[key]

    def _moves(self, one: GraphNode, key: Key, chosen: Chosen) -> dict[str, Any]:
        """The limiting bandwidth of an operation, and its breakdown."""
        problem, spent = self.fused.problem, self.tables.spent(one, key)
        names = [level.name for level in problem.levels]
        vector_pj, busy = self.tables.vector(one, key)
        slowest = max(spent, key=lambda s: spent[s][1], default=0)
        if not (spent or vector_pj or busy) or not chosen.point.cycles:
            return {}
        if spent and busy < chosen.point.cycles:
            spent[slowest] = spent[slowest][0], chosen.point.cycles  # whole ones
        both = [spent.get(s, (0.0, 0.0)) for s in range(len(names))]
        moved = self.tables.bytes_moved(one, key)
        rows = [
            LevelCosts(name, pj, {"moved": pj}, cycles, {"moved": moved.get(s, 0.0)})
            for s, (name, (pj, cycles)) in enumerate(zip(names, both, strict=True))
        ]
        name = "vector" if problem.hardware.vector else problem.compute_name
        computes = LevelCosts(name, vector_pj, {}, busy)
        found = Breakdown((*rows, computes), chosen.point.energy_pj, chosen.point.cycles)
        return {"limit": found.limit.removeprefix("the "), "by_level": found.to_dict()}

    def _best(self, one: GraphNode, kept: Kept, chosen: Chosen) -> Best:
        """The design of a layer in the plan, with tensors at their places in the plan."""
        costs = {"energy_pj": chosen.point.energy_pj, "cycles": chosen.point.cycles}
        genome = np.array(chosen.point.design)
        return Best(self.fused.variant(one.node.content, kept), genome, costs, self.fused.value(*costs.values()))


def write_designs(fused: FusedPlan, result: FusedResult) -> list[Path]:
    """Writes the designs of a plan to the folder `plan`, a file per distinct design, named by `FusedLayer.design`."""
    texts: dict[Path, str] = {}
    for row in result.rows:
        path = fused.plan.folder / row.design
        if row.design and path not in texts:
            base = fused.variant(fused.named[row.layer].node.content, row.kept)
            there = attrs.evolve(base.workload, resident_words=dict(row.kept_words), slides=dict(row.walks))
            numbers = {"energy_pj": row.energy_pj, "cycles": row.cycles}
            best = Best(base.variant(workload=there), np.array(row.genome), numbers, fused.value(*numbers.values()))
            with suppress(DesignError):  # it has columns that no file can hold
                texts[path] = best.text(path.parent)
    return write_texts(texts)
