"""Timeloop projects with a few words, lines or characters replaced, repeated or left out."""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from timeloop_texts import ENERGIES, MAPPING, NODES, PROBLEM, TREE

CONSTRAINTS = """
constraints:
  targets:
    - {target: Mid, type: temporal, factors: A=1 B<=4, permutation: CBA}
    - {target: Near, type: bypass, keep: [S], bypass: [X, Y]}
"""
SPARSE = """
sparse_optimizations:
  targets:
    - name: Far
      representation-format:
        data-spaces:
          - {name: X, rank-application-order: inner-to-outer, ranks: [{format: UOP, payload-word-bits: 0},
             {format: UOP, payload-word-bits: 4}, {format: CP, metadata-word-bits: 4, flattened-rankIDs: [[A, C]]}]}
    - name: Mid
      representation-format:
        data-spaces:
          - {name: X, ranks: [{format: UOP, payload-word-bits: 4}, {format: CP, metadata-word-bits: 4}]}
      action-optimization:
        - {type: %s, target: Y, condition-on: %s}
    - name: Unit
      compute-optimization: [{type: gating}]
"""
ACTIONS = (("skipping", "[X]"), ("gating", "[X, S]"), ("skipping-spatial", "[X]"), ("position-skipping", "[]"))
PIECES = (
    *(
        "0",
        "-1",
        "1e400",
        "[]",
        "{}",
        "null",
        "!!python/name:os.system",
        "&a",
        "*a",
        "[0..9]",
        "9" * 40,
        ":",
        "\t",
        "~",
    ),
    *("é", "!Container", "<<: *a", "{{x}}", ".nan", "0x10", "'", '"', "- ", "A=0", "A<=3", "A>=2", "A3,2"),
)


def project(rng: random.Random) -> str:
    """A whole project in one text."""
    nodes = rng.random() < 0.5
    sparse = SPARSE % rng.choice(ACTIONS) if rng.random() < 0.8 else ""
    streamed = MAPPING.replace("bypass: [X, Y]", "bypass: [X, Y], stream: [Y]")
    mapped = streamed.replace("Mid, type: spatial", "PE, type: spatial") if nodes else streamed
    rest = rng.choice((mapped, mapped, CONSTRAINTS))
    return mutated("".join((PROBLEM, NODES if nodes else TREE, ENERGIES, rest, sparse)), rng)


def mutated(text: str, rng: random.Random) -> str:
    for _ in range(rng.randint(1, 4)):
        kind = rng.randrange(4)
        if kind == 0:
            words = re.findall(r"\S+|\s+", text)
            words[rng.randrange(len(words))] = rng.choice((*PIECES, rng.choice(words)))
            text = "".join(words)
        elif kind == 1:
            lines = text.splitlines(keepends=True)
            i = rng.randrange(len(lines))
            text = "".join(lines[:i] + (lines[i : i + 1] * 2 if rng.random() < 0.5 else []) + lines[i + 1 :])
        elif kind == 2:
            values = list(re.finditer(r"(?<=: )[\w.]+|\d+", text))
            if values:
                match = rng.choice(values)
                text = text[: match.start()] + rng.choice(PIECES) + text[match.end() :]
        else:
            i = rng.randrange(len(text))
            text = text[:i] + rng.choice(PIECES) + text[i + rng.randrange(3) :]
    return text
