"""The design space as a gymnasium environment, for reinforcement learning of one's own.

    env = DesignEnv(sparsemap.load_problem("mm3", "cloud"))
    observation, info = env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(env.action_space.sample())

or, by its id,
`gymnasium.make("sparsemap_plugins.searchers.baselines.environment:SparseMap/Design-v0", problem=problem)`.

* Observation: G + 1 numbers in 0..1, the genes of the current design and its merit.
* Action, `mode = "edit"` (the default): a number; it sets one gene, or moves it where it has many values
  (`env.action_name`). An episode starts at a random design, often an invalid one, and is truncated after `steps` edits.
* Action, `mode = "whole"`: all genes at once, counted from their lowest values. An episode is one step.
* Merit: orders of magnitude by which the score is better than `reference`, between -5 and 5; invalid designs have -5.
  The reward is the gain in merit; in mode "whole" it is the merit.
* Info: `score` (infinity if invalid), `valid`, `genome`, and `reasons` why the design is invalid.

Each step, and each reset, evaluates one design.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sparsemap import Problem
from sparsemap.errors import SearchError, need
from sparsemap.pieces.contracts import Array

from .edits import Edits

if TYPE_CHECKING:
    import gymnasium
else:
    gymnasium = need("gymnasium", "the environment for reinforcement learning", "baselines")

ID = "SparseMap/Design-v0"
MODES = ("edit", "whole")


def spaces_of(edits: Edits, mode: str) -> tuple[Any, Any]:
    """Observation space and action space."""
    genes = len(edits.space)
    observation = gymnasium.spaces.Box(0.0, 1.0, (genes + 1,), np.float32)
    if mode == "edit":
        return observation, gymnasium.spaces.Discrete(edits.actions)
    return observation, gymnasium.spaces.MultiDiscrete(edits.space.high - edits.space.low + 1)


class DesignEnv(gymnasium.Env):
    """One design of a problem, edited step by step; see the module for observation, action and reward."""

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(self, problem: Problem, mode: str = "edit", steps: int = 64, reference: float | None = None) -> None:
        if mode not in MODES:
            raise SearchError(f"mode is {mode!r}, expected one of {', '.join(MODES)}")
        self.problem = problem
        self.mode = mode
        self.steps = steps
        self.render_mode = None
        self.edits = Edits(problem.space, reference)
        self.observation_space, self.action_space = spaces_of(self.edits, mode)
        self._genome = problem.space.low[None, :].copy()
        self._merit = np.zeros(1)
        self._taken = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """Starts at a random design, or at `options["genome"]`."""
        super().reset(seed=seed)
        given = (options or {}).get("genome")
        genome = self.problem.space.sample(1, self.np_random) if given is None else self.problem.space.check(given)
        info = self._move(genome)
        self._taken = 0
        return self.edits.observe(self._genome, self._merit)[0], info

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        whole, space = self.mode == "whole", self.problem.space
        before, self._taken = 0.0 if whole else float(self._merit[0]), self._taken + 1
        edited = (
            space.low + np.asarray(action, np.int64)
            if whole
            else self.edits.apply(self._genome, np.array([int(action)]))
        )
        info = self._move(space.check(edited))
        reward, late = float(self._merit[0]) - before, not whole and self._taken >= self.steps
        return self.edits.observe(self._genome, self._merit)[0], reward, whole, late, info

    def action_name(self, action: int) -> str:
        """What an edit does: `tile.m.1 = 3`, or `order.L1_T + 8`."""
        gene, amount, step = (column[action].item() for column in self.edits.table)
        name = self.problem.space.names[gene]
        if step:
            return f"{name} {'-' if amount < 0 else '+'} {abs(amount)}"
        return f"{name} = {amount + int(self.problem.space.low[gene])}"

    def _move(self, genome: Array) -> dict[str, Any]:
        evaluator = self.problem.evaluator
        evaluation = evaluator.evaluate(genome)
        scores = evaluator.score(evaluation)
        self._genome, self._merit = genome, self.edits.merits(scores)
        return {
            "score": float(scores[0]),
            "valid": bool(np.isfinite(scores[0])),
            "genome": genome[0].copy(),
            "reasons": evaluation.reasons_of(0),
        }


gymnasium.register(ID, entry_point=f"{__name__}:DesignEnv")
