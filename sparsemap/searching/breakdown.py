"""Where the energy of a design goes, by level and tensor, and what its cycles wait for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from ..errors import need

if TYPE_CHECKING:
    from ..problem.evaluation import Detail
    from ..problem.problem import Problem


@attrs.frozen
class LevelCosts:
    """A storage level, or the compute units."""

    name: str
    energy_pj: float | None
    by_tensor: Mapping[str, float]
    """pJ by tensor; empty for the compute units."""
    cycles: float | None


@attrs.frozen
class Breakdown:
    """Energy and cycles of one design by level; what a cost model does not tell is None or missing."""

    rows: tuple[LevelCosts, ...]
    energy_pj: float
    cycles: float
    charges: Mapping[str, float] = {}
    """pJ that no level and no compute spends, by the charge of the cost model; `charges` is what has no name."""

    @classmethod
    def of(cls, problem: Problem, detail: Detail, energy_pj: float, cycles: float) -> Breakdown:
        """From the detail of an evaluation: energies and cycles by level, of the computes and of charges."""
        by_tensor, by_level = detail.energy_pj, detail.level_cycles
        rows = []
        for index, level in enumerate(problem.levels):
            parts: dict[str, float] = {}
            if by_tensor is not None:
                kept = (t for t in range(len(problem.tensors)) if problem.stores(t, index))
                parts = {problem.tensors[t].name: float(np.asarray(by_tensor)[t, index, 0]) for t in kept}
            spent = sum(parts.values()) if by_tensor is not None else None
            rows.append(LevelCosts(level.name, spent, parts, _at(by_level, index, 0)))
        name = problem.compute_name
        spent, busy = _at(detail.compute_energy_pj, 0), _at(detail.compute_cycles, 0)
        rows.append(LevelCosts(name, spent, {}, busy))
        spends = [row.energy_pj for row in rows]
        if None in spends:
            return cls(tuple(rows), energy_pj, cycles)
        charges = {name: pj for name, each in detail.charges_pj.items() if (pj := float(np.ravel(each)[0]))}
        rest = energy_pj - math.fsum(pj for pj in (*spends, *charges.values()) if pj is not None)
        more = {"charges": rest} if rest > 1e-6 * energy_pj else {}
        return cls(tuple(rows), energy_pj, cycles, charges | more)

    @property
    def known(self) -> bool:
        """Whether the cost model tells energy or cycles of any level, of the computes, or of a charge."""
        return bool(self.charges) or any(x is not None for row in self.rows for x in (row.energy_pj, row.cycles))

    @property
    def charges_pj(self) -> float:
        """What no level and no compute spends; 0 where the cost model does not tell energies by level."""
        return math.fsum(self.charges.values())

    @property
    def limit(self) -> str:
        """What limits the cycles: a level's bandwidth, or the compute units; "" where the cost model does not say."""
        timed = [row for row in self.rows if row.cycles is not None]
        if not timed:
            return ""
        compute, levels = self.rows[-1], [row for row in timed if row is not self.rows[-1]]
        slowest = max(timed, key=lambda row: row.cycles or 0.0)
        if compute.cycles is not None and compute.cycles >= (slowest.cycles or 0.0):
            return f"the {compute.name} units"
        names = [row.name for row in levels if row.cycles == slowest.cycles]
        return f"the bandwidth of {' and '.join(names)}"

    def to_dict(self) -> dict[str, Any]:
        """What limits the cycles, a row per level, and pJ by charge, as plain data."""
        levels = [attrs.asdict(row) for row in self.rows]
        return {"limit": self.limit, "levels": levels, **({"charges": dict(self.charges)} if self.charges else {})}

    def to_pandas(self) -> Any:
        """A data frame with a row per level: pJ by tensor, `energy_pj`, and `cycles`."""
        pandas = need("pandas", "to_pandas()", "pandas")
        rows = [{**row.by_tensor, "energy_pj": row.energy_pj, "cycles": row.cycles} for row in self.rows]
        names = dict.fromkeys(key for row in rows for key in row if key not in ("energy_pj", "cycles"))
        index = pandas.Index([row.name for row in self.rows], name="level")
        return pandas.DataFrame(rows, index=index, columns=[*names, "energy_pj", "cycles"], dtype="float64")


def _at(values: Any, *index: int) -> float | None:
    return None if values is None else float(np.asarray(values)[index])
