"""Many designs edited at a time, as a vectorised environment of stable-baselines3."""

from __future__ import annotations

from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from sparsemap.pieces.contracts import Array

from .edits import DECADES, Edits
from .environment import spaces_of
from .reinforcement import Score


class Games(VecEnv):
    """The same game as `environment.DesignEnv`; a finished one starts again at once. Every question is one batch."""

    def __init__(
        self, edits: Edits, games: int, mode: str, steps: int, score: Score, rng: np.random.Generator
    ) -> None:  # fmt: skip
        self.edits, self.mode, self.steps, self.score, self.rng = edits, mode, steps, score, rng
        self.genomes = edits.space.sample(games, rng)
        self.merits = np.full(games, -DECADES)
        self.taken = np.zeros(games, np.int64)
        self.actions = np.zeros(games, np.int64)
        super().__init__(games, *spaces_of(edits, mode))

    def reset(self) -> Array:
        if self.mode == "edit":
            self.genomes = self.edits.space.sample(self.num_envs, self.rng)
            self.merits = self.edits.merits(self.score(self.genomes))
            # games that all started together would all restart together
            self.taken = self.rng.integers(self.steps, size=(self.num_envs,))
        return self.edits.observe(self.genomes, self.merits)

    def step_async(self, actions: Array) -> None:
        self.actions = actions

    def step_wait(self) -> tuple[Array, Array, Array, list[dict[str, Any]]]:
        before, low = self.merits, self.edits.space.low
        whole = self.mode == "whole"
        self.genomes = (
            low + np.asarray(self.actions, np.int64) if whole else self.edits.apply(self.genomes, self.actions)
        )
        self.merits = self.edits.merits(self.score(self.genomes))
        rewards = (self.merits if whole else self.merits - before).astype(np.float32)
        self.taken += 1
        done = (self.taken >= self.steps) | whole
        seen = self.edits.observe(self.genomes, self.merits)
        infos = self._infos(seen, done)
        if done.any() and not whole:
            self.genomes[done] = self.edits.space.sample(int(done.sum()), self.rng)
            self.merits[done] = self.edits.merits(self.score(self.genomes[done]))
            self.taken[done] = 0
            seen = self.edits.observe(self.genomes, self.merits)
        return seen, rewards, done, infos

    def _infos(self, seen: Array, done: Array) -> list[dict[str, Any]]:
        """What stable-baselines3 needs of a finished game: its last observation, and whether time ran out."""
        late = self.mode == "edit"
        return [
            {"terminal_observation": row, "TimeLimit.truncated": late} if over else {}
            for row, over in zip(seen, done.tolist(), strict=True)
        ]

    # -- the rest of the interface

    def close(self) -> None:
        pass

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return (
            [getattr(self, attr_name)] * len(list(self._get_indices(indices))) if attr_name != "render_mode" else [None]
        )

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        setattr(self, attr_name, value)

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * len(list(self._get_indices(indices)))
