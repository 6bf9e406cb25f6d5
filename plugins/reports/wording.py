"""How designs are put into words: short names of formats, mechanisms as in Fig. 13, the einsum of a workload."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sparsemap import Format, Mechanism, Tensor
from sparsemap.problem.levels import Place
from sparsemap.problem.problem import Problem


def symbols(formats: Sequence[Format]) -> dict[str, str]:
    """A short name by format name: its `symbol`, or else its initials, with more letters where two formats share them."""
    found: dict[str, str] = {}
    for fmt in formats:
        if fmt.name in found:
            continue
        words = [word for word in re.split(r"[^0-9A-Za-z]+", fmt.name or fmt.type_name) if word] or ["?"]
        own = str(getattr(fmt, "symbol", "") or "")
        candidates = [own] if own else []
        tail = "".join(word if word[0].isdigit() else word[0].upper() for word in words[1:])
        candidates += [words[0][:length].capitalize() + tail for length in range(1, len(words[0]) + 1)]
        found[fmt.name] = next((name for name in candidates if name not in found.values()), fmt.name)
    return found


def mechanism_text(mechanism: Mechanism, place: Place, problem: Problem) -> str:
    """`Skip Q <- P`, `Gate P <-> Q`; several targets with commas between; "" where nothing is filtered."""
    parts: list[str] = []
    rules = []
    for rule, target, leaders in problem.filters(mechanism, place):
        names = ["+".join(problem.tensors[t].name for t in group) for group in ((target,), leaders)]
        rules.append((rule.action, *names))
    while rules:
        action, target, leaders = rules.pop(0)
        mirrored = (action, leaders, target)
        arrow = "<-"
        if mirrored in rules:
            rules.remove(mirrored)
            arrow = "<->"
        parts.append(f"{action.capitalize()} {target} {arrow} {leaders}")
    return ", ".join(parts)


def einsum_text(tensors: Sequence[Tensor]) -> str:
    """`Z[m, n] += P[m, k] * Q[k, n]`."""
    outputs = [indexed(tensor) for tensor in tensors if tensor.output]
    operands = [indexed(tensor) for tensor in tensors if not tensor.output]
    return f"{', '.join(outputs)} += {' * '.join(operands)}"


def indexed(tensor: Tensor) -> str:
    """`P[c, p + r, 2*q + s]`."""
    ranks = (" + ".join(dim if c == 1 else f"{c}*{dim}" for dim, c in rank) for rank in tensor.ranks)
    return f"{tensor.name}[{', '.join(ranks)}]"
