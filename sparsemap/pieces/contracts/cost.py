"""What a design costs, and what a search minimises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from .base import Array, Piece

if TYPE_CHECKING:
    from ...problem.designs import Designs
    from ...problem.evaluation import Evaluation
    from ...problem.problem import Problem
    from ...problem.scenarios import Scenario
    from .sparsity import Format, Outer


@attrs.frozen(kw_only=True)
class CostModel(Piece):
    """Energy, cycles and reasons of a batch of designs."""

    kind: ClassVar[str] = "cost-model"
    needs: ClassVar[tuple[str, ...]] = ()
    """The columns of `Designs` that evaluate reads."""

    def reasons(self, problem: Problem) -> Mapping[str, str]:
        """What the names in `Evaluation.reason_names` mean, in a few words for reports; by default nothing."""
        return {}

    def evaluate(self, designs: Designs, problem: Problem, detail: bool = False) -> Evaluation:
        """Evaluates all designs; `detail` asks for traffic, metadata and energies by level and tensor.

        Where `detail` has "needed", it lists per design the resources it lacks: rows of the reason, what is needed, what
        is available, and a text that says both in the units of the resource.
        """
        raise NotImplementedError

    def copies(self, problem: Problem) -> Array | None:
        """(T, S): so many of its tiles of a tensor a level needs room for, such as two where it is double-buffered.
        None: one. Segments that make tiles fit read it."""
        return None

    def lower_bound(self, problem: Problem) -> Evaluation | None:
        """Pairs of energy and cycles, one per row, such that every design of the problem's space is at or above one of them
        in both; a single row is what no design can beat in either. None: not known."""
        return None


@attrs.frozen(kw_only=True)
class Charge(Piece):
    """An effect that hardware pays for and a plain cost model leaves out, such as draining or load imbalance.

    A cost model with a field `charges` calls these methods of each, in their order in a design's evaluation; `run` is
    that model's own record of the batch (for `analytic`, `plugins/analytic/run.py` says what it holds), which a method
    reads and changes in place. A charge overrides what it needs.
    """

    kind: ClassVar[str] = "charge"
    every_fiber: ClassVar[bool] = False
    """Whether formats are asked for all fibers that are there, also those that hold nothing."""
    fewer_updates: ClassVar[bool] = False
    """Whether it takes away updates of the output that do not happen, which a lower bound has to know."""
    of_metadata: ClassVar[bool] = False
    """Whether what it charges is metadata, which goes when metadata are taken to be free."""

    def least_pj(self, problem: Problem, cycles: float) -> float:
        """pJ that it adds to every design that runs for `cycles` or longer: what a lower bound may count."""
        return 0.0

    def format(self, form: Format, outer: Outer) -> Format:
        """The format whose metadata are counted in place of this one, below ranks that have told so much. Raises ValueError
        if it has none."""
        return form

    def copies(self, problem: Problem) -> Array | None:
        """(T, S) tiles of a tensor that a level must have room for; None: one."""
        return None

    def stored(self, run: Any) -> None:
        """Before metadata are counted: `run.offsets`, `run.traffic`, the filters that time obeys."""

    def moved(self, run: Any) -> None:
        """After the accesses of every tensor at every level are counted: changes these counts."""

    def worked(self, run: Any) -> None:
        """After the compute cycles are known: `run.compute_cycles` may grow."""

    def timed(self, run: Any) -> None:
        """After the cycles of all levels are known: `run.cycles` may grow."""

    def spent(self, run: Any) -> None:
        """Last: adds to `run.energy_pj`."""


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
    def monotone(self) -> bool:
        """Whether the score never falls when energy or cycles grow: a bound on both is then a bound on the score."""
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

    def values(self, evaluation: Evaluation) -> Array:
        """(B, M) float64, each to be minimised; by default the score alone."""
        return self.score(evaluation)[:, None]
