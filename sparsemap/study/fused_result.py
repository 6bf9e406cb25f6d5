"""Result of a network's plan: place of every tensor with the reason, tensors on chip at each step, and totals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from ..csv_files import csv_text
from ..errors import listed
from ..files import four_digits, percent, times
from ..latex import latex_table
from ..markdown import markdown_table
from ..problem.costs import Costs
from ..spec import units
from ..writing import write_texts
from .cells import FUSED_FILES, STEADY_FILES
from .network_result import LayerResult, NetworkResult, cost_lines
from .prefetch import Ahead
from .traffic import Speed, moved_bytes, traffic_table, traffic_text

ALIGN = "<<<>>>>><<"
"""Alignment of the columns of steps."""
BASELINES = ("layer_by_layer", "common_practice")
"""Plans without a search, beside the plan."""


@attrs.frozen(kw_only=True)
class FusedLayer:
    """A layer or an operation in the order of the plan."""

    layer: str
    type: str
    searched: str
    """The first equal layer; empty for operations."""
    macs: int
    weights: str
    """Tensor of trained weights; empty without one."""
    inputs: tuple[str, ...]
    from_places: tuple[str, ...]
    """Level of each input."""
    place: str
    """Level of the output."""
    slides: str
    """For a sliding output, the live extent, the full extent, and the loop; empty: resident as a whole."""
    words: int
    packed: bool
    why: str
    """Reason against keeping the output on chip; empty if on chip."""
    energy_pj: float
    cycles: float
    live: tuple[str, ...]
    """Nodes with outputs on chip during this step."""
    live_words: float
    used_words: float
    """Live words plus the words of the layer's tiles."""
    kept: tuple[str, ...]
    kept_words: Mapping[str, int] = attrs.field(factory=dict)
    """Words on chip at a time, by tensor of `kept`."""
    walks: Mapping[str, str] = attrs.field(factory=dict)
    """Dimension of the outermost loop, by sliding tensor of `kept`."""
    design: str = ""
    """Design file below the run's folder, shared by steps with the same design; empty for operations."""
    genome: tuple[int, ...] = ()
    utilisation: float | None = None
    """Effectual computes over cycles and compute units."""
    limit: str = ""
    by_level: Mapping[str, Any] = attrs.field(factory=dict)

    @property
    def home(self) -> str:
        """Level of the output, plus the live part if sliding."""
        return f"{self.place}, {self.slides}" if self.slides else self.place


@attrs.frozen(kw_only=True, repr=False)
class FusedResult:
    """A plan of a network. `base` has the searches layer by layer; `rows` is empty until all layers have a design."""

    base: NetworkResult
    home: str
    outside: str
    capacity: float = 0.0
    """Capacity of `home` in the network's widest words, the unit of all room."""
    rows: tuple[FusedLayer, ...] = ()
    layer_by_layer: tuple[float, float] = (math.nan, math.nan)
    """pJ and cycles of the best plan with all tensors between layers off chip, under the plan's rules."""
    common_practice: tuple[float, float] = (math.nan, math.nan)
    """pJ and cycles of the plan of a compiler without a search: tensors stay on chip where they fit, in order."""
    bound: float | None = None
    """Lower bound on the objective over all plans of designs of the space."""
    score: float | None = None
    """Objective of this plan."""
    operations: str = "fused"
    matched: bool = False
    """Whether tensors are read in the packets they were written in; otherwise formats change at no cost."""
    batch: int = 1
    pinned: Mapping[str, int] = attrs.field(factory=dict)
    """Of a steady state: by layer, words of weights that stay on chip across inferences."""
    pinned_room: float = 0.0
    """Room of pinned weights and their metadata, in the network's widest words."""
    loading: tuple[float, float] = (0.0, 0.0)
    """pJ and cycles of loading pinned weights, once."""
    steady: FusedResult | None = None
    """The plan in steady state, with pinned weights; None if no pinned weights gain anything."""
    ahead: Ahead | None = None
    """The plan with weights fetched while earlier steps leave the outermost level idle; None if this saves nothing."""
    error: str = ""

    def __repr__(self) -> str:
        return f"FusedResult({self.base.told(self)})"

    @property
    def complete(self) -> bool:
        return bool(self.rows)

    @property
    def layers(self) -> tuple[LayerResult, ...]:
        """Layers alone, in the form of a `NetworkResult`."""
        return self.base.layers

    @property
    def searches(self) -> int:
        """Number of searches of layers alone."""
        return self.base.searches

    @property
    def energy_pj(self) -> float:
        return math.fsum(row.energy_pj for row in self.rows)

    @property
    def cycles(self) -> float:
        return math.fsum(row.cycles for row in self.rows)

    @property
    def costs(self) -> dict[str, float]:
        """Costs of the whole network by name."""
        return Costs({"energy_pj": self.energy_pj, "cycles": self.cycles}, self.base.chip).floats()

    @property
    def edp(self) -> float:
        return self.costs["edp"]

    @property
    def seconds(self) -> float:
        return self.costs["seconds"]

    @property
    def gap(self) -> float | None:
        """The score over its bound."""
        return self.score / self.bound if self.score is not None and self.bound else None

    @property
    def gain(self) -> float:
        """EDP of common practice over the EDP of the plan."""
        return math.prod(self.common_practice) / self.edp

    @property
    def stays(self) -> tuple[int, int]:
        """Number of tensors between layers on chip, and number of all tensors between layers."""
        taken = {name for row in self.rows for name in row.inputs}
        between = [row for row in self.rows if row.layer in taken]
        return sum(row.place == self.home for row in between), len(between)

    @property
    def peak(self) -> FusedLayer:
        """The step with the most words on chip."""
        return max(self.rows, key=lambda row: row.used_words)

    @property
    def traffic(self) -> dict[str, dict[str, float]]:
        """Bytes of weights and activations by level (`traffic.moved_bytes`)."""
        return moved_bytes(self.rows)

    @property
    def speed(self) -> Speed | None:
        return Speed.of(self.rows, self.costs, self.base.chip, self.batch)

    @property
    def utilisation(self) -> float | None:
        """Utilisation of the whole network, weighted by cycles."""
        busy = [row for row in self.rows if row.utilisation is not None]
        return math.fsum((row.utilisation or 0.0) * row.cycles for row in busy) / self.cycles if busy else None

    # -- as text

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        if not self.complete:
            return {"complete": False, "error": self.error}
        keys = ("complete", "home", "capacity", "bound", "gap", "gain")
        return {
            **{key: getattr(self, key) for key in keys}, **self._sums(),
            **{key: _costs(getattr(self, key)) for key in BASELINES},
            "operations": self.operations if self.rows[0].words else "not counted, since it does not say its shapes",
            "formats": "matched" if self.matched else "free",
            **({"steady": self.steady._sums()} if self.steady else {}),
        }  # fmt: skip

    def _sums(self) -> dict[str, Any]:
        """Totals and steps of a plan, cold or in steady state, as plain data."""
        stays, between = self.stays
        pinned: dict[str, Any] = {}
        if self.pinned:
            pinned = {"pinned": dict(self.pinned), "pinned_room": self.pinned_room, "loading": _costs(self.loading)}
        return {
            **{key: getattr(self, key) for key in ("energy_pj", "cycles", "edp", "utilisation")}, "costs": self.costs,
            "stay": stays, "tensors": between, "peak": {"layer": self.peak.layer, "words": self.peak.used_words},
            "traffic": traffic_table(self.traffic), "speed": attrs.asdict(self.speed) if self.speed else None,
            **pinned, **self._ahead_table(), "layers": [attrs.asdict(row) for row in self.rows],
        }  # fmt: skip

    def _ahead_table(self) -> dict[str, Any]:
        if (ahead := self.ahead) is None:
            return {}
        sums = {"cycles": ahead.cycles, "edp": self.energy_pj * ahead.cycles, "words": dict(ahead.words)}
        return {"ahead": sums}

    def table(self) -> list[list[str]]:
        """A row per step, in the order of the plan."""
        head = "step,inputs from,output to,on chip,energy,cycles,time,busy,limit,why not"
        rows, clock = [head.split(",")], float(self.base.chip.clock_hz)
        for row in self.rows:
            places = [row.layer, ", ".join(dict.fromkeys(row.from_places)), row.home]
            costs = [units.format_energy(row.energy_pj), f"{row.cycles:,.0f}"]
            costs.append(units.scaled_text(row.cycles / clock, "s"))
            busy, room = "-" if row.utilisation is None else percent(row.utilisation), row.used_words / self.capacity
            rows.append([*places, percent(room), *costs, busy, row.limit or "-", row.why or "-"])
        return rows

    def totals_text(self) -> str:
        """The totals of the plan, in lines."""
        if not self.complete:
            return f"plan     incomplete: {self.error or 'not every layer has a design'}"
        stays, between = self.stays
        slide = sum(bool(row.slides) for row in self.rows)
        note = f"{self._ahead(self.common_practice)} common practice, {self._ahead(self.layer_by_layer)} layers alone"
        lines = [
            f"plan     {stays} of {between} tensors between layers stay in {self.home}, {slide} of them slide by; "
            f"at most {self._most}",
            *cost_lines(self.costs, (note, ""), ((x.limit, x.cycles) for x in self.rows)),
            f"practice {self._told(self.common_practice)}; tensors stay in {self.home} where they fit, in order",
            f"alone    {self._told(self.layer_by_layer)}; every tensor between layers in {self.outside}",
        ]
        lines += self._ahead_lines("ahead    ")
        if self.utilisation is not None:
            lines.append(f"busy     {percent(self.utilisation)} of the compute units, on the mean")
        lines += self._traffic_lines()
        if self.base.lacks:
            lines.append(f"without  {listed(self.base.lacks)}")
        if self.gap is not None:
            proof = f"proven for these sizes: the best plan is within {times(self.gap)}"
            lines.append(f"bound    {four_digits(self.bound)}, {proof}")
        cost = {"counted": "cost what they read and write", "free": "are free"}
        free = cost.get(self.operations, "cost what they move, and sums of words what they add to the layer before")
        matched = "what is written is what is read, or converted"
        formats = matched if self.matched else "formats change on the way at no cost"
        if not self.rows[0].words:
            free = "are not counted, and no tensor stays, since the network does not say its shapes"
        lines.append(f"         operations between layers {free}; {formats}")
        return "\n".join([*lines, *(self.steady._steady_lines(self.edp) if self.steady else ())])

    def _steady_lines(self, cold: float) -> list[str]:
        """The totals in steady state, beside the EDP of a `cold` inference."""
        words, layers = units.format_count(sum(self.pinned.values())), len(self.pinned)
        weights = f"{layers} layers keep their" if layers > 1 else "1 layer keeps its"
        weights += f" weights in {self.home}"
        energy, cycles = self.loading
        load = f"loading them once takes {units.format_energy(energy)} and {units.format_count(cycles)} cycles"
        return [
            f"steady   from the second inference on, {weights}: {words} words, at most {self._most}; {load}",
            f"         {self._told((self.energy_pj, self.cycles))}, {times(cold / self.edp)} better than a single inference",
            *self._ahead_lines(" " * 9),
            *(" " * 9 + line[9:] for line in self._traffic_lines()),
        ]

    def _ahead_lines(self, head: str) -> list[str]:
        """The cycles with weights fetched ahead; none if this saves nothing."""
        if (ahead := self.ahead) is None:
            return []
        layers = f"{len(ahead.words)} layer{'s' * (len(ahead.words) > 1)}"
        told = f"{units.format_count(ahead.cycles)} cycles, {times(self.cycles / ahead.cycles)} better"
        return [f"{head}weights of {layers} come while earlier steps leave {self.outside} idle: {told}"]

    def _traffic_lines(self) -> list[str]:
        """Speed, and bytes by level; none if unknown."""
        if (speed := self.speed) is None:
            return []
        return [f"speed    {speed.text}", f"traffic  {traffic_text(self.traffic, self.seconds)}"]

    @property
    def _most(self) -> str:
        return f"{percent(self.peak.used_words / self.capacity)} of {self.home} at {self.peak.layer}"

    def _ahead(self, other: tuple[float, float]) -> str:
        gain = math.prod(other) / self.edp
        return f"{times(gain)} better than" if gain > 1.0 + 1e-9 else "as good as"

    def _told(self, other: tuple[float, float]) -> str:
        costs = Costs({"energy_pj": other[0], "cycles": other[1]}, self.base.chip).floats()
        edp, energy = f"{four_digits(costs['edp_js'])} J * s", units.format_energy(other[0])
        return f"{edp}, {energy}, {units.format_count(other[1])} cycles"

    def write(self, folder: Path | str, overwrite: bool = False) -> list[Path]:
        """Writes the files of the searches, the plan in `network.json`, and the steps in `fused.csv` and `fused.md`."""
        written = attrs.evolve(self.base, fused=self.to_dict()).write(folder, overwrite)
        if not self.complete:
            return written
        texts = dict(zip(FUSED_FILES, self._tables(), strict=True))
        texts |= dict(zip(STEADY_FILES, self.steady._tables(), strict=True)) if self.steady else {}
        return [*written, *write_texts({Path(folder) / name: text for name, text in texts.items()})]

    def _bytes(self, row: FusedLayer) -> dict[str, float]:
        """Bytes that a step moves in the outermost level and in the level on chip; empty if unknown."""
        moved = moved_bytes([row])
        places = {"outside_bytes": self.outside, "home_bytes": self.home} if self.traffic else {}
        return {key: math.fsum(moved.get(level, {}).values()) for key, level in places.items()}

    def _tables(self) -> tuple[str, str]:
        """The steps as CSV and as a Markdown table."""
        fields = attrs.filters.exclude("by_level", "genome")
        rows = [attrs.asdict(row, filter=fields) | self._bytes(row) for row in self.rows]
        flat = [{key: " ".join(x) if isinstance(x, tuple) else x for key, x in row.items()} for row in rows]
        return csv_text(flat), self.markdown()

    def markdown(self) -> str:
        """The steps of the plan."""
        return markdown_table(self.table(), ALIGN)

    _repr_markdown_ = markdown

    def to_latex(self) -> str:
        """The steps of the plan for a paper, with booktabs."""
        return latex_table(self.table(), ALIGN, f"{self.base.network} on {self.base.hardware}")


def _costs(both: tuple[float, float]) -> dict[str, float]:
    return dict(zip(("energy_pj", "cycles"), both, strict=True))
