"""Timeloop projects with a few words, lines or characters replaced, repeated or left out."""

from __future__ import annotations

import random
import re

PROBLEM = """
problem:
  shape:
    name: product
    dimensions: [A, B, C]
    data-spaces:
      - {name: X, projection: [[[A]], [[C]]]}
      - {name: Y, projection: [[[C]], [[B]]]}
      - {name: S, projection: [[[A]], [[B]]], read-write: true}
  instance: {A: 8, B: 12, C: 6, densities: {X: {distribution: hypergeometric, density: 0.5}}}
"""
TREE = """
architecture:
  version: 0.3
  subtree:
    - name: chip
      local:
        - {name: Far, class: DRAM, attributes: {width: 32, datawidth: 8, read_bandwidth: 4, write_bandwidth: 4}}
        - {name: Mid, class: SRAM, attributes: {depth: 256, width: 16, datawidth: 8, metadata_storage_width: 8}}
      subtree:
        - name: PE[0..7]
          local:
            - {name: Near, class: regfile, attributes: {depth: 16, width: 8, datawidth: 8, metadata_storage_width: 8}}
            - {name: Unit, class: intmac, attributes: {datawidth: 8}}
"""
NODES = """
architecture:
  version: 0.4
  nodes:
    - !Container {name: chip, attributes: {technology: 45nm}}
    - !Component {name: Far, class: DRAM, attributes: {width: 32, datawidth: 8, read_bandwidth: 4, write_bandwidth: 4}}
    - !Component {name: Mid, class: SRAM, attributes: {depth: 256, width: 16, datawidth: 8, metadata_storage_width: 8}}
    - !Container {name: PE, spatial: {meshX: 4, meshY: 2}}
    - !Component {name: Near, class: regfile, attributes: {depth: 16, width: 8, datawidth: 8, metadata_storage_width: 8}}
    - !Component {name: Unit, class: intmac, attributes: {datawidth: 8}}
"""
ENERGIES = """
ERT:
  version: 0.3
  tables:
    - {name: chip.Far, actions: [{name: read, energy: 400}, {name: write, energy: 480}, {name: idle, energy: 0}]}
    - {name: chip.Mid, actions: [{name: read, energy: 4}, {name: write, energy: 5}, {name: idle, energy: 0.5}]}
    - {name: "chip.PE[0..7].Unit", actions: [{name: mac_random, energy: 2}, {name: mac_gated, energy: 0.25}]}
"""
MAPPING = """
mapping:
  - {target: Far, type: temporal, factors: A=2 B=0 C=1, permutation: BAC}
  - {target: Mid, type: temporal, factors: A=1 B=2 C=3, permutation: CBA}
  - {target: SPREAD, type: spatial, factors: A=4 B=1 C=2, permutation: CAB, split: 1}
  - {target: Near, type: temporal, factors: A=1 B=3 C=1, permutation: BAC}
  - {target: Near, type: bypass, keep: [S], bypass: [X, Y], stream: [Y]}
"""
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
    rest = rng.choice((MAPPING, MAPPING, CONSTRAINTS)).replace("SPREAD", "PE" if nodes else "Mid")
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
