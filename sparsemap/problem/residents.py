"""Tensors kept on chip between layers: residence by the workload, occupied room, and sliding."""

from __future__ import annotations

import math

from ..errors import SpecError, unknown
from .problem import Problem


def homes_of(problem: Problem) -> tuple[int, ...]:
    """`Problem.homes` of a workload with resident tensors."""
    file, found = problem.file_of("workload"), [0] * len(problem.tensors)
    names = [level.name for level in problem.levels]
    for text, name in problem.workload.resides.items():
        path = f"resides.{text}"
        if name not in names:
            raise SpecError.at(file, path, unknown("level", name, names))
        tensor, home = problem.tensor(text, file, path), names.index(name)
        if problem.levels[home].instances > 1:
            count = f"'{name}' has {problem.levels[home].instances:,} instances"
            raise SpecError.at(file, path, f"{count}; a tensor resides in a level that is there once")
        found[tensor] = home
        if home and tensor in problem.named(home, "bypass"):
            raise SpecError.at(file, path, f"'{name}' does not store '{problem.tensors[tensor].name}' (bypass)")
    return tuple(found)


def resident_of(problem: Problem) -> dict[tuple[int, int], int]:
    """`Problem.resident`."""
    file, given = problem.file_of("workload"), dict[int, int]()
    for text, words in problem.workload.resident_words.items():
        tensor = problem.tensor(text, file, f"resident_words.{text}")
        if not problem.homes[tensor] or words < 0:
            wrong = f"is {words}" if problem.homes[tensor] else f"'{text}' resides in no level (resides)"
            wrong += ", expected the words of a tensor that resides"
            raise SpecError.at(file, f"resident_words.{text}", wrong)
        given[tensor] = words
    boxes = {t: math.prod(problem.tensors[t].shape(problem.sizes)) for t, home in enumerate(problem.homes) if home}
    return {(t, problem.homes[t]): given.get(t, words) for t, words in boxes.items()}


def slides_of(problem: Problem) -> dict[int, int]:
    """`Problem.slides`."""
    file, found, output = problem.file_of("workload"), dict[int, int](), next(t for t in problem.tensors if t.output)
    for text, dim in problem.workload.slides.items():
        path = f"slides.{text}"
        tensor = problem.tensor(text, file, path)
        ranks = problem.tensors[tensor].ranks  # a window does not slide along its own words
        allowed = [d for rank in ranks for d, _ in rank if d in output.dims or len(rank) == 1]
        if not problem.homes[tensor]:
            raise SpecError.at(file, path, f"'{text}' resides in no level (resides)")
        if dim not in allowed:
            raise SpecError.at(file, path, unknown("dimension that moves it", dim, allowed))
        found[tensor] = problem.dims.index(dim)
    return found
