"""PPO and DQN (baselines of Section III-C), as implemented in stable-baselines3.

Both play the game of `edits`: many designs at a time, one gene of each edited per step. A step costs an evaluation, so
20,000 evaluations are 20,000 steps of experience. Building a genome gene by gene and scoring the end result would cost
forty times the steps and give a reward only once per episode. Paper and map-space study give only the names of the
methods."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any, ClassVar

import attrs
import numpy as np

from sparsemap import Budget, Space
from sparsemap.extras import need
from sparsemap.pieces.contracts import Array, Genomes, Proposals, Scores, Searcher

from .edits import Edits

_count = attrs.validators.ge(1)
Score = Callable[[Genomes], Scores]
"""Function from genomes (n, G) to scores (n,)."""


class Stopped(BaseException):
    """Raised inside the loop when the search is over; only `bridge` should catch this exception."""


def bridge(run: Callable[[Score], None]) -> Proposals:
    """Proposals of code with its own loop: `run(score)` calls `score` to have designs scored.

    `run` may never return. The loop runs in a thread and alternates with the driver: only one of the two ever runs, so
    a search stays sequential, and the result does not depend on timing."""
    questions: SimpleQueue[Array | BaseException | None] = SimpleQueue()
    answers: SimpleQueue[Array | None] = SimpleQueue()

    def score(genomes: Genomes) -> Scores:
        questions.put(genomes)
        scores = answers.get()
        if scores is None:
            raise Stopped
        return scores

    def work() -> None:
        end = None
        try:
            run(score)
        except Stopped:
            pass
        except BaseException as error:
            end = error
        questions.put(end)

    thread = Thread(target=work, name="sparsemap-bridge", daemon=True)
    thread.start()
    try:
        while (asked := questions.get()) is not None:
            if isinstance(asked, BaseException):
                raise asked
            scored = yield asked
            scores = np.full(len(asked), np.inf)
            scores[: len(scored)] = scored.scores
            answers.put(scores)
    finally:
        answers.put(None)
        thread.join()


@attrs.frozen(kw_only=True)
class Learner(Searcher):
    """Common base: the game, played by a model of stable-baselines3 until the budget is spent."""

    games: int = attrs.field(default=64, validator=_count)
    """Designs edited at a time."""
    steps: int = attrs.field(default=64, validator=_count)
    """Edits before a game restarts from a random design."""
    learning_rate: float = attrs.field(default=3e-4, validator=attrs.validators.gt(0))
    """Step size of the optimiser."""

    def model(self, env: Any, seed: int) -> Any:
        """The untrained model."""
        raise NotImplementedError

    def search(self, space: Space, budget: Budget, rng: np.random.Generator) -> Proposals:
        what = f"searcher '{self.name or self.type_name}'"
        torch, *_ = (need(module, what, "baselines") for module in ("torch", "stable_baselines3", "gymnasium"))
        from .games import Games

        games = min(self.games, max(budget.total // 10, 1))
        seed = int(rng.integers(2**31))

        def run(score: Score) -> None:
            threads = torch.get_num_threads()
            torch.set_num_threads(1)  # small networks gain nothing from more, and sums keep their order
            try:
                env = Games(Edits(space), games, self.steps, score, rng)
                self.model(env, seed).learn(total_timesteps=budget.total)
            finally:
                torch.set_num_threads(threads)

        yield from bridge(run)


@attrs.frozen(kw_only=True)
class PolicyOptimization(Learner):
    """Proximal policy optimisation (Schulman et al., 2017)."""

    type_name: ClassVar[str] = "ppo"

    rollout: int = attrs.field(default=16, validator=_count)
    """Steps of every game between two updates of the policy."""
    epochs: int = attrs.field(default=10, validator=_count)
    """Passes over the steps of each update."""
    entropy: float = attrs.field(default=0.01, validator=attrs.validators.ge(0))
    """Weight of the policy's entropy, to keep the policy exploring."""

    def model(self, env: Any, seed: int) -> Any:
        from stable_baselines3 import PPO

        size = self.rollout * env.num_envs
        return PPO(
            "MlpPolicy", env, n_steps=max(self.rollout, 2), batch_size=max(size // 4, 2), n_epochs=self.epochs,
            learning_rate=self.learning_rate, ent_coef=self.entropy, seed=seed, device="cpu",
        )  # fmt: skip


@attrs.frozen(kw_only=True)
class DeepQ(Learner):
    """Deep Q-network (Mnih et al., 2015)."""

    type_name: ClassVar[str] = "dqn"

    updates: int = attrs.field(default=8, validator=_count)
    """Updates of the network after every step of all games."""
    exploration: float = attrs.field(default=0.5, validator=[attrs.validators.ge(0), attrs.validators.le(1)])
    """Share of the budget over which random actions become rare."""

    def model(self, env: Any, seed: int) -> Any:
        from stable_baselines3 import DQN

        games = env.num_envs
        return DQN(
            "MlpPolicy", env, learning_rate=self.learning_rate, seed=seed, device="cpu", learning_starts=2 * games,
            batch_size=128, gamma=0.95, train_freq=1, gradient_steps=self.updates, target_update_interval=16 * games,
            exploration_fraction=self.exploration, exploration_final_eps=0.05,
        )  # fmt: skip
