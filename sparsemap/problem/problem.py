"""A workload on a hardware, with everything derived from the pair: storage levels, mapping levels, skip/gate places."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from ..errors import SpecError, placed, unknown
from ..pieces.boundary import filters_of, guarded
from ..pieces.contracts import ALL_OPERANDS
from ..pieces.data_specs import Hardware, MacMode, SpaceSpec
from ..pieces.registry import Registry
from .chip import Chip, chip_of
from .costs import ALIASES
from .evaluation import Evaluation
from .levels import Level, MappingLevel, Place, levels_of
from .tables import Key, T, Tables

if TYPE_CHECKING:
    from ..pieces.contracts import CostModel, Filter, Loops, Mechanism, Objective, Technology, Tensor, Workload
    from .classes import ScoredClasses
    from .evaluator import Evaluator
    from .scenarios import Scenario
    from .space import Space

OPERANDS, OUTPUT = ("P", "Q", "R", "S"), "Z"
"""Roles of tensors: the operands by position, and the output. Specs of hardware, mechanisms and spaces use roles to
name any workload's tensors."""
PASSES, NUMBERS = "passes", "numbers"
"""Columns of designs with their layout: the bypassed levels, and the number formats, of tensors."""


@attrs.define(eq=False, slots=False, repr=False)
class Problem:
    """A workload, a hardware, the space of designs to search, the cost model and the objective.

    Made by `sparsemap.load_problem`. Sizes are padded on request of the space's encoding, see `padded`. Several threads
    may evaluate and search on a problem at once."""

    workload: Workload
    hardware: Hardware
    space_spec: SpaceSpec
    cost_model: CostModel
    objective: Objective
    registry: Registry
    files: Mapping[str, str] = attrs.field(factory=dict)
    """Sources of workload, hardware and space, for messages."""
    given_chip: Chip | None = None
    """Chip from `on`, in place of the chip of the hardware."""
    passed: frozenset[tuple[int, int]] | None = None
    """Bypassed levels by tensor in the layout of a design (`problem/layouts.py`); None: left to the genes."""
    bounded: bool = True
    """Whether to ask the cost model for a lower bound and classes; may cost too much time for a short search."""
    raced: bool = True
    """Whether a search may also try other padded sizes of the dimensions (`Space.other_sizes`)."""
    shared: Tables = attrs.field(factory=Tables)
    """Tables that depend only on the workload, its sizes and the names of levels: shared by all chips, see `on`."""
    _tables: Tables = attrs.field(factory=Tables, init=False)

    @property
    def title(self) -> str:
        """Title such as "mm3 on cloud"."""
        return f"{self.workload.name} on {self.hardware.name}"

    def __repr__(self) -> str:
        parts = (self.space_spec.name, self.cost_model.name, self.objective.name or self.objective.type_name)
        return f"Problem({self.title}, space {parts[0]}, cost model {parts[1]}, objective {parts[2]})"

    def _repr_html_(self) -> str:
        from .notebook import html_of

        return html_of(self)

    def __deepcopy__(self, memo: Any) -> Problem:
        """Returns itself: a problem never changes, and libraries such as gymnasium copy their arguments."""
        return self

    def __reduce__(self) -> Any:
        """Pickles the pieces without tables: another process loads the plugins again and rebuilds the problem."""
        own = ("files", "given_chip", "passed", "bounded", "raced")
        names = ("workload", "hardware", "space_spec", "cost_model", "objective", *own)
        given = self.__dict__["space"].problem if "space" in self.__dict__ else self
        fields = {name: getattr(self, name) for name in names}
        return restored, (self.registry, fields, None if given is self else given)

    def remember(self, key: Key, make: Callable[[], T]) -> T:
        """The value for this key, made once per problem, see `Key`: for tables of segments and cost models."""
        return self._tables.remember(key, make)

    def variant(self, **parts: Any) -> Problem:
        """This problem with another `workload`, `objective` or `cost_model`. Tables are new; the space is shared, so
        the same genomes are the same designs. Sizes and hardware stay."""
        made = attrs.evolve(self, **({"shared": Tables()} if "workload" in parts else {}) | parts)
        made.__dict__ |= {"space": self.space, **self.known("levels", "technology", "chip")}
        return made

    def laid_out(self, sizes: Mapping[str, int], why: str = "") -> Problem:
        """This problem with these padded sizes in place of the space's, for a reason, and with tables of its own."""
        made = attrs.evolve(self, shared=Tables(), raced=False)
        made.__dict__ |= {"sizes": dict(sizes), **self.known("loops", "levels", "technology", "chip")}
        made.__dict__["space"] = self.space.of(made, sizes, why)
        return made

    def known(self, *names: str) -> dict[str, Any]:
        """Cached properties by name, as far as already computed."""
        return {name: self.__dict__[name] for name in names if name in self.__dict__}

    @cached_property
    def layouts(self) -> tuple[Problem, ...]:
        """This problem with every hardware its genes can express; empty for too many."""
        if not self.has_layouts:
            return (self,)
        from .layouts import layouts

        return layouts(self)

    @cached_property
    def has_layouts(self) -> bool:
        """Whether genes choose the bypasses of a design's hardware, or number formats."""
        return self.passed is None and (self.space.provides(PASSES) or self.space.provides(NUMBERS))

    # -- workload

    @cached_property
    def loops(self) -> Loops:
        with placed("", self.file_of("workload")):
            loops = self.workload.loops(self.registry)
        stored = self.space_spec.stored if self.space_spec else {}  # a workload may be checked without a space
        if not stored:
            return loops
        from .stored import as_stored

        return as_stored(loops, self)

    @cached_property
    def sizes(self) -> dict[str, int]:
        """Dimension sizes after padding, in workload order."""
        return {dim: max(size, self.space.padding.get(dim, size)) for dim, size in self.loops.sizes.items()}

    @cached_property
    def padded(self) -> dict[str, tuple[int, int]]:
        """Padded dimensions: name -> (original size, padded size)."""
        given = self.loops.sizes
        return {dim: (given[dim], size) for dim, size in self.sizes.items() if size != given[dim]}

    @property
    def padded_text(self) -> str:
        """Summary `m 730 -> 735, k 730 -> 735 (to fill fan-outs)`; "" without padding."""
        grown = ", ".join(f"{dim} {given} -> {size}" for dim, (given, size) in self.padded.items())
        why = self.space.why_padded if grown else ""
        return f"{grown} ({why})" if why else grown

    @cached_property
    def dims(self) -> tuple[str, ...]:
        return tuple(self.loops.sizes)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return self.loops.tensors

    @cached_property
    def roles(self) -> dict[str, int]:
        """Tensor index by role, independent of the tensors' names."""
        output = next(i for i, tensor in enumerate(self.tensors) if tensor.output)
        return {**dict(zip(OPERANDS, self.operands, strict=False)), OUTPUT: output}

    @cached_property
    def operands(self) -> tuple[int, ...]:
        """Tensor indices of the operands, in their order."""
        return tuple(i for i, tensor in enumerate(self.tensors) if not tensor.output)

    def tensor(self, text: str, file: str = "", path: str = "") -> int:
        """Index of the tensor for a text: a role, a name, or `role:Q` or `name:Q` where they differ.

        `SpecError` with `file` and `path` if the workload has no such tensor, or if the text is ambiguous."""
        given, _, word = text.rpartition(":")
        tables = {"role": self.roles, "name": {tensor.name: i for i, tensor in enumerate(self.tensors)}}
        known = {how: table for how, table in tables.items() if given in ("", how)}
        found = {how: table[word] for how, table in known.items() if word in table}
        if not found:
            names = dict.fromkeys(name for table in (known or tables).values() for name in table)
            raise SpecError.at(file, path, unknown("tensor", word if known else text, names))
        if len(set(found.values())) > 1:
            other = self.tensors[found["role"]].name
            wording = f"is the role of tensor '{other}' and the name of another; write 'role:{word}' or 'name:{word}'"
            raise SpecError.at(file, path, f"'{word}' {wording}")
        return next(iter(found.values()))

    def lacks(self, text: str) -> bool:
        """Whether a text is a role without a tensor in this workload, such as R with two operands."""
        word = text.removeprefix("role:")
        named = word == text and any(tensor.name == word for tensor in self.tensors)
        return word in (*OPERANDS, OUTPUT) and word not in self.roles and not named

    def filters(self, mechanism: Mechanism, place: Place) -> list[tuple[Filter, int, tuple[int, ...]]]:
        """Filters of a mechanism at a place, with the tensor indices of target and leaders, for this workload.

        Texts are roles, so a mechanism suits every workload. If any text is a name, all texts must be unambiguous, as
        in `tensor`. `ALL_OPERANDS` as target makes a filter per operand, led by the other operands among the leaders.
        Tensors missing from the workload, and tensors outside their home, neither lead nor are filtered."""
        file, path = self.file_of("workload"), f"mechanism '{mechanism.name or mechanism.type_name}'"
        found = []
        for rule in filters_of(mechanism, place):
            texts = [text for text in (rule.target, *rule.leaders) if text != ALL_OPERANDS]
            prefix = "role:" if all(text in self.roles or self.lacks(text) for text in texts) else ""
            meant: dict[str, tuple[int, ...]] = {ALL_OPERANDS: self.operands}
            meant |= {text: (self.tensor(prefix + text, file, path),) for text in texts if not self.lacks(text)}
            named = [leader for text in rule.leaders if text != ALL_OPERANDS for leader in meant.get(text, ())]
            for target in meant.get(rule.target, ()):
                if target in named and rule.target != ALL_OPERANDS:
                    raise SpecError.at(file, path, f"'{self.tensors[target].name}' cannot lead itself")
                leaders = dict.fromkeys(leader for text in rule.leaders for leader in meant.get(text, ()))
                leaders.pop(target, None)
                leaders |= {target: None} if rule.action == "pack" else {}
                seen = place.storage is None or max(self.homes[t] for t in (target, *leaders)) <= place.storage
                if leaders and seen:
                    found.append((rule, target, tuple(leaders)))
        return found

    # -- hardware

    @cached_property
    def technology(self) -> Technology:
        return self.registry.build("technology", self.hardware.technology, self.file_of("hardware"), "technology")

    @cached_property
    def mac_mode(self) -> MacMode | None:
        """Fastest mode of the compute units for the operands of the workload's widths; None: one pair per cycle."""
        if not (self.hardware.compute.modes and self.workload and isinstance(self.workload.word_bits, Mapping)):
            return None  # a chip alone has no widths
        from .widths import mode_of

        return mode_of(self)

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """Storage levels, outermost first. `SpecError` with every mistake of the clock and the levels."""
        with placed("", self.file_of("hardware")):
            technology = self.technology
            levels = self._once((self.hardware, technology), levels_of, self.hardware, self.registry, technology)
        if self.mac_mode:
            from .widths import more_units

            levels = self._once((levels, self.mac_mode), more_units, levels, self.mac_mode.macs)
        if self.given_chip is None:
            return levels
        from .other_chip import levels_on

        return levels_on(self.given_chip, levels)

    @property
    def compute_name(self) -> str:
        """Name of the compute units."""
        return self.hardware.compute.name

    @cached_property
    def compute_instances(self) -> int:
        last = self.levels[-1]
        return last.instances * last.fanout

    @cached_property
    def mapping_levels(self) -> tuple[MappingLevel, ...]:
        groups = []
        for level in self.levels:
            groups.append(MappingLevel(f"L{level.index + 1}_T", level.index, False, 0))
            if level.memory.fanout is not None:
                groups.append(MappingLevel(f"L{level.index + 1}_S", level.index, True, level.fanout))
        return tuple(groups)

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """Skip/gate places: storage levels with `gate_skip`, then the compute unit if it has `gate_skip`."""
        places = [Place(level.name, level.index) for level in self.levels if level.gate_skip]
        if self.hardware.compute.gate_skip:
            places.append(Place(self.compute_name, None))
        return tuple(places)

    @cached_property
    def homes(self) -> tuple[int, ...]:
        """(T,) outermost level to hold each tensor: 0, or the level in the workload's `resides`."""
        if not self.workload.resides:
            return (0,) * len(self.tensors)
        from .residents import homes_of

        return homes_of(self)

    @cached_property
    def resident(self) -> dict[tuple[int, int], int]:
        """Words of room by (tensor, level), for each tensor resident as a whole inside the outermost level."""
        if not any(self.homes) and not self.workload.resident_words:
            return {}
        from .residents import resident_of

        return resident_of(self)

    @cached_property
    def slides(self) -> dict[int, int]:
        """Sliding tensors with their dimension: its loop is the outermost outside the tensor's home."""
        if not self.workload.slides:
            return {}
        from .residents import slides_of

        return slides_of(self)

    @cached_property
    def tensor_bits(self) -> np.ndarray:
        """(T, S) float64 bits per word of each tensor at each level; 0: as wide as the level's words."""
        tables = (self.workload.word_bits, *(level.memory.word_bits for level in self.levels))
        if not any(isinstance(table, Mapping) for table in tables):
            return np.zeros((len(self.tensors), len(self.levels)))
        from .widths import bits_of

        return bits_of(self)

    @cached_property
    def recoding_pj(self) -> np.ndarray:
        """(T, S + 1, S + 1) pJ to rewrite a word between the number formats of two levels; the last: compute units."""
        if not self.tensor_bits.any():
            return np.zeros((len(self.tensors), len(self.levels) + 1, len(self.levels) + 1))
        from .widths import recoding_of

        return recoding_of(self)

    def widths(self, chip: Chip) -> np.ndarray:
        """(T, S) words of a level per word of a tensor, on a chip for this problem."""
        return np.where(self.tensor_bits > 0, self.tensor_bits / chip.word_bits, 1.0)

    def in_words_of(self, tensor: int | Sequence[int]) -> Chip:
        """The chip in words of a tensor, or of a tensor per level (S,): bits, energies and bandwidths of data."""
        own = self.tensor_bits[tensor, np.arange(len(self.levels))]
        if not own.any():
            return self.chip
        from .widths import with_words

        return with_words(self.chip, np.where(own > 0, own, self.chip.word_bits))

    def stores(self, tensor: int, level: int) -> bool:
        """Whether a storage level keeps a tensor: no `bypass` of the hardware, and not outside the tensor's residence."""
        return level >= self.homes[tensor] and tensor not in self.named(level, "bypass")

    def streams(self, tensor: int, level: int) -> bool:
        """Whether an operand streams through a level: written and read on the way, without being stored."""
        kept = self.tensors[tensor].output or level <= self.homes[tensor] or self.stores(tensor, level)
        return not kept and tensor in self.named(level, "streams")

    def links(self, tensor: int) -> bool:
        """Whether neighbouring compute units hand on the words of a tensor."""
        windowed = any(sum(self.sizes[dim] > 1 for dim, _ in rank) > 1 for rank in self.tensors[tensor].ranks)
        return not windowed and tensor in self.named(len(self.levels) - 1, "links")

    def named(self, level: int, key: str) -> list[int]:
        """Tensors under a key of a level: all for true, none for false, else a list by role or name."""
        given, file = getattr(self.levels[level].memory, key), self.file_of("hardware")
        if isinstance(given, bool):
            return list(range(len(self.tensors))) if given else []
        texts = [(i, text) for i, text in enumerate(given) if not self.lacks(text)]
        return [self.tensor(text, file, f"levels[{level}].{key}[{i}]") for i, text in texts]

    @cached_property
    def decodes(self) -> np.ndarray:
        """(S, T) bool: the level decodes the tensor on the way in, and encodes it on the way out."""
        found = np.zeros((len(self.levels), len(self.tensors)), dtype=bool)
        for level in self.levels[1:]:
            found[level.index, self.named(level.index, "decodes")] = True
        return found & (np.arange(len(self.levels))[:, None] > np.array(self.homes))  # nothing comes in at a home

    @cached_property
    def buffers(self) -> np.ndarray:
        """(S, T) int64 tiles of each tensor held by a level at a time; at the outermost level 1."""
        found = np.ones((len(self.levels), len(self.tensors)), dtype=np.int64)
        for level in self.levels[1:]:
            found[level.index, self.named(level.index, "double_buffered")] = level.memory.buffer_depth
        for tensor, home in self.resident:  # nothing takes its place
            found[home, tensor] = 1
        return found

    @cached_property
    def chip(self) -> Chip:
        """All sizes, speeds, energies and areas of the hardware. `SpecError` with every wrong figure."""
        if self.given_chip is not None:
            return self.given_chip
        given = self.levels, self.technology, self.hardware, self.registry, self.file_of("hardware"), self.mac_mode
        return self._once(given[:2], chip_of, *given)

    def _once(self, parts: tuple[Any, ...], make: Callable[..., T], *arguments: Any) -> T:
        """Result of `make` for parts of the hardware, shared by all problems with the same part objects."""
        key = make, *map(id, parts)
        return self.registry.remember(key, lambda: (parts, make(*arguments)))[1]  # they stay, and so do their numbers

    def on(self, chip: Chip) -> Problem:
        """The same workload, space and names on another chip, with the same number of levels; `SearchError` for a
        different number, or a batch of chips. `hardware` stays, and does not describe the chip."""
        from .other_chip import moved

        return moved(self, chip)

    def energy_pj(self, level: int, action: str) -> float:
        """pJ per access at a level; `action` is one of `LEVEL_ACTIONS`."""
        return float(self.chip.energy_pj[action][level])

    @property
    def clock_hz(self) -> float:
        """Cycles per second."""
        return float(self.chip.clock_hz)

    def leakage_mw(self, level: int) -> float:
        """Leakage power of a level per instance, in mW."""
        return float(self.chip.leakage_mw[level])

    def mac_pj(self, action: str) -> float:
        """pJ per multiply-accumulate: compute, gated, skipped."""
        return float(self.chip.mac_pj[action])

    # -- design space

    @cached_property
    def space(self) -> Space:
        from .space import Space

        return Space(self, self.space_spec)

    def candidates(self, kind: str) -> tuple[Any, ...]:
        """Candidate pieces of a kind for the genes of the space, in gene order."""
        return self.space.candidates.get(kind, ())

    @cached_property
    def judge(self) -> Objective:
        """The objective with all it has to know of this problem."""
        with guarded(self.objective, "of"):
            return self.objective.of(self)

    @property
    def scenarios(self) -> Mapping[str, Scenario]:
        """Variants of this problem by name, for the objective's additional evaluations of every design."""
        return self.judge.scenarios

    @cached_property
    def bound(self) -> float | None:
        """A proven lower bound on the score of every design of this problem's space; None if unknown."""
        found = self.lower_bound if self.judge.monotone else None
        needed = {ALIASES.get(name, name) for name in self.judge.costs} & {*self.cost_model.costs}
        if found is None or not needed <= found.costs.own.keys():
            return None
        in_scenarios = {name: scenario.problem.lower_bound for name, scenario in self.scenarios.items()}
        known = {name: evaluation.least for name, evaluation in in_scenarios.items() if evaluation is not None}
        if len(known) < len(in_scenarios):
            return None
        if known:  # pairs of one scenario do not go with pairs of another
            found = attrs.evolve(found.least, scenarios=known)
        bound = float(self.evaluator.score(found).min())
        if self.classes is not None:
            bound = max(bound, float(self.classes.least.min()))
        return bound if 0.0 < bound < float("inf") else None

    @cached_property
    def lower_bound(self) -> Evaluation | None:
        """Rows of energy and cycles: every design of this problem's space is at or above some row in both. None if the
        cost model proves no bound."""
        from .evaluator import checked

        parts = []
        for one in self.layouts if self.bounded else ():
            with guarded(self.cost_model, "lower_bound"), np.errstate(over="ignore", invalid="ignore"):
                found = self.cost_model.lower_bound(one)
                rows = max(1, len(found)) if isinstance(found, Evaluation) else 1
            if found is None:
                return None
            parts.append(checked(found, rows, self.cost_model, "lower_bound").on(self.chip))
        return Evaluation.join(parts) if parts else None

    @cached_property
    def classes(self) -> ScoredClasses | None:
        """Classes of designs with a bound on the score of each; None if unknown."""
        from .classes import classes_of

        return classes_of(self) if self.bounded else None

    @cached_property
    def evaluator(self) -> Evaluator:
        from .evaluator import Evaluator

        return Evaluator(self)

    def file_of(self, what: str) -> str:
        return self.files.get(what, what)


def restored(registry: Registry, fields: Mapping[str, Any], given: Problem | None) -> Problem:
    """Rebuilds a pickled problem; `given` is the problem with its space, if different."""
    made = Problem(registry=registry, **fields)
    if given is not None:
        made.__dict__["space"] = given.space
    return made
