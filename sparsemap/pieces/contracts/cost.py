"""Cost models, charges and objectives: costs of designs, and the score to minimise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import attrs
import numpy as np

from .base import Array, PerDesign, Piece

if TYPE_CHECKING:
    from ...problem.chip import Chip
    from ...problem.designs import Designs
    from ...problem.evaluation import Evaluation
    from ...problem.problem import Problem
    from ...problem.scenarios import Scenario
    from .counts import ChipCounts


@attrs.frozen(eq=False)
class Classes:
    """N classes of designs with a lower bound for each class."""

    least: Evaluation
    """Lower bounds in N rows, or several times N: a design of class i is at or above some row of i, N + i, .. in every cost."""
    of: Callable[[Designs], Array]
    """Class (B,) of each of B designs; -1 if no similar design is valid."""
    moved: Callable[[Designs, Array], Mapping[str, Array]]
    """Moves B designs into classes (B,) with minimal changes; returns the changed columns of `Designs`."""
    hold: Callable[[int], bool]
    """Whether a class may hold any design, by a closer look than for `least`; False is proved."""
    reads: tuple[str, ...]
    """Columns read to find the class of a design."""
    labels: Mapping[str, Array]
    """Common features of the designs of each class, (N,) by name, for people and for a checker of proofs."""
    promising: Callable[[Designs, Array, np.random.Generator], Mapping[str, Array]] | None = None
    """Changes B designs, with their classes (B,), to promising designs of the same class; returns the changed columns."""


@attrs.frozen(eq=False)
class Outlook:
    """Forecasts of costs for other dimension sizes; no bounds."""

    least: Evaluation
    """Rows of costs; no sizes cost much less."""
    of: Callable[[Sequence[Mapping[str, int]]], list[Evaluation] | None]
    """For each set of sizes of all dimensions, rows near the least costs; None: not known."""


@attrs.frozen(kw_only=True)
class CostModel(Piece):
    """Energy, cycles and reasons of a batch of designs."""

    kind: ClassVar[str] = "cost-model"
    needs: ClassVar[tuple[str, ...]] = ()
    """Columns of `Designs` read by `evaluate`."""
    costs: ClassVar[tuple[str, ...]] = ("energy_pj", "cycles")
    """Names of the costs from `evaluate`, such as "dollars": energy and cycles, and any others, each at least 0."""

    def reasons(self, problem: Problem) -> Mapping[str, str]:
        """Meaning of the names in `Evaluation.reason_names`, in a few words for reports; by default empty."""
        return {}

    def evaluate(self, designs: Designs, problem: Problem, detail: bool = False) -> Evaluation:
        """Evaluates all designs; `detail` requests `Evaluation.detail`, as far as the model knows the details."""
        raise NotImplementedError

    def forget(self) -> None:
        """Empties the tables shared by problems of a process. Costs never depend on the contents of the tables; probes
        empty them."""

    def copies(self, problem: Problem) -> Array | None:
        """(T, S) tiles of a tensor to hold at once at each level, such as two where double-buffered. None: one tile.
        Read by segments to make tiles fit."""
        return None

    def lower_bound(self, problem: Problem) -> Evaluation | None:
        """Lower bound in rows of costs: every design of the problem's space is at or above some row in all costs. A
        single row is a bound on each cost. None: not known."""
        return None

    def outlook(self, problem: Problem) -> Outlook | None:
        """Forecast of costs at other dimension sizes, none above the problem's, for the encoding's choice of padded
        sizes. Has to be quick. None: not known."""
        return None

    def classes(self, problem: Problem) -> Classes | None:
        """Classes of the designs by their dominant costs, each class with a bound. Searchers may begin with the best
        classes, and leave out classes without a chance of a better design. None: not known."""
        return None


@attrs.frozen(kw_only=True)
class Charge(Piece):
    """A hardware cost missing from a plain cost model, such as refreshing off-chip memory.

    A cost model with a field `charges` asks each charge for energy and cycles. Both depend on counts and chip alone, so
    charges commute, and an execution (`sparsemap verify`) pays the same charges. Methods not overridden charge zero."""

    kind: ClassVar[str] = "charge"
    of_metadata: ClassVar[bool] = False
    """Whether the charge is for metadata; it disappears when metadata are taken to be free."""

    def pj(self, counts: ChipCounts, chip: Chip) -> PerDesign | float:
        """(B,) pJ, finite and not negative, added to the energy of the designs; a `float` for all alike."""
        return 0.0

    def cycles(self, counts: ChipCounts, chip: Chip) -> PerDesign | float:
        """(B,) least cycles of the designs, finite and not negative: a design takes the maximum of its own cycles
        (`counts.cycles`) and the cycles of every charge."""
        return 0.0

    def least_pj(self, problem: Problem, cycles: float) -> float:
        """Least pJ charged to any design of a problem with a run time of at least `cycles`, for lower bounds."""
        return 0.0

    def least_cycles(self, problem: Problem) -> float:
        """Least cycles charged to any design of a problem, for lower bounds."""
        return 0.0


@attrs.frozen(kw_only=True)
class Objective(Piece):
    """What a search minimises: one score or, with several `names`, several values with their trade-offs."""

    kind: ClassVar[str] = "objective"
    searcher: ClassVar[str] = ""
    """Searcher for this objective if the user names none; empty: the default searcher."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the M values."""
        return (self.name or self.type_name,)

    @property
    def units(self) -> tuple[str, ...]:
        """Unit of each of the M values, such as "pJ"; "" for none or unknown."""
        return ("",) * len(self.names)

    @property
    def unit(self) -> str:
        """Unit of the score; by default the unit of the product of all values."""
        return " * ".join(self.units) if all(self.units) else ""

    @property
    def costs(self) -> tuple[str, ...]:
        """Names of the costs in the score, each from the cost model or from `problem.costs.DERIVED`; by default not
        known."""
        return ()

    @property
    def monotone(self) -> bool:
        """Whether the score never falls when a model cost grows; a bound on the costs is then a bound on the score."""
        return False

    @property
    def scenarios(self) -> Mapping[str, Scenario]:
        """Variants of the problem by name, for additional evaluations of designs: `Evaluation.scenarios` has the
        results. Read from the objective returned by `of`."""
        return {}

    def of(self, problem: Problem) -> Objective:
        """The objective for the designs of this problem, with all it has to know of the problem; by default itself."""
        return self

    def score(self, evaluation: Evaluation) -> Array:
        """(B,) float64, lower is better. Invalid designs are set to infinity by the caller.

        With several values, a single number for progress and for the choice of the best design."""
        raise NotImplementedError

    @property
    def opens(self) -> bool:
        """Whether a search has a first part scored by `opening`, and then restarts from the designs with the best
        scores. The final result is no worse than these designs. Read from the objective returned by `of`."""
        return False

    def opening(self, evaluation: Evaluation) -> Array:
        """(B,) float64, replaces the score for searchers during the first part of a search."""
        return self.score(evaluation)

    def values(self, evaluation: Evaluation) -> Array:
        """(B, M) float64, each to be minimised; by default the score alone."""
        return self.score(evaluation)[:, None]
