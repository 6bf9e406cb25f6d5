"""Dense counts of loops that end with the data, by a walk: every unit, every step, every word. Written for reading, and for
small problems; it shares nothing with the model.

A nest is a list of loops, the outermost first: (level, spatial, dimension, bound), level s being that which hands words on to
level s + 1, the last one to the compute units.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

Loop = tuple[int, bool, str, int]


def walked(
    loops: list[Loop], ends: dict[str, int], tensors: dict[str, tuple[str, ...]], output: str, levels: int
) -> Any:
    """(computes, steps, counts): `counts` by (name, tensor, level) the words of all instances, and of the fullest one as
    ("most ..", ..). A tensor is the dimensions of its ranks. A tile stays while only loops turn that lie inside the innermost
    loop that moves it."""
    strides = [math.prod(n for _, _, d, n in loops[i + 1 :] if d == dim) for i, (_, _, dim, _) in enumerate(loops)]
    temporal = [i for i, loop in enumerate(loops) if not loop[1]]
    spatial = [i for i, loop in enumerate(loops) if loop[1]]
    totals: Counter[Any] = Counter()
    most: dict[Any, Counter[Any]] = {}
    seen: set[Any] = set()
    computes, steps, held = 0, set(), {}

    def first(index: dict[int, int], some: list[int]) -> dict[str, int]:
        """Where the tile begins that these loops lead to."""
        at = dict.fromkeys(ends, 0)
        for i in some:
            at[loops[i][2]] += index[i] * strides[i]
        return at

    def count(name: str, tensor: str, level: int, instance: Any, words: int) -> None:
        totals[name, tensor, level] += words
        most.setdefault((name, tensor, level), Counter())[instance] += words

    for step in itertools.product(*(range(loops[i][3]) for i in temporal)):
        now, served = dict(zip(temporal, step, strict=True)), set()
        for place in itertools.product(*(range(loops[i][3]) for i in spatial)):
            index = now | dict(zip(spatial, place, strict=True))
            at = first(index, list(range(len(loops))))
            if any(at[dim] >= end for dim, end in ends.items()):
                continue
            computes += 1
            steps.add(step)
            for (tensor, dims), s in itertools.product(tensors.items(), range(levels)):
                around = [i for i, loop in enumerate(loops) if loop[0] <= s]  # loops outside the tile of level s + 1
                child = tuple(index[i] for i in around if loops[i][1])
                parent = tuple(index[i] for i in around if loops[i][1] and loops[i][0] < s)
                outer = [i for i in around if not loops[i][1]]
                moving = max((i for i in outer if loops[i][2] in dims and loops[i][3] > 1), default=-1)
                turn = step if s == levels - 1 else tuple(index[i] for i in outer if i <= moving)
                begin = first(index, around)
                inside = {d: math.prod(n for level, _, dim, n in loops if level > s and dim == d) for d in dims}
                spans = [range(begin[d], min(begin[d] + inside[d], ends[d])) for d in dims]
                words = set(itertools.product(*spans))
                if held.get((tensor, s, child)) == turn:
                    continue
                held[tensor, s, child] = turn
                count("in", tensor, s + 1, child, len(words))
                key = tensor, s, parent, tuple(begin[d] for d in dims), turn
                if key not in served:  # several children that get the same are served together
                    served.add(key)
                    count("out", tensor, s, parent, len(words))
                if tensor == output:
                    for word in words:
                        for name, level, instance in (("in", s + 1, child), ("out", s, parent)):
                            if (name, level, instance, word) not in seen:
                                seen.add((name, level, instance, word))
                                totals["first " + name, tensor, level] += 1
    found: dict[Any, int] = dict(totals)
    for (name, tensor, level), by_instance in most.items():
        found["most " + name, tensor, level] = max(by_instance.values())
    return computes, len(steps), found
