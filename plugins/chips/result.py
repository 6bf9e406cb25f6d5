"""Result of `sparsemap design`: the chip, its costs, and comparisons."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from sparsemap.csv_files import csv_text
from sparsemap.file_formats import CHIP, SPEC
from sparsemap.files import four_digits, percent, times
from sparsemap.spec import toml_text
from sparsemap.spec.units import format_energy, scaled_text
from sparsemap.writing import write_texts

CHIP_FILE, RESULT_FILE, FRONT_FILE, LAYERS_FILE = "chip.toml", "design.json", "front.csv", "layers.csv"
EXECUTED_FILE = "executed.csv"
TOTALS = ("energy_pj", "cycles", "seconds")


@attrs.frozen(kw_only=True)
class ChipResult:
    """The best chip for networks. Energies in pJ and cycles of a network are sums over layers."""

    networks: tuple[str, ...]
    hardware: Mapping[str, Any]
    """Hardware spec of the chip, with the units in use."""
    final: Mapping[str, Any]
    """Totals, area in mm2 and layers of the chip, searched again with four times the designs."""
    searched: Mapping[str, Any]
    """Totals, area and layers of the chip during the search of chips."""
    reference: Mapping[str, Any]
    """The given hardware with formats and units chosen freely by every layer, at no cost; never worse than `platform`."""
    platform: Mapping[str, Any]
    """The given hardware with its layers' most used units, searched as long as the chip; empty: outside the space."""
    tried: tuple[Mapping[str, Any], ...]
    executed: tuple[Mapping[str, Any], ...]
    """Designs on sampled tensors: file, energy and cycles over the claimed, or the refusal."""
    parts_mm2: Mapping[str, float]
    """Area of the chip by level, compute units and sparse units."""
    base: str
    objective: str
    share: str
    fuse: bool
    folders: tuple[str, ...]
    """Folders of the networks, with layers in the form of `sparsemap run`."""
    budget: int
    layer_budget: int
    seed: int
    searcher: str
    constraints: tuple[str, ...] = ()
    """Constraints added to the hardware's."""
    judge: str = "sum"
    """One of `judge.JUDGES`."""
    losses: Mapping[str, float] = attrs.field(factory=dict)
    """Judge "worst": objective of one run over the same on `reference`, by network."""
    own: Mapping[str, Mapping[str, Any]]
    """By network, the best chip tried for it alone: its sizes, a `name` by those that differ, area, designs a layer, and
    `over_own`, the objective of one run on the chip over that on its own."""

    @property
    def edp_js(self) -> float:
        """Energy times time of all layers, J * s."""
        return edp_js(self.final)

    @property
    def valid(self) -> list[Mapping[str, Any]]:
        """Valid chips with all layers searched."""
        return [row for row in self.tried if not row["reason"] and "stopped" not in row]

    @property
    def stopped(self) -> int:
        """Number of chips stopped early, behind the best."""
        return sum("stopped" in row for row in self.tried)

    @property
    def front(self) -> list[Mapping[str, Any]]:
        """Pareto front of chips in EDP (`height`) and area, smallest first; the best chip counts with its longer search."""
        found: list[Mapping[str, Any]] = []
        final = {**self.final, "set": sizes(self.searched)}
        for row in sorted([*self.valid, final], key=lambda row: (row["area_mm2"], self.height(row))):
            if not found or self.height(row) < self.height(found[-1]):
                found.append(row)
        return found

    def height(self, row: Mapping[str, Any]) -> float:
        """EDP, or the largest ratio of a network for the judge "worst"."""
        return [*self.judged(row).values()][-1]

    def judged(self, row: Mapping[str, Any]) -> dict[str, float]:
        """EDP of a chip in J s; for the judge "worst" also the largest ratio of a network."""
        return {"edp_js": edp_js(row)} | ({"worst": row["value"]} if self.losses else {})

    def rows(self) -> list[dict[str, Any]]:
        """A row per distinct layer: costs of all its runs on the chip, relative to free choices on the given hardware.

        With plans, a further row holds the costs between layers, so that the rows add up."""
        rows, between = [], [_between(self.final), _between(self.reference)]
        for mine, free in [*zip(self.final["layers"], self.reference["layers"], strict=True), between]:
            row = {key: mine[key] for key in ("layer", "times", "energy_pj", "cycles")}
            row["share_of_energy"] = mine["energy_pj"] / self.final["energy_pj"]
            row["share_of_cycles"] = mine["cycles"] / self.final["cycles"]
            other = free["energy_pj"] * free["cycles"]
            row["edp_over_free"] = mine["energy_pj"] * mine["cycles"] / other if other else None
            rows.append(row)
        return rows if between[0]["cycles"] or between[0]["energy_pj"] else rows[:-1]

    def by_network(self) -> list[dict[str, Any]]:
        """A row per network: runs in the totals, and costs of one run, relative to free choices on the given hardware."""
        rows, clock_hz = [], self.final["cycles"] / self.final["seconds"]
        for name, mine in self.final["networks"].items():
            free, costs = self.reference["networks"][name], {key: mine[key] for key in TOTALS[:2]}
            edp_js = 1e-12 * mine["energy_pj"] * mine["cycles"] / clock_hz
            over = mine["energy_pj"] * mine["cycles"] / (free["energy_pj"] * free["cycles"])
            costs |= {"seconds": mine["cycles"] / clock_hz, "edp_js": edp_js, "edp_over_free": over}
            rows.append({"network": name, "runs": mine["runs"], **costs, "own": dict(self.own[name])})
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        keys = "networks base objective share fuse folders budget layer_budget seed searcher constraints judge"
        return {
            **{key: getattr(self, key) for key in keys.split()},
            **_costs(self.final, "area_mm2", "units_mm2"),
            **self.judged(self.final),
            **({"losses": dict(self.losses)} if self.losses else {}),
            "power_w": self.final["energy_pj"] * 1e-12 / self.final["seconds"],
            "reference": _costs(self.reference),
            **(
                {"platform": _costs(self.platform, "area_mm2", "allowed") | self.judged(self.platform)}
                if self.platform
                else {}
            ),
            "searched": _costs(self.searched, "area_mm2"),
            "units": {key: self.units(key) for key in self.final["units"]},
            "parts_mm2": dict(self.parts_mm2),
            "chips": len(self.tried),
            "valid": len(self.valid),
            "stopped": self.stopped,
            **({"executed": self.needed} if self.executed else {}),
            "tried": [
                {**self.judged(row), "area_mm2": row["area_mm2"], "power_w": row["power_w"], "set": sizes(row)}
                for row in self.valid
            ],
            "by_network": self.by_network(),
            "layers": self.rows(),
            "hardware": dict(self.hardware),
        }

    def write(self, folder: Path) -> list[Path]:
        """Write `chip.toml`, a usable hardware; `design.json`, `layers.csv`, and the front in `front.csv`."""
        keys = (*TOTALS, "area_mm2")
        front = [{**self.judged(row), **{key: row[key] for key in keys}, **sizes(row)} for row in self.front]
        texts = {
            CHIP_FILE: toml_text.dumps(SPEC.stamped(self.hardware)),
            RESULT_FILE: json.dumps(CHIP.stamped(self.to_dict()), indent=2) + "\n",
            LAYERS_FILE: csv_text(self.rows()),
            FRONT_FILE: csv_text(front),
        }
        if self.executed:
            texts[EXECUTED_FILE] = csv_text(self.executed)
        return write_texts({folder / name: text for name, text in texts.items()})

    def text(self) -> list[str]:
        """Printed lines of the command, without tables."""
        final, other, beside, broken = self.final, self.reference, [], self.final["broken"]
        power = final["energy_pj"] * 1e-12 / final["seconds"]
        if self.platform:
            edp, rule = edp_js(self.platform), "" if self.platform["allowed"] else ", which breaks a constraint"
            text = f"{edp:.4g} J * s at {self.platform['area_mm2']:.4g} mm2{rule}"
            less = f"the chip has {percent(1.0 - self.edp_js / edp, 1)} less"
            beside = [f"           {self.base}, all layers with the same units: {text}; {less}"]
        executed = [f"executed   none: {row['refused']}" for row in self.executed[:1]]
        if (done := self.needed)["designs"]:
            needs = f"they need {done['energy_pj']:.3f} of the energy and {done['cycles']:.3f} of the cycles claimed"
            text = f"executed   {done['designs']} of {done['of']} designs, on sampled tensors"
            executed = [f"{text}: {needs}, on the geometric mean"]
        return [
            *([f"BROKEN     {broken}, by the chip searched again with more designs", ""] if broken else ()),
            f"{' + '.join(self.networks)}: a chip from the space of {self.base}",
            "",
            f"EDP        {self.edp_js:.4g} J * s",
            f"energy     {format_energy(final['energy_pj'])}",
            f"time       {scaled_text(final['seconds'], 's')}, {final['cycles']:,.0f} cycles",
            f"chip       {final['area_mm2']:.4g} mm2, {final['units_mm2']:.3g} of it sparse units; {power:.3g} W",
            f"search     {len(self.tried):,} chips, {self.layer_budget:,} designs a layer   {self.searcher}, seed {self.seed}",
            f"           {len(self.valid):,} chips searched to their end, {self.stopped:,} stopped that had lost",
            f"compared   {self.base}, each layer with any formats and units: {edp_js(other):.4g} J * s, "
            f"{times(edp_js(other) / self.edp_js)} of the chip's",
            *beside,
            *self._loser(),
            "judged     by plans of the networks, with tensors between layers on chip"
            if self.fuse
            else "judged     layer by layer: tensors between layers go through the outermost level",
            *executed,
            "",
            *(f"{key:<26} {value}" for key, value in sizes(self.searched).items()),
            *(f"{name:<26} {', '.join(of)}" for key in self.final["units"] for name, of in self._named(key)),
        ]

    def _loser(self) -> list[str]:
        if not self.losses:
            return []
        name = max(self.losses, key=self.losses.__getitem__)
        where = f"its {self.objective} on {self.base}, each layer with any formats and units"
        return [f"judged     by the network that loses most: {name}, {times(self.losses[name])} {where}"]

    @property
    def needed(self) -> dict[str, Any]:
        """Executed costs over claims, geometric mean, and the number of executed designs."""
        done = [row for row in self.executed if not row["refused"]]
        means = {key: math.exp(math.fsum(math.log(row[key]) for row in done) / len(done)) for key in TOTALS[:2] if done}
        return {"designs": len(done), "of": len(self.executed), **means}

    def units(self, key: str) -> Mapping[str, Sequence[str]]:
        found: Mapping[str, Mapping[str, Sequence[str]]] = self.hardware.get("units") or self.final["units"]
        return found.get(key, {})

    def _named(self, key: str) -> list[tuple[str, Sequence[str]]]:
        what = "skips at" if key == "mechanisms" else "decodes"
        return [(f"{what} {name}", of) for name, of in self.units(key).items() if of]

    def networks_table(self) -> list[list[str]]:
        """The networks, one run each."""
        table = [["network", "runs", "energy", "cycles", "time", "EDP in J * s", "EDP, chip/own"]]
        table[0] += ["chip/best tried", "best tried for it", "designs a layer"]
        for row in self.by_network():
            cost = format_energy(row["energy_pj"]), f"{row['cycles']:,.0f}", scaled_text(row["seconds"], "s")
            over = four_digits(row["edp_over_free"])
            own = four_digits(row["own"]["over_own"]), row["own"]["name"], f"{row['own']['designs']:,}"
            about = f"{row['edp_js']:.4g}", over, *own
            table.append([row["network"], f"{row['runs']:g}", *cost, *about])
        return table

    def table(self) -> list[list[str]]:
        """The layers, most energy first."""
        head = ["layer", "times", "energy", "cycles", "of energy", "of cycles", "EDP, chip/own"]
        table = [head]
        for row in sorted(self.rows(), key=lambda row: -row["share_of_energy"]):
            shares = (percent(row[key], 1) for key in ("share_of_energy", "share_of_cycles"))
            over = "-" if row["edp_over_free"] is None else four_digits(row["edp_over_free"])
            costs = format_energy(row["energy_pj"]), f"{row['cycles']:,.0f}"
            table.append([row["layer"], f"{row['times']:g}", *costs, *shares, over])
        return table


def _between(row: Mapping[str, Any]) -> dict[str, Any]:
    """Costs of a plan beside the searched layers: operations between layers, and conversions."""
    rest = {key: row[key] - math.fsum(layer[key] for layer in row["layers"]) for key in TOTALS[:2]}
    told = {key: x if x > 1e-9 * row[key] else 0.0 for key, x in rest.items()}
    return {"layer": "between the layers", "times": 1, **told}


def edp_js(row: Mapping[str, Any]) -> float:
    """EDP in J * s of an evaluated chip."""
    return float(row["energy_pj"]) * 1e-12 * float(row["seconds"]) if row.get("seconds") else math.inf


def _costs(row: Mapping[str, Any], *more: str) -> dict[str, Any]:
    return {key: row[key] for key in (*TOTALS, *more)} | {"edp_js": edp_js(row)}


def sizes(row: Mapping[str, Any]) -> dict[str, Any]:
    """Sizes set by the search, by key."""
    return dict(row.get("set", {}))
