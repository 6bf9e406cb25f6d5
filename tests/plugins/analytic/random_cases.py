"""Random problems with a random design each, in the shape of the reference cases (see `conformance/cases.py`)."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

COMPRESSED = ("B", "RLE", "CP")
EINSUMS: dict[str, dict[str, Any]] = {
    "matmul": {"P": "m k", "Q": "k n", "Z": "m n"},
    "batched": {"P": "b m k", "Q": "b k n", "Z": "b m n"},
    "conv": {"P": "c p+r q+s", "Q": "k c r s", "Z": "k p q"},
    "strided": {"P": "c 2p+r", "Q": "k c r", "Z": "k p"},
    "dilated": {"P": "n c p+3r", "Q": "k c r", "Z": "n k p"},
    "seven": {"P": "n g c 2p+r", "Q": "g k c r", "Z": "n g k p"},
    "input-gradient": {"P": "k p", "Q": "k c r", "Z": "c 2p+r"},
    "dot": {"P": "k", "Q": "k", "Z": "u"},
    "pool": {"P": "c 2p+r", "Z": "c p"},
    "mttkrp": {"P": "i k l", "Q": "k j", "R": "l j", "Z": "i j"},
    "sampled": {"P": "i j", "Q": "i k", "R": "k j", "Z": "i j"},
    "scaled-conv": {"P": "c p+r", "Q": "k c r", "R": "k", "Z": "k p"},
    "hadamard4": {"P": "i j", "Q": "i j", "R": "j", "S": "i", "Z": "i j"},
}


def power_of_two(bits: int) -> int:
    return 1 << (max(1, bits) - 1).bit_length()


def _rank(text: str) -> list[list[Any]]:
    return [[term[-1], int(term[:-1] or 1)] for term in text.split("+")]


def _split(draw: Any, size: int, groups: int) -> list[int]:
    """Random bounds per group whose product is the size."""
    bounds = [1] * groups
    prime = 2
    while size > 1:
        if size % prime == 0:
            bounds[draw(st.integers(0, groups - 1))] *= prime
            size //= prime
        else:
            prime += 1
    return bounds


@st.composite
def cases(draw: Any, levels: tuple[int, int] = (1, 5)) -> dict[str, Any]:
    """A case: workload, hardware, mapping, sparse strategy. Capacities are generous, tight or absent."""
    einsum = EINSUMS[draw(st.sampled_from(sorted(EINSUMS)))]
    proj = {name: [_rank(rank) for rank in text.split()] for name, text in einsum.items()}
    dims = list(dict.fromkeys(d for ranks in proj.values() for rank in ranks for d, _ in rank))
    most = {3: 24, 4: 12}.get(len(dims), 8 if len(dims) <= 5 else 4)
    sizes = {d: draw(st.sampled_from([n for n in (1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 24) if n <= most])) for d in dims}
    tensors = {}
    for name, ranks in proj.items():
        kind = draw(st.sampled_from(["uniform", "uniform", "structured"]))
        values = [0.05, 0.1, 0.25, 0.3, 0.5, 0.75, 0.9] if kind == "uniform" else [0.25, 0.5, 1.0]
        tensors[name] = {"proj": ranks, "density": {"type": kind, "value": draw(st.sampled_from(values))}}
    tensors["Z"]["output"] = True

    count = draw(st.integers(*levels))
    names = [f"L{i}" for i in range(count)]
    fanouts = [draw(st.sampled_from([None, 1, 2, 4, 8])) for _ in names]
    groups = [g for i, f in enumerate(fanouts) for g in ([f"L{i + 1}_T"] + ([f"L{i + 1}_S"] if f is not None else []))]
    split = {d: _split(draw, sizes[d], len(groups)) for d in dims}
    mapping: dict[str, Any] = {}
    for g, group in enumerate(groups):
        order = draw(st.permutations(dims))
        mapping[group] = [[d, split[d][g]] for d in order]
    for i, fanout in enumerate(fanouts):  # spatial loops that exceed the fan-out become temporal
        group = f"L{i + 1}_S"
        for loop in mapping.get(group, []):
            used = math.prod(n for _, n in mapping[group])
            if used > (fanout or 1) and loop[1] > 1:
                other = next(other for other in mapping[f"L{i + 1}_T"] if other[0] == loop[0])
                other[1] *= loop[1]
                loop[1] = 1

    width = draw(st.sampled_from([32, 64]))
    room = draw(st.sampled_from([None, None, 16, 200]))
    instances, hardware = 1, {}
    for i, name in enumerate(names):
        cost = 100.0 / 8**i
        energy = {"read": cost, "write": cost * 1.1, "metadata_read": cost / 4, "metadata_write": cost / 3}
        if draw(st.booleans()):
            energy |= {"gated_read": cost / 10, "gated_metadata_read": cost / 40, "gated_update": cost / 9}
        hardware[name] = {
            "instances": instances,
            "capacity_words": room if i else None,
            "metadata_capacity_bits": None if room is None or not i else 64 * room,
            **({"bits": {"Z": draw(st.sampled_from([8, 24, 32]))}} if draw(st.integers(0, 3)) == 0 else {}),
            "read_bw": draw(st.sampled_from([None, 0.5, 2, 8])),
            "write_bw": draw(st.sampled_from([None, 1, 4])),
            "energy": energy,
        }
        instances *= fanouts[i] or 1
    formats, ranks, decoded = {}, {}, {}
    for name, tensor in tensors.items():
        formats[name], ranks[name] = _formats(draw, tensor["proj"], mapping, names)
        if any(ranks[name].values()) and draw(st.integers(0, 2)) == 0:
            decoded[name], formats[name], ranks[name] = _merged(draw, tensor["proj"], mapping, names)
    operands = [name for name in tensors if name != "Z"]
    genes = [draw(st.integers(0, 6)) for _ in range(count)] if len(operands) == 2 else []
    rows = [_actions(gene) for gene in genes] or [_led(draw, operands) for _ in range(count)]
    actions = {name: rows[i] if i or count == 1 else [] for i, name in enumerate(names)}
    if draw(st.integers(0, 3)) == 0:
        actions[names[-1]] = [*actions[names[-1]], {"type": "skip", "target": "Z", "on": operands}]
    return {
        "id": "random",
        "family": "random",
        "workload": {"dims": sizes, "tensors": tensors},
        "hw": {
            "word_bits": draw(st.sampled_from([8, 16])),
            "metadata_width_bits": width,
            "bits": draw(st.sampled_from([{}, {}, {"P": 8, "Q": 4, "Z": 32}, {"Z": 24}])),
            "levels": hardware,
            "mac": {"instances": instances, "energy": {"compute": 1.0, "gated": 0.1, "skipped": 0.01}},
        },
        "mapping": mapping,
        "sparse": {
            "formats": formats,
            "ranks": ranks,
            "decoded": decoded,
            "actions": actions,
            "compute": draw(st.sampled_from(["none", "gate", "skip"])),
        },
    }


@st.composite
def resident_cases(draw: Any) -> dict[str, Any]:
    """A case some of whose tensors reside in a level that is there once."""
    case = draw(cases(levels=(2, 4)))
    once = [name for name, level in case["hw"]["levels"].items() if level["instances"] == 1]
    tensors = case["workload"]["tensors"]
    case["workload"]["resides"] = {t: draw(st.sampled_from(once)) for t in tensors if draw(st.booleans())}
    return case  # type: ignore[no-any-return]


NUMBERS = {"eights": {"bits": 8.25, "pj": 0.5}, "fours": {"bits": 4.5, "pj": 3.0}, "plain": {"bits": 24.0, "pj": 0.0}}
"""Number formats: bits with the part of a scale, and pJ of decoding or encoding a word."""


@st.composite
def number_cases(draw: Any) -> dict[str, Any]:
    """A case with named number formats, of tensors and at some levels."""
    case, bits = draw(cases()), st.sampled_from([*NUMBERS, 8, 16, 24])
    tables = [case["hw"], *(level for level in case["hw"]["levels"].values() if draw(st.booleans()))]
    for table in tables:
        table["bits"] = {t: draw(bits) for t in case["workload"]["tensors"] if draw(st.booleans())}
    case["hw"]["numbers"] = NUMBERS
    return case  # type: ignore[no-any-return]


def _actions(gene: int) -> list[dict[str, Any]]:
    kind = "gate" if gene <= 3 else "skip"
    both = [{"type": kind, "target": "P", "on": ["Q"]}, {"type": kind, "target": "Q", "on": ["P"]}]
    return [[], both[:1], both[1:], both, both[:1], both[1:], both][gene]


def _led(draw: Any, operands: list[str]) -> list[dict[str, Any]]:
    """Some operands, each filtered on one or more of the others."""
    found = []
    for target in operands if len(operands) > 1 else []:
        others = [name for name in operands if name != target]
        on = draw(st.lists(st.sampled_from(others), max_size=3, unique=True))
        if on:
            found.append({"type": draw(st.sampled_from(["gate", "skip"])), "target": target, "on": on})
    return found


def _merged(draw: Any, proj: Any, mapping: dict[str, Any], names: list[str]) -> tuple[int, list[str], dict[str, Any]]:
    """The level that decodes, or their number; formats of slots, F for flattened, and the rank lists of every level, whose
    ranks may take several loops."""
    coefficients = {d: c for rank in proj for d, c in rank}
    loops = [
        (int(group[1:].split("_")[0]) - 1, d, n)
        for group, row in mapping.items()
        for d, n in row
        if n > 1 and d in coefficients
    ]
    level = draw(st.integers(min(1, len(names)), len(names)))
    inside = [loop for loop in loops if loop[0] >= level]
    runs: list[list[tuple[int, str, int]]] = []
    for loop in loops[: len(loops) - len(inside)]:
        if runs and runs[-1][-1][0] == loop[0] and draw(st.booleans()):
            runs[-1].append(loop)
        else:
            runs.append([loop])
    runs += [inside] if inside else []
    letters, formats, positions = [draw(st.sampled_from(COMPRESSED)) for _ in runs], list[str](), 1
    rows: list[list[Any]] = []
    for letter, run in reversed(list(zip(letters, runs, strict=True))):
        bounds: dict[str, int] = {}
        for _, d, n in run:
            bounds[d] = bounds.get(d, 1) * n
        length = math.prod(1 + sum(c * (bounds.get(d, 1) - 1) for d, c in rank) for rank in proj)
        positions *= length
        bits = 1 if letter == "B" else power_of_two((length - 1).bit_length())
        rows.insert(0, [letter, bits, draw(st.sampled_from([0, 8])) if rows else 0, len(run)])
        formats = ["F"] * (0 if run == inside else len(run) - 1) + [letter] + formats
    lists: dict[str, Any] = {}
    for i, name in enumerate(names):
        own = [row for row, run in zip(rows, runs, strict=True) if run[0][0] >= i]
        lists[name] = [] if i >= level else own or [[draw(st.sampled_from(COMPRESSED)), 0, 0]]
    if not rows:
        return len(names), ["U"] * len(loops), {name: [] for name in names}
    return level, formats, lists


def _formats(draw: Any, proj: Any, mapping: dict[str, Any], names: list[str]) -> tuple[list[str], dict[str, Any]]:
    """A valid string of formats (uncompressed ranks above compressed ones) and the rank lists of every level."""
    coefficients = {d: c for rank in proj for d, c in rank}
    loops = [
        (int(group[1:].split("_")[0]) - 1, d, n)
        for group, row in mapping.items()
        for d, n in row
        if n > 1 and d in coefficients
    ]
    packed = draw(st.integers(0, len(loops))) if draw(st.booleans()) else 0
    letters = [draw(st.sampled_from(["U", "UOP"])) for _ in loops[: len(loops) - packed]]
    letters += [draw(st.sampled_from(COMPRESSED)) for _ in range(packed)]
    if not packed:
        return ["U"] * len(loops), {name: [] for name in names}
    rows, positions = [], 1
    for position, (_, d, n) in reversed(list(enumerate(loops))):
        length = (n - 1) * coefficients[d] + 1
        positions *= length
        letter = letters[position]
        bits = {"B": 1, "CP": power_of_two((length - 1).bit_length()), "RLE": power_of_two((length - 1).bit_length())}
        payload = power_of_two(positions.bit_length()) if letter == "UOP" else 0
        rows.insert(0, [letter, bits.get(letter, 0), payload])
    lists = {}
    for i, name in enumerate(names):
        own = [row for row, loop in zip(rows, loops, strict=True) if loop[0] >= i]
        lists[name] = own or [[rows[-1][0], 0, 0]]
    return letters, lists
