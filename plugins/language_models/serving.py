"""A model served on a hardware: searches of all steps, and the table of speeds."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import attrs

from sparsemap.errors import SearchError, listed
from sparsemap.files import grouped
from sparsemap.pieces.registry import Registry
from sparsemap.problem.load import piece_of
from sparsemap.problem.widths import width_of
from sparsemap.study.cells import Cell, Outcome, no_design, not_of_a_search
from sparsemap.study.study import Progress, run_cells

from .hints import hints_of
from .model import LanguageModel
from .parts import parts_of
from .points import DECODE, ENCODE, PREFILL, Point
from .searches import Searches
from .steps import ServedStep
from .widths import Widths


@attrs.frozen(kw_only=True)
class Serving:
    """The steps of a model on a hardware."""

    model: LanguageModel
    hardware: str
    widths: Widths
    steps: tuple[ServedStep, ...]
    searches: int
    """Distinct searches of layers."""
    about: Mapping[str, Any]
    """Budget, seed, searcher and space of the searches."""
    hints: tuple[str, ...] = ()
    """Units that the hardware lacks, see `hints_of`."""

    @property
    def loads(self) -> tuple[float, ...]:
        """Tokens of each expert, in any unit; empty: equal, or no experts."""
        return self.model.experts.loads if self.model.experts else ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        bits, names = self.widths.told()
        return {
            "model": self.model.name, "hardware": self.hardware, "parameters": self.model.parameters,
            "bits": bits, **({"number_formats": names} if names else {}), "expert_loads": [*self.loads],
            **self.about, "searches": self.searches, "steps": [step.row() for step in self.steps], "hints": [*self.hints],
        }  # fmt: skip


def points_of(
    model: LanguageModel, contexts: Sequence[int], batches: Sequence[int], phase: str = "", prompts: int = 1
) -> list[Point]:
    """Steps of a model, prefill first; `prompts` are prefilled at a time. SearchError for a phase the model lacks."""
    known = (ENCODE,) if model.encoder else (PREFILL, DECODE)
    if phase and phase not in known:
        raise SearchError(f"phase is {phase!r}, and {model.name} has {listed(known)}")
    if model.image:
        return [Point(ENCODE, model.image.tokens, batch) for batch in batches]
    phases = [phase] if phase else known
    found = [Point(one, tokens, prompts) for one in phases if one == PREFILL for tokens in contexts]
    return found + [Point(one, tokens, n) for one in phases if one != PREFILL for n in batches for tokens in contexts]


def served(
    registry: Registry, model: LanguageModel, hardware: Any, points: Sequence[Point], bits: Mapping[str, Any],
    out: str = "", jobs: int = 1, watched: Callable[[Sequence[Cell]], Any] | None = None, overwrite: bool = False,
    plugin_dirs: Sequence[str] = (), density: Any = 1.0, lengths: Mapping[int, float] | None = None, **how: Any,
) -> Serving:  # fmt: skip
    """Searches and plans all steps. `bits`: of `Widths.of`, formats by name; `density`: of weights; `how`: of `plan_of`.
    `lengths`: shares of the tokens of points, for a mean behind all lengths of a phase and batch.

    `watched` is a context with the progress of the searches. SearchError for layers without a design."""
    chip = piece_of(registry, "hardware", hardware)
    given: dict[str, Any] = {key: width_of(registry, x, "", f"--{key}-bits") for key, x in bits.items()}
    widths = Widths.of(chip.word_bits, **given)
    place = nullcontext(out) if out else tempfile.TemporaryDirectory(prefix="sparsemap-")
    with place as folder:
        parts = {point: parts_of(model, point, widths, density) for point in dict.fromkeys(points)}
        searches = Searches.of(registry, hardware, parts, not_of_a_search(folder), **how)
        ended: list[Outcome] = []

        def keep(outcomes: Sequence[Outcome]) -> None:
            ended[:] = outcomes

        with watched(searches.cells) if watched else nullcontext() as progress:
            told: Progress | None = progress
            args = {"plugin_dirs": plugin_dirs}
            run_cells(searches.cells, keep, args, jobs, told, "", searches.problem, overwrite)
        # with tensors on chip a layer may have no design, as one that leaves them no room
        alone = [one for one in ended if "resides" not in one.cell.parts["workload"]]
        if lacking := {one.cell.workload: one for one in alone if one.numbers.get("edp") is None}:
            why = next((one.error or no_design(one.numbers)) for one in lacking.values())
            raise SearchError(f"{model.name} on {chip.name}: no design for {listed(lacking)}: {why}")
        results = searches.results(ended, write=bool(out))
        for each in results.values():
            if not each.complete:
                raise SearchError(f"{each.base.network} on {chip.name}: {each.error}")
        steps = tuple(ServedStep.of(model, point, widths, own, results) for point, own in searches.points.items())
        if lengths and len(lengths) > 1:
            groups = grouped(steps, lambda step: (step.point.phase, step.point.batch)).values()
            steps = tuple(step for group in groups for step in (*group, ServedStep.mean(group, lengths)))
        base = next(iter(results.values())).base
        about = {key: getattr(base, key) for key in ("searcher", "space", "technology", "budget", "seed")}
        about |= {"density": density, "lengths": {str(tokens): share for tokens, share in (lengths or {}).items()}}
        plan = searches.plans[0].plan
        return Serving(
            model=model, hardware=base.hardware, widths=widths, steps=steps, searches=len(searches.cells), about=about,
            hints=hints_of(plan.problem(plan.cells[0]), density, widths, steps),
        )  # fmt: skip
