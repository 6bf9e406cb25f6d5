"""What a cost model says about a batch, and the evaluator that runs decode, cost model and objective block by block."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from ..backend import HOST_BLOCK, NUMPY, Backend, backend_of
from ..backend import backend as find_backend
from ..errors import EvaluationError, SpecError
from .designs import Designs

if TYPE_CHECKING:
    from .problem import Problem

Array = np.ndarray

BAD_RESULT, PLUGIN_ERROR = "bad-result", "plugin-error"
PLUGIN_REASONS = (BAD_RESULT, PLUGIN_ERROR, "bad-format")
"""Reasons that tell of a plugin that broke its contract, not of a design; after a colon follows the piece's name."""
COLUMN_OF = {"format": "formats", "mechanism": "mechanisms"}
"""The column of designs that says which candidate of a kind they chose."""
MAX_FAILURES = 200
"""Calls that may fail to find out for which designs of a block a plugin raises; then all that are left count."""
BLOCK = HOST_BLOCK
"""Designs per block of NumPy: enough to hide the cost of a call, few enough for its temporaries to stay in cache."""


@attrs.frozen(eq=False)
class Evaluation:
    """Energy, cycles and validity of B designs."""

    energy_pj: Array
    """(B,) float64, pJ; infinity where the design is invalid."""
    cycles: Array
    """(B,) float64, clock cycles; infinity where the design is invalid."""
    reasons: Array
    """(B,) uint64, bit set over `reason_names`; 0: valid."""
    reason_names: tuple[str, ...]
    detail: Mapping[str, Any] | None = None
    """On request: traffic, metadata and energies by level and tensor, batch last."""

    def __len__(self) -> int:
        return len(self.reasons)

    @property
    def valid(self) -> Array:
        """(B,) bool."""
        return self.reasons == 0

    @property
    def edp(self) -> Array:
        """Energy-delay product, (B,) pJ * cycles."""
        return self.energy_pj * self.cycles

    def reasons_of(self, row: int) -> tuple[str, ...]:
        bits = int(self.reasons[row])
        return tuple(name for i, name in enumerate(self.reason_names) if bits >> i & 1)

    def reject_counts(self) -> dict[str, int]:
        """How many designs each reason rejects; a design may count for several."""
        counts = {
            name: int(np.count_nonzero((self.reasons >> np.uint64(i)) & np.uint64(1)))
            for i, name in enumerate(self.reason_names)
        }
        return {name: count for name, count in counts.items() if count}

    @staticmethod
    def join(parts: list[Evaluation]) -> Evaluation:
        if len(parts) == 1:
            return parts[0]
        names = max((p.reason_names for p in parts), key=len)  # a block with bad results has a name more
        names += tuple(dict.fromkeys(name for p in parts for name in p.reason_names if name not in names))
        return Evaluation(
            np.concatenate([p.energy_pj for p in parts]),
            np.concatenate([p.cycles for p in parts]),
            np.concatenate([p._reasons_over(names) for p in parts]),
            names,
        )

    def _reasons_over(self, names: tuple[str, ...]) -> Array:
        """`reasons` as bits over other names, which hold all of its own."""
        if names[: len(self.reason_names)] == self.reason_names:
            return self.reasons
        moved = np.zeros_like(self.reasons)
        for place, name in enumerate(self.reason_names):
            bit = (self.reasons >> np.uint64(place)) & np.uint64(1)
            moved |= bit << np.uint64(names.index(name))
        return moved


class BadPiece(EvaluationError):
    """A piece that designs choose, such as a format, broke its contract."""

    def __init__(self, kind: str, name: str, text: str) -> None:
        self.kind, self.name = kind, name
        super().__init__(kind, name, text)

    def __str__(self) -> str:
        return f"{self.kind} '{self.name}' {self.args[2]}"

    @property
    def reason(self) -> str:
        return f"bad-{self.kind}:{self.name}"


@attrs.define(eq=False)
class Evaluator:
    """Decode, cost model and objective for one problem, in blocks; results do not depend on the block size.

    Another `backend` than NumPy needs a cost model that can run on it; `block` is then by default what suits it.
    """

    problem: Problem
    block: int = 0
    backend: str | Backend = "numpy"
    xp: Backend = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.xp = find_backend(self.backend)
        self.block = self.block or self.xp.block
        if self.xp is not NUMPY and not self.problem.cost_model.any_backend:
            name = _name(self.problem)
            raise EvaluationError(f"cost model '{name}' runs on NumPy only, not on backend '{self.backend}'")

    def evaluate(self, genomes: Array, tolerant: bool = False) -> Evaluation:
        """Evaluates genomes (B, G) int64; `EvaluationError` if their shape or a gene is out of bounds.

        With another backend than NumPy they may be arrays of its library, of any integer type.

        A plugin that raises ends the evaluation; if `tolerant`, the designs it raises for become invalid with the
        reason "plugin-error", or "bad-result" where it returned arrays of a wrong shape or type. Of a format that
        breaks its contract ("bad-format") they are those of the block that use it.
        """
        genomes = self.problem.space.check(genomes) if self.xp is NUMPY else self._sent(genomes)
        evaluate = self._tolerant if tolerant else self._block
        parts = [evaluate(genomes[i : i + self.block]) for i in range(0, len(genomes), self.block)]
        return Evaluation.join(parts) if parts else self._block(genomes)

    def evaluate_designs(self, designs: Designs, detail: bool = False) -> Evaluation:
        """Evaluates decoded designs in one block."""
        return guard(self.problem.cost_model.evaluate(designs, self.problem, detail), len(designs), self.problem)

    def score(self, evaluation: Evaluation) -> Array:
        """(B,) float64 by the problem's objective; invalid designs and NaN are infinity."""
        with np.errstate(all="ignore"):
            scores = np.asarray(self.problem.objective.score(evaluation), dtype=np.float64)
        if scores.shape != evaluation.reasons.shape:
            raise EvaluationError(
                f"objective '{self.problem.objective.name}' returned shape {scores.shape}, "
                f"expected {evaluation.reasons.shape}"
            )
        return np.where(evaluation.valid & ~np.isnan(scores), scores, np.inf)

    def values(self, evaluation: Evaluation) -> Array:
        """(B, M) float64 by the problem's objective; rows of invalid designs and of those with NaN are infinity."""
        objective = self.problem.objective
        with np.errstate(all="ignore"):
            values = np.asarray(objective.values(evaluation), dtype=np.float64)
        expected = (len(evaluation), len(objective.names))
        if values.shape != expected:
            raise EvaluationError(
                f"objective '{objective.name}' returned values of shape {values.shape}, expected {expected}"
            )
        return np.where((evaluation.valid & ~np.isnan(values).any(axis=1))[:, None], values, np.inf)

    def _sent(self, genomes: Any) -> Any:
        """Genomes on the device, checked there."""
        xp, space = self.xp, self.problem.space
        if isinstance(genomes, list | tuple | np.ndarray):
            genomes = np.asarray(genomes)
            if genomes.ndim != 2 or genomes.shape[1] != len(space) or genomes.dtype.kind not in "iu":
                genomes = space.check(genomes)
            array = xp.asarray(genomes.astype(np.int64) if genomes.dtype.kind == "u" else genomes)
        elif backend_of(genomes) is not xp or genomes.ndim != 2 or genomes.shape[1] != len(space):
            array = xp.asarray(space.check(backend_of(genomes).to_host(genomes)))
        else:
            array = genomes
        array = xp.astype(array, xp.int64)
        if ((array < xp.constant(space.low)) | (array > xp.constant(space.high))).any():
            space.check(xp.to_host(array))
        return array

    def _block(self, genomes: Array) -> Evaluation:
        return self.evaluate_designs(self.problem.space.decode(genomes))

    def _tolerant(self, genomes: Array) -> Evaluation:
        if self.xp is not NUMPY:
            try:
                return self._block(genomes)
            except Exception:  # once more with NumPy, which finds out for which designs
                genomes = self.xp.to_host(genomes)
        return self._tolerant_on_host(genomes)

    def _tolerant_on_host(self, genomes: Array) -> Evaluation:
        """One block; the designs for which a plugin raises are found by halving, or by what they use."""
        parts: list[Evaluation] = []
        places: list[Array] = []
        rest, failures = [np.arange(len(genomes))], 0
        while rest:
            rows = rest.pop()
            try:
                found = self._block(genomes[rows])
            except SpecError:
                raise  # not a plugin's fault, and true of every design
            except Exception as error:
                failures += 1
                users = self._users(genomes[rows], error)
                if users.any():
                    rest += [rows[~users]] if not users.all() else []
                    rows = rows[users]
                elif len(rows) > 1 and failures < MAX_FAILURES:
                    rest += [rows[len(rows) // 2 :], rows[: len(rows) // 2]]
                    continue
                found = self._failed(len(rows), error)
            parts.append(found)
            places.append(rows)
        joined, order = Evaluation.join(parts), np.argsort(np.concatenate(places))
        return Evaluation(joined.energy_pj[order], joined.cycles[order], joined.reasons[order], joined.reason_names)

    def _users(self, genomes: Array, error: Exception) -> Array:
        """(B,) bool, the designs that chose the piece that an error names; none if it names none."""
        users = np.zeros(len(genomes), dtype=bool)
        if isinstance(error, BadPiece) and error.kind in COLUMN_OF:
            chosen = self.problem.space.decode(genomes).columns.get(COLUMN_OF[error.kind])
            names = [piece.name or piece.type_name for piece in self.problem.candidates(error.kind)]
            if chosen is not None and error.name in names:
                users = (chosen == names.index(error.name)).reshape(-1, len(genomes)).any(axis=0)
        return users

    def _failed(self, count: int, error: Exception) -> Evaluation:
        """Designs that cannot be evaluated."""
        what = BAD_RESULT if isinstance(error, EvaluationError) else PLUGIN_ERROR
        name = error.reason if isinstance(error, BadPiece) else f"{what}:{_name(self.problem)}"
        infinite = np.full(count, np.inf)
        return Evaluation(infinite, infinite, np.ones(count, dtype=np.uint64), (name,))


def guard(evaluation: Evaluation, count: int, problem: Problem) -> Evaluation:
    """Checks what a cost model returned; designs with NaN, infinite or negative results become "bad-result"."""
    name = _name(problem)
    if not isinstance(evaluation, Evaluation):
        raise EvaluationError(f"cost model '{name}' returned {type(evaluation).__name__}, expected an Evaluation")
    for field, kinds in (("energy_pj", "fiu"), ("cycles", "fiu"), ("reasons", "u")):
        value = getattr(evaluation, field)
        if getattr(value, "shape", None) != (count,):
            raise EvaluationError(
                f"cost model '{name}': {field} has shape {getattr(value, 'shape', None)}, expected ({count},)"
            )
        if value.dtype.kind not in kinds:
            expected = "uint64" if kinds == "u" else "numbers"
            raise EvaluationError(f"cost model '{name}': {field} has type {value.dtype}, expected {expected}")
    valid = evaluation.reasons == 0
    sane = (evaluation.energy_pj >= 0) & (evaluation.cycles >= 0)
    sane &= (evaluation.energy_pj < np.inf) & (evaluation.cycles < np.inf)
    if not (valid & ~sane).any():
        return evaluation
    names = evaluation.reason_names
    bad = f"{BAD_RESULT}:{name}"
    if bad not in names:
        names = (*names, bad)
    if len(names) > 64:
        raise EvaluationError(f"cost model '{name}' has {len(names) - 1} reasons, and NaN or infinite results as well")
    reasons = evaluation.reasons | np.where(valid & ~sane, np.uint64(1) << np.uint64(names.index(bad)), np.uint64(0))
    return attrs.evolve(
        evaluation,
        energy_pj=np.where(reasons == 0, evaluation.energy_pj, np.inf),
        cycles=np.where(reasons == 0, evaluation.cycles, np.inf),
        reasons=reasons,
        reason_names=names,
    )


def broken(evaluation: Evaluation) -> dict[str, int]:
    """How many designs were rejected because a plugin broke its contract, by reason."""
    return {
        name: count for name, count in evaluation.reject_counts().items() if name.partition(":")[0] in PLUGIN_REASONS
    }


def _name(problem: Problem) -> str:
    return problem.cost_model.name or problem.cost_model.type_name
