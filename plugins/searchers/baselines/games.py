"""Many designs edited at a time, as a vectorised environment of stable-baselines3."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from stable_baselines3.common.vec_env import VecEnv

from sparsemap.pieces.contracts import Array

from .edits import DECADES, Edits
from .reinforcement import Score


class Games(VecEnv):
    """Games, each starting at a random design and restarting after `steps` edits; the reward is the gain in merit.
    Every query is one batch."""

    def __init__(self, edits: Edits, games: int, steps: int, score: Score, rng: np.random.Generator) -> None:
        self.edits, self.steps, self.score, self.rng = edits, steps, score, rng
        self.genomes = edits.space.sample(games, rng)
        self.merits = np.full(games, -DECADES)
        self.taken = np.zeros(games, np.int64)
        self.actions = np.zeros(games, np.int64)
        super().__init__(games, Box(0.0, 1.0, (len(edits.space) + 1,), np.float32), Discrete(edits.actions))

    def reset(self) -> Array:
        self.genomes = self.edits.space.sample(self.num_envs, self.rng)
        self.merits = self.edits.merits(self.score(self.genomes))
        # games that all started together would all restart together
        self.taken = self.rng.integers(self.steps, size=(self.num_envs,))
        return self.edits.observe(self.genomes, self.merits)

    def step_async(self, actions: Array) -> None:
        self.actions = actions

    def step_wait(self) -> tuple[Array, Array, Array, list[dict[str, Any]]]:
        before, self.genomes = self.merits, self.edits.apply(self.genomes, self.actions)
        self.merits = self.edits.merits(self.score(self.genomes))
        rewards = (self.merits - before).astype(np.float32)
        self.taken += 1
        done = self.taken >= self.steps
        seen = self.edits.observe(self.genomes, self.merits)
        infos = [dict[str, Any]() for _ in seen]
        for row in np.flatnonzero(done):
            infos[row] = {"terminal_observation": seen[row], "TimeLimit.truncated": True}
        if done.any():
            self.genomes[done] = self.edits.space.sample(int(done.sum()), self.rng)
            self.merits[done] = self.edits.merits(self.score(self.genomes[done]))
            self.taken[done] = 0
            seen = self.edits.observe(self.genomes, self.merits)
        return seen, rewards, done, infos

    # -- the rest of the interface

    def close(self) -> None:
        pass

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        each = [None if attr_name == "render_mode" else getattr(self, attr_name)]
        return each if attr_name == "render_mode" else each * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        setattr(self, attr_name, value)

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * len(list(self._get_indices(indices)))
