"""What a design costs, and what a search minimises."""

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
    """N classes of designs with what no design of each can beat."""

    least: Evaluation
    """N rows, or several times N: every design of class i is at or above one of the rows i, N + i, .. in every cost."""
    of: Callable[[Designs], Array]
    """B designs to (B,) the class of each; -1: no design like this is valid."""
    moved: Callable[[Designs, Array], Mapping[str, Array]]
    """B designs, and (B,) classes, to the columns of `Designs` that have to change, changed as little as possible."""
    hold: Callable[[int], bool]
    """Whether a class holds any design after all, looked at more closely than for `least`; False is proved."""
    reads: tuple[str, ...]
    """The columns that tell the class of a design."""
    labels: Mapping[str, Array]
    """By name (N,), what the designs of a class have in common, for people and for whoever checks a proof."""
    promising: Callable[[Designs, Array, np.random.Generator], Mapping[str, Array]] | None = None
    """B designs, and (B,) the class that each is in, to the columns that change for what promises to be good within it."""


@attrs.frozen(eq=False)
class Outlook:
    """What designs may cost if the dimensions had other sizes: forecasts, no bounds."""

    least: Evaluation
    """Rows that no sizes are much below."""
    of: Callable[[Sequence[Mapping[str, int]]], list[Evaluation] | None]
    """Sizes of all dimensions, several times, to rows near the least for each; None: not known."""


@attrs.frozen(kw_only=True)
class CostModel(Piece):
    """Energy, cycles and reasons of a batch of designs."""

    kind: ClassVar[str] = "cost-model"
    needs: ClassVar[tuple[str, ...]] = ()
    """The columns of `Designs` that evaluate reads."""
    costs: ClassVar[tuple[str, ...]] = ("energy_pj", "cycles")
    """Names of the costs that evaluate gives, such as "dollars": these two and any others, each from 0 on."""

    def reasons(self, problem: Problem) -> Mapping[str, str]:
        """What the names in `Evaluation.reason_names` mean, in a few words for reports; by default nothing."""
        return {}

    def evaluate(self, designs: Designs, problem: Problem, detail: bool = False) -> Evaluation:
        """Evaluates all designs; `detail` asks for `Evaluation.detail`, of which a model gives what it knows."""
        raise NotImplementedError

    def forget(self) -> None:
        """Empties the tables that problems of a process share. Costs never depend on their contents; probes empty them."""

    def copies(self, problem: Problem) -> Array | None:
        """(T, S): so many of its tiles of a tensor a level needs room for, such as two where it is double-buffered.
        None: one. Segments that make tiles fit read it."""
        return None

    def lower_bound(self, problem: Problem) -> Evaluation | None:
        """Costs, a set of them per row, such that every design of the problem's space is at or above one row in all; a
        single row is what no design can beat in any. None: not known."""
        return None

    def outlook(self, problem: Problem) -> Outlook | None:
        """What designs may cost if the dimensions have other sizes than the problem's, none larger, so that an encoding can
        choose what to lay them out as. It has to be quick. None: not known."""
        return None

    def classes(self, problem: Problem) -> Classes | None:
        """Classes that the designs fall into by what costs most, each with a bound of its own: searchers may begin with
        the best, and leave out designs whose class cannot have a better one. None: not known."""
        return None


@attrs.frozen(kw_only=True)
class Charge(Piece):
    """An effect that hardware pays for and a plain cost model leaves out, such as refreshing off-chip memory.

    A cost model with a field `charges` asks each for energy and cycles. Both are functions of counts and chip alone, so
    that the order of charges cannot matter, and an execution (`sparsemap verify`) pays for them as well. What a charge
    does not override is zero.
    """

    kind: ClassVar[str] = "charge"
    of_metadata: ClassVar[bool] = False
    """Whether what it charges is metadata, which goes when metadata are taken to be free."""

    def pj(self, counts: ChipCounts, chip: Chip) -> PerDesign | float:
        """(B,) pJ, finite and not negative, that are added to the energy of the designs; a `float` for all alike."""
        return 0.0

    def cycles(self, counts: ChipCounts, chip: Chip) -> PerDesign | float:
        """(B,) cycles, finite and not negative, below which no design ends: a design takes the most of its own
        (`counts.cycles`) and of what each charge returns."""
        return 0.0

    def least_pj(self, problem: Problem, cycles: float) -> float:
        """pJ that it adds to every design of a problem that runs for `cycles` or longer: what a lower bound may count."""
        return 0.0

    def least_cycles(self, problem: Problem) -> float:
        """Cycles that every design of a problem takes because of it: what a lower bound may count."""
        return 0.0


@attrs.frozen(kw_only=True)
class Objective(Piece):
    """What a search minimises: one score or, with several `names`, several values whose trade-offs are kept."""

    kind: ClassVar[str] = "objective"
    searcher: ClassVar[str] = ""
    """Name of the searcher used where none is given; empty: the default one."""

    @property
    def names(self) -> tuple[str, ...]:
        """What each of the M values is called."""
        return (self.name or self.type_name,)

    @property
    def units(self) -> tuple[str, ...]:
        """Unit of each of the M values, such as "pJ"; "" where there is none or it is not known."""
        return ("",) * len(self.names)

    @property
    def unit(self) -> str:
        """Unit of the score; by default that of a product of all values."""
        return " * ".join(self.units) if all(self.units) else ""

    @property
    def costs(self) -> tuple[str, ...]:
        """Names of the costs that the score reads, which the cost model has to give or `problem.costs.DERIVED` to have;
        by default not known."""
        return ()

    @property
    def monotone(self) -> bool:
        """Whether the score never falls when a cost of the model grows: a bound on these is then a bound on the score."""
        return False

    @property
    def scenarios(self) -> Mapping[str, Scenario]:
        """Variants of the problem, by name, on which designs are evaluated as well: `Evaluation.scenarios` has what they
        are worth there. Asked of what `of` returns."""
        return {}

    def of(self, problem: Problem) -> Objective:
        """The objective that scores the designs of this problem, with what it has to know of it; by default itself."""
        return self

    def score(self, evaluation: Evaluation) -> Array:
        """(B,) float64, lower is better. Invalid designs are set to infinity by the caller.

        With several values, a single number for progress and for the design called best.
        """
        raise NotImplementedError

    @property
    def opens(self) -> bool:
        """Whether a search has a first part, in which searchers hear `opening`, and then begins anew from the designs of the
        best scores: no worse than these, whatever the opening is. Asked of what `of` returns."""
        return False

    def opening(self, evaluation: Evaluation) -> Array:
        """(B,) float64, what searchers hear in place of the score during the first part of a search."""
        return self.score(evaluation)

    def values(self, evaluation: Evaluation) -> Array:
        """(B, M) float64, each to be minimised; by default the score alone."""
        return self.score(evaluation)[:, None]
