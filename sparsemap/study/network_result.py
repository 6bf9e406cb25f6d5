"""Results of the layers of a network, and totals over all layers.

Layers are evaluated one after the other, without fusion, and nothing stays on chip in between. The energy of a network
is the sum of the layers' energies, and the latency the sum of their cycles. The EDP is the product of both sums, not
the sum of the layers' EDPs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from ..csv_files import csv_text
from ..errors import SearchError, listed
from ..file_formats import NETWORK
from ..files import four_digits, grouped, percent, times
from ..latex import latex_table
from ..markdown import markdown_table
from ..problem.chip import Chip
from ..problem.costs import Costs
from ..searching.breakdown import limit_alone
from ..searching.folder import check_file
from ..searching.written import read_result
from ..spec import units
from ..writing import write_texts
from .cells import NETWORK_FILES, placed


@attrs.frozen(kw_only=True)
class LayerResult:
    """Result of a layer of a network; numbers are None without a design."""

    layer: str
    type: str
    repeat: int
    searched: str
    """The first equal layer, with the design in its folder."""
    macs: int
    """Multiply-accumulates per repetition; all numbers here are per repetition."""
    sizes: str
    """Sizes of the dimensions, "k 64 c 3 ..."."""
    densities: str
    """Shares of nonzeros of the operands, "P 0.55 Q 0.5"; expected shares for ranges."""
    state: str
    """"done", "kept" from an earlier run, "failed", or "waiting" after an early end of the run."""
    edp: float | None = None
    energy_pj: float | None = None
    cycles: float | None = None
    gap: float | None = None
    """Score over its proven bound."""
    verdict: str = ""
    """Convergence of the search: `proved`, `converged` or `improving`; empty for few designs."""
    evaluations: int | None = None
    valid_fraction: float | None = None
    bound_energy_pj: float | None = None
    """Lower bound on the energy of the layer over all designs."""
    bound_cycles: float | None = None
    limit: str | None = None
    units_used: float | None = None
    """Share of the compute units with work."""
    start: str = ""
    """Layers with starting designs for the search, the nearest first; equal layers start from the same designs."""
    start_distance: float | None = None
    """Distance of the nearest starting design."""
    start_ratio: float | None = None
    """Score of the best starting design, over the best score of the search."""
    error: str = ""


@attrs.frozen(kw_only=True, repr=False)
class NetworkResult:
    """The layers of a network with their designs, and the totals. A total is None unless every layer has a design."""

    network: str
    hardware: str
    technology: str
    """Technology behind the energies and areas of the hardware."""
    space: str
    """Design space of every layer, the scope of `bound`."""
    searcher: str
    budget: int
    """Designs per distinct layer."""
    seed: int
    warm_start: str
    chip: Chip
    layers: tuple[LayerResult, ...]
    fused: Mapping[str, Any] = attrs.field(factory=dict)
    """The plan with tensors on chip, as plain data, if any."""
    lacks: tuple[str, ...] = ()
    """Parts missing from all layers and totals."""
    unplanned: str = ""
    """Reason against a plan of tensors on chip, if a plan is usual."""
    between: tuple[int, float, float] = (0, 0.0, 0.0)
    """Number of operations between layers, excluded from the totals, with pJ and cycles of their traffic."""

    def __repr__(self) -> str:
        return f"NetworkResult({self.told(self)})"

    def told(self, whole: Any) -> str:
        """A line with the totals of `whole`, this result or its plan, and a summary of the searches."""
        costs = "not every layer has a design"
        if whole.complete:
            cycles = units.format_count(whole.cycles)
            costs = f"EDP {whole.edp:.3e} pJ * cycles, {units.format_energy(whole.energy_pj)}, {cycles} cycles"
            costs += f", within {whole.gap:.2f}x of the optimum for these sizes" if whole.gap else ""
        search = f"{self.searches} searches of {self.budget:,} designs, {self.searcher}, seed {self.seed}"
        return f"{self.network} on {self.hardware}: {costs}; {search}"

    @property
    def complete(self) -> bool:
        return all(layer.energy_pj is not None for layer in self.layers)

    @property
    def searches(self) -> int:
        return len({layer.searched for layer in self.layers})

    @property
    def energy_pj(self) -> float | None:
        return self._total("energy_pj")

    @property
    def cycles(self) -> float | None:
        """Cycles of all layers, one after the other."""
        return self._total("cycles")

    @property
    def costs(self) -> dict[str, float]:
        """Costs of all layers together by name; empty unless every layer has a design."""
        if self.energy_pj is None or self.cycles is None:
            return {}
        return Costs({"energy_pj": self.energy_pj, "cycles": self.cycles}, self.chip).floats()

    @property
    def seconds(self) -> float | None:
        return self.costs.get("seconds")

    @property
    def edp(self) -> float | None:
        """Total energy times total cycles, pJ * cycles."""
        return self.costs.get("edp")

    @property
    def bound(self) -> float | None:
        """Lower bound on the EDP over the space: sum of the layers' least energies, times that of least cycles."""
        energy, cycles = self._total("bound_energy_pj"), self._total("bound_cycles")
        return None if energy is None or cycles is None else energy * cycles

    @property
    def gap(self) -> float | None:
        return self.edp / self.bound if self.edp is not None and self.bound else None

    def share(self, layer: LayerResult, key: str) -> float | None:
        """Share of the network's `energy_pj` or `cycles` in all repetitions of a layer."""
        total, one = self._total(key), getattr(layer, key)
        return layer.repeat * one / total if total and one is not None else None

    def _total(self, key: str) -> float | None:
        found = [getattr(layer, key) for layer in self.layers]
        if any(value is None for value in found):
            return None
        return math.fsum(layer.repeat * value for layer, value in zip(self.layers, found, strict=True))

    # -- as text

    @property
    def totals(self) -> dict[str, Any]:
        keys = ("complete", "energy_pj", "cycles", "seconds", "edp", "bound", "gap", "searches")
        return {key: getattr(self, key) for key in keys} | {"costs": self.costs}

    def rows(self) -> list[dict[str, Any]]:
        """A row per layer, with shares. A layer is `done` after a search by this run or an earlier run."""
        return [
            attrs.asdict(layer)
            | {"seconds": None if layer.cycles is None else layer.cycles / self.chip.clock_hz}
            | {"state": "done" if layer.state == "kept" else layer.state}
            | {f"share_of_{key}": self.share(layer, key) for key in ("energy_pj", "cycles")}
            for layer in self.layers
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        keys = ("network", "hardware", "technology", "space", "searcher", "budget", "seed", "warm_start")
        about = {key: getattr(self, key) for key in keys} | ({"lacks": list(self.lacks)} if self.lacks else {})
        about |= {"unplanned": self.unplanned} if self.unplanned else {}
        fused = {"fused": dict(self.fused)} if self.fused else {}
        if self.between[0]:
            about["between"] = dict(zip(("operations", "energy_pj", "cycles"), self.between, strict=True))
        return {**about, **self.totals, "layers": self.rows(), **fused}

    def totals_text(self) -> str:
        """The totals, in lines."""
        about = f"{self.network} on {self.hardware}: {sum(layer.repeat for layer in self.layers)} layers"
        each = f"{self.searches} searches of {self.budget:,} designs each   {self.searcher}, seed {self.seed}"
        lines = [f"{about}, {each}, warm start {self.warm_start}"]
        if not self.complete:
            return "\n".join([*lines, "totals   incomplete: not every layer has a design"])
        limits = ((layer.limit or "", layer.repeat * (layer.cycles or 0.0)) for layer in self.layers)
        lines += cost_lines(self.costs, ("total energy times total time", ", without fusion or overlap"), limits)
        if between := between_text([(self.network, self.hardware, self.between)]):
            lines.append(f"besides  {between}")
        if self.lacks:
            lines.append(f"without  {listed(self.lacks)}")
        if self.bound:
            proof = f"proven for these sizes in space {self.space}: {times(self.gap)}"
            lines.append(f"bound    {self.bound:.4g} pJ * cycles, {proof}")
        return "\n".join(lines)

    def _rows(self) -> tuple[list[list[str]], str]:
        """A row per layer, with sizes and densities, and a row for the totals; the alignment."""
        about = [["sizes", "densities"], *([layer.sizes, layer.densities] for layer in self.layers), ["", ""]]
        numbers = [HEAD, *(_cells(self, [layer]) for layer in self.layers), self._last_row()]
        rows = [[first, *more, *rest] for (first, *rest), more in zip(numbers, about, strict=True)]
        return rows, "<<<" + ">" * 9 + "<"

    def markdown(self) -> str:
        """A row per layer, with sizes and densities, and a row for the totals."""
        return markdown_table(*self._rows())

    _repr_markdown_ = markdown

    def to_latex(self) -> str:
        """The table of `markdown` for a paper, with booktabs."""
        return latex_table(*self._rows(), f"{self.network} on {self.hardware}")

    def groups(self) -> list[list[str]]:
        """The table for a terminal: like `markdown`, with a row for each group of equal layers."""
        groups = grouped(self.layers, lambda layer: layer.searched)
        return [HEAD, *(_cells(self, group) for group in groups.values()), self._last_row()]

    def _last_row(self) -> list[str]:
        name = "all layers" if self.complete else "incomplete"
        count = str(sum(layer.repeat for layer in self.layers))
        time = units.scaled_text(self.seconds, "s") if self.seconds is not None else "-"
        return [name, count, *_numbers(self.edp, self.energy_pj, self.cycles), times(self.gap), "", "", time, "", ""]

    def write(self, folder: Path | str, overwrite: bool = False) -> list[Path]:
        """Writes `layers.csv` with full precision, `layers.md`, and `network.json` with the totals; whole or not at
        all.

        Incomplete tables, with a layer without a design, do not replace complete tables (`cells.placed`). Tables of
        another network or search are only replaced with `overwrite` (`check_network`)."""
        table = self.to_dict()
        if self.complete and not overwrite:
            check_network(Path(folder), {key: table[key] for key in ABOUT}, [layer.layer for layer in self.layers])
        texts = (csv_text(self.rows()), self.markdown(), json.dumps(NETWORK.stamped(table), indent=2) + "\n")
        place = placed(Path(folder), NETWORK_FILES, partial=not self.complete, stays=bool(_complete(Path(folder))))
        return write_texts({place / name: text for name, text in zip(NETWORK_FILES, texts, strict=True)})


ABOUT = ("network", "hardware", "space", "searcher", "budget", "seed")


def check_network(folder: Path, about: Mapping[str, Any], layers: Sequence[str]) -> None:
    """`JournalMismatch` if a folder's complete result differs from `about` (keys of `ABOUT`) or has none of the layers.

    Common layers are compared one by one (`folder.check_result`)."""
    if table := _complete(folder):
        there, wanted = {key: table.get(key) for key in about}, dict(about)
        names = [row.get("layer") for row in table["layers"]]
        if not {*names} & {*layers}:
            there["layers"], wanted["layers"] = names, list(layers)
        named = f"{table.get('network')} on {table.get('hardware')}"
        check_file(folder / NETWORK_FILES[-1], named, there, wanted)


def _complete(folder: Path) -> dict[str, Any]:
    """The table of the complete result of a network in a folder, empty without a complete result."""
    try:
        table = read_result(folder / NETWORK_FILES[-1], NETWORK)
    except SearchError:
        return {}
    return table if table.get("complete") is True else {}


def between_text(found: Iterable[tuple[str, str, Sequence[float] | None]]) -> str:
    """`5 operations between layers, which move 979 uJ and 956,480 cycles (counted with --fuse)`; "" without operations.

    From networks, hardware and `between`; without amounts for many chips."""
    known = {(network, hardware): one for network, hardware, one in found if one and one[0]}
    networks = {network for network, _ in known}
    counts = {count for count, _, _ in known.values()}
    if not known:
        return ""
    if len(counts) > 1 or len(known) > AMOUNTS:
        return "operations between layers (counted with --fuse)"
    moved, (count,) = list[str](), counts
    for (network, hardware), (_, pj, cycles) in known.items():
        where = f" on {hardware}" * (len(known) > 1) + f" for {network}" * (len(networks) > 1)
        moved.append(f"{units.format_energy(pj)} and {units.format_count(cycles)} cycles{where}")
    verb = "operation between layers, which moves" if count == 1 else "operations between layers, which move"
    return f"{count} {verb} {', '.join(moved)} (counted with --fuse)"


def cost_lines(costs: Mapping[str, float], notes: Sequence[str], limits: Iterable[tuple[str, float]]) -> list[str]:
    """Lines of EDP and cycles, with a note each, energy, power, area if known, and limits.

    EDP in J * s compares chips of different clocks. `limits`: limit and cycles of each layer, without imbalance and stalls."""
    edp, cycles = f"{four_digits(costs['edp_js'])} J * s ({four_digits(costs['edp'])} pJ * cycles)", costs["cycles"]
    area = f", {costs['area_mm2']:,.3g} mm2" if costs.get("area_mm2") else ""
    each = grouped(limits, lambda one: limit_alone(one[0]).removeprefix("the "))
    shares = sorted(((math.fsum(part for _, part in some), name) for name, some in each.items() if name), reverse=True)
    told = [f"{name} in {percent(share / cycles)}" for share, name in shares]
    return [
        f"EDP      {edp}, {notes[0]}",
        f"energy   {units.format_energy(costs['energy_pj'])}",
        f"cycles   {units.format_count(cycles)}, {1e3 * costs['seconds']:,.4g} ms; one layer after the other{notes[1]}",
        f"chip     {units.scaled_text(costs['power_w'], 'W')} on the mean{area}",
        *([f"limits   {', '.join([f'{told[0]} of the cycles', *told[1:]])}"] if told else []),
    ]


AMOUNTS = 4
"""Largest number of chips with amounts in the text about operations between layers."""
HEAD = ["layer", "times", "EDP", "energy", "cycles", "gap", "of energy", "of cycles", "time", "units", "limited by"]


def _cells(result: NetworkResult, layers: Sequence[LayerResult]) -> list[str]:
    """Equal layers in a row: the first layer's name and numbers, and the shares of all."""
    first, more = layers[0], len(layers) - 1
    name = f"{first.layer} and {more} more" if more else first.layer
    shares = [[result.share(layer, key) for layer in layers] for key in ("energy_pj", "cycles")]
    numbers = _numbers(first.edp, first.energy_pj, first.cycles) if first.edp is not None else [first.state, "-", "-"]
    told = ["-" if None in share else percent(math.fsum(x for x in share if x), 1) for share in shares]
    time = "-" if first.cycles is None else units.scaled_text(first.cycles / float(result.chip.clock_hz), "s")
    used = "-" if first.units_used is None else percent(first.units_used)
    more_of = [time, used, (first.limit or "-").removeprefix("the ")]
    return [name, str(sum(layer.repeat for layer in layers)), *numbers, times(first.gap), *told, *more_of]


def _numbers(edp: float | None, energy_pj: float | None, cycles: float | None) -> list[str]:
    energy = "-" if energy_pj is None else units.format_energy(energy_pj)
    return [four_digits(edp), energy, "-" if cycles is None else f"{cycles:,.0f}"]
