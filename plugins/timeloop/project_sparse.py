"""The sparse optimisations of a Timeloop project as formats of rank slots and mechanisms of places.

A level lists ranks for the loops of its tile, from the outermost or the innermost loop. SparseMap has one list per
tensor for the whole hierarchy, and the level of decoding. Levels that agree on every loop are merged into the list. On
disagreement there is a note, and no design."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import attrs

from sparsemap.errors import unknown
from sparsemap.spec.notes import Notes
from sparsemap.spec.yaml_tables import YamlSource, YamlTable, error

from .project_hardware import Component, Stack
from .project_mapping import ProjectNest
from .sparse import ACTIONS as EXPORTED
from .sparse import UNITS

Rank = tuple[str, int, int]
"""Code, bits of metadata, bits of payload."""
PLAIN: Rank = ("UOP", 0, 0)
FREE: Rank = ("B", 0, 0)
"""Nonzeros alone, without metadata."""
LISTS = {"B": "mask", "CP": "coordinates", "RLE": "runs"}
"""Encoder of a code (`lists` of a format)."""
OLDER_QUIRKS = ("first-fills", "lane-shares")
"""Differences in counting before v3.0.3. These evaluators also do not round coordinates up, and a list of flattened
dimensions takes one loop of each."""
ACTIONS = {text: action for action, text in {**EXPORTED, "pack": "position-skipping"}.items()}
ACTIONS |= {text.replace("-", "_"): action for text, action in ACTIONS.items()}


@attrs.frozen
class ListedRanks:
    """A level's list of ranks for a tensor."""

    ranks: tuple[tuple[Rank, frozenset[str]], ...]
    """Ranks, outer to inner, each with its flattened dimensions; empty: a single loop."""
    inner_first: bool
    source: YamlSource
    older: bool = False
    """Whether a list of dimensions takes one loop of each, instead of all consecutive loops."""


@attrs.frozen
class SparseDesign:
    """Formats by tensor, mechanisms by place, and the tables of both by name."""

    formats: Mapping[str, list[str]]
    decoded: Mapping[str, str]
    mechanisms: Mapping[str, str]
    pieces: Mapping[str, Mapping[str, Any]]


def sparse_targets(project: YamlTable, parts: Sequence[Component]) -> dict[str, YamlTable]:
    """The optimisations by component, from all places in the project."""
    found: dict[str, YamlTable] = {}
    names = [part.name for part in parts]
    for row in project.table("sparse_optimizations").rows("targets"):
        name = row.get("name", row.get("target"))
        if name not in names:
            raise error(row.at("name"), unknown("target", str(name), names))
        found[str(name)] = row
    for part in parts:
        if own := part.table.table("sparse_optimizations"):
            found.setdefault(part.name, own)
    return found


# ---------------------------------------------------------------------------------------------------------------- formats


def rank_list(space: YamlTable, level: Component, older: bool, notes: Notes) -> ListedRanks:
    """The ranks of a tensor at a level, with the level's default widths."""
    ranks = []
    for row in space.rows("ranks"):
        code = str(row.get("format", "")).upper()
        if code not in UNITS:
            raise error(row.at("format"), unknown("format", code, tuple(UNITS)))
        flat = row.get("flattened_rankIDs") or []
        dims = frozenset(str(name) for group in flat for name in (group if isinstance(group, list) else [group]))
        metadata, payload = row.number("metadata_word_bits"), row.number("payload_word_bits")
        usual = 1 if code == "B" else level.metadata_word
        if (code in ("CP", "RLE") and metadata is None) or (code == "UOP" and payload is None):
            text = f"{level.name}: {code} without a width; {level.metadata_word} bits, as the level has them"
            notes.assumed(row.source, text)
        bits = 0 if code == "UOP" else _adjusted(usual if metadata is None else metadata, level)
        rank = (code, bits, _adjusted(level.metadata_word if payload is None else payload, level))
        ranks.append((rank, dims))
    order = str(space.get("rank_application_order", "outer-to-inner"))
    if order not in ("outer-to-inner", "inner-to-outer"):
        raise error(space.at("rank_application_order"), f"expected outer-to-inner or inner-to-outer, found {order}")
    return ListedRanks(tuple(ranks), order == "inner-to-outer", space.at("ranks"), older)


def _adjusted(bits: float, level: Component) -> int:
    """Timeloop's width: the next width that divides an access, up to twice the given width."""
    width, given = level.metadata_width, int(bits)
    if given and width:
        return next((wider for wider in range(given, min(2 * given, 4096)) if width % wider == 0), given)
    return given


Run = tuple[Rank, int]
"""A rank and its number of loops; 0: a tile decoded as a whole."""


def _assigned(listed: ListedRanks, loops: Sequence[str], notes: Notes) -> list[Run] | None:
    """The ranks in use of loops (outer to inner, by dimension); None, with a note, if loops are left over.

    A rank takes one loop. A flattened rank takes the following loops of its dimensions, and none if the first loop has
    another dimension."""
    ranks = list(reversed(listed.ranks)) if listed.inner_first else list(listed.ranks)
    left = list(reversed(loops)) if listed.inner_first else list(loops)
    found: list[Run] = []
    for rank, dims in ranks:
        taken = [dim in dims and not (listed.older and dim in left[:i]) for i, dim in enumerate(left)]
        count = 1 if left and not dims else taken.index(False) if False in taken else len(left)
        left = left[count:]
        found += [(rank, count)] if count else []
    if left:
        notes.missing(listed.source, "more loops than ranks", f"{len(ranks)} ranks for {len(loops)} loops")
        return None
    return list(reversed(found)) if listed.inner_first else found


@attrs.frozen
class TensorFormats:
    """The ranks of a tensor, outer to inner, and the level of decoding, if any."""

    runs: Sequence[Run] = ()
    decoded: str = ""
    one_word: bool = False
    """Whether tiles of one word have metadata."""

    @property
    def slots(self) -> list[Rank | None]:
        """Rank by slot; None: flattened into the rank inside."""
        return [slot for rank, count in self.runs for slot in (*([None] * (count - 1)), rank)]


def tensor_formats(
    tensor: str, dims: set[str], lists: Mapping[str, ListedRanks], storing: Sequence[str], nest: ProjectNest,
    levels: Sequence[str], notes: Notes,
) -> TensorFormats | None:  # fmt: skip
    """Formats of the loops that move a tensor; None, with a note, if a single list of formats cannot express them."""
    packed = {level: any(rank[0] != "UOP" for rank, _ in listed.ranks) for level, listed in lists.items()}
    if not any(packed.values()):
        for level, listed in lists.items():
            if any(rank != PLAIN for rank, _ in listed.ranks):
                notes.missing(listed.source, "metadata of uncompressed tensors", f"{tensor} at {level}: offsets alone")
                return None
        return TensorFormats()
    inner = next((i for i, level in enumerate(storing) if not packed.get(level)), len(storing))
    again = next((level for level in storing[inner:] if packed.get(level)), "")
    if again:
        where = f"{tensor} is compressed at {again} and not at {storing[inner]}, which is further out"
        notes.missing(lists[again].source, "compressed on the way in", where)
        return None
    decoded = storing[inner] if inner < len(storing) else ""

    def loops_from(level: str, until: str = "") -> list[str]:
        stop = levels.index(until) if until else len(levels)
        return [dim for name in levels[levels.index(level) : stop] for dim, _ in nest.of(name) if dim in dims]

    one_word = False
    runs, child, own = list[Run](), decoded, 1 if decoded and loops_from(decoded) else 0
    for level in reversed(storing[:inner]):
        listed = lists[level]
        if not runs and own:  # the innermost rank is that of the tile that is decoded
            runs = [(listed.ranks[-1][0], 0)]
        elif not loops_from(level) and any(bits for (_, *widths), _ in listed.ranks for bits in widths):
            one_word = True
        head, tail = listed.ranks[: len(listed.ranks) - own], listed.ranks[len(listed.ranks) - own :]
        known = lists[child].ranks[len(lists[child].ranks) - own :] if child in lists and own else tail
        if [rank[0] for rank, _ in tail] != [rank[0] for rank, _ in known]:
            text = f"{tensor}: the innermost ranks of {level} are not those of {child}"
            notes.missing(listed.source, "formats that change on the way", text)
            return None
        if [rank for rank, _ in tail] != [rank for rank, _ in known]:
            notes.assumed(listed.source, f"{tensor}: {level} has the widths of {child} for the ranks of its tile")
        found = _assigned(attrs.evolve(listed, ranks=head), loops_from(level, child), notes)
        if found is None:
            return None
        runs, child, own = found + runs, level, len(listed.ranks) if loops_from(level) else 0
    if runs and not any(rank[0] != "UOP" for rank, _ in runs):
        notes.assumed(next(iter(lists.values())).source, f"{tensor}: compressed by ranks that no loop is left for")
        runs = [*runs[:-1], (FREE, runs[-1][1])]
    compressed = [rank[0] != "UOP" for rank, _ in runs]
    if any(above and not below for above, below in pairwise(compressed)):
        source = next(iter(lists.values())).source
        notes.missing(source, "offsets below a compressed rank", f"{tensor}: {[rank[0] for rank, _ in runs]}")
        return None
    return TensorFormats(runs, decoded, one_word)


def _piece(rank: Rank | None, older: bool) -> tuple[str, dict[str, Any]]:
    if rank is None:
        return "flattened", {}
    code, metadata, payload = rank
    if code == "UOP" and not payload:
        return "uncompressed", {}
    units, pointers = (text.replace("ceil(occupied)", "occupied") if older else text for text in UNITS[code])
    table = {
        "type": "expression", "compressed": code != "UOP",
        "metadata": units, "metadata_bits": str(metadata), "payload": pointers, "payload_bits": str(payload),
        **({"lists": LISTS[code]} if code in LISTS and metadata else {}),
        **({"entry_bits": str(metadata)} if code == "RLE" and metadata else {}),
    }  # fmt: skip
    return f"{code.lower()}-{metadata}-{payload}", table


# ------------------------------------------------------------------------------------------------------------- mechanisms


def mechanism(
    target: YamlTable, place: str, tensors: Sequence[str], bare: Sequence[str], notes: Notes
) -> dict[str, Any] | None:
    """The mechanism table of a place, empty without a mechanism; None, with notes, if not expressible.

    `bare`: dense tensors without metadata."""
    kinds: set[str] = set()
    filters: list[dict[str, Any]] = []
    failed = False
    for row in target.rows("action_optimization"):
        options = row.rows("options") if "options" in row else [row]
        kind = str(row.get("type", ""))
        for option in options:
            name, leaders = str(option.get("target", "")), option.names("condition_on")
            for tensor in (name, *leaders):
                if tensor not in tensors:
                    raise error(option.source, unknown("tensor", tensor, tensors))
            what = f"{place}: {kind} of {name} on {', '.join(leaders) or 'itself'}"
            if all(tensor in bare for tensor in (leaders or [name])):
                notes.assumed(option.source, f"{what} does nothing, since the leaders are dense")
            elif kind not in ACTIONS:
                notes.missing(row.at("type"), f"{kind or 'an unnamed action'}", what)
                failed = True
            elif bool(leaders) == (ACTIONS[kind] == "pack"):
                notes.missing(option.source, f"{kind} {'on' if leaders else 'without'} other tensors", what)
                failed = True
            elif len(options) > 1:
                notes.missing(row.at("options"), "a choice among several options", what)
                failed = True
            else:
                kinds.add(ACTIONS[kind])
                led = {"leader": [f"name:{leader}" for leader in leaders]} if leaders else {}
                filters.append({"target": f"name:{name}", **led})
                notes.taken(option.source, what)
    if len(kinds) > 1:
        notes.missing(target.at("action_optimization"), f"{' and '.join(sorted(kinds))} at one level", place)
        failed = True
    if failed:
        return None
    return {"type": "filters", "action": kinds.pop(), "filters": filters} if filters else {}


def condenses(target: YamlTable) -> bool:
    """Whether an action reduces the instances below to fewer than the spatial iterations."""
    return any(ACTIONS.get(str(row.get("type"))) == "condense" for row in target.rows("action_optimization"))


def sparse_design(
    stack: Stack, spots: Sequence[str], dense: Sequence[str], nest: ProjectNest, older: bool, notes: Notes
) -> SparseDesign | None:
    """Formats and mechanisms of a design; None, with notes, for features missing in SparseMap."""
    names, tensors, compute = [level.name for level in stack.levels], stack.tensors, stack.compute
    none = YamlTable(YamlSource())
    pieces: dict[str, dict[str, Any]] = {"format": {}, "mechanism": {}}
    chosen: dict[str, TensorFormats] = {}
    failed = False
    lists: dict[str, dict[str, ListedRanks]] = {tensor: {} for tensor in tensors}
    for level in stack.levels:
        target = stack.targets.get(level.name, none)
        for space in target.table("representation_format").rows("data_spaces"):
            tensor = str(space.get("name"))
            if tensor not in lists:
                raise error(space.at("name"), unknown("tensor", tensor, tuple(lists)))
            if space.rows("ranks"):
                lists[tensor][level.name] = rank_list(space, level, older, notes)
    for tensor, dims in tensors.items():
        storing = [name for name in names if tensor not in stack.bypass.get(name, [])]
        lists[tensor] = {name: listed for name, listed in lists[tensor].items() if name in storing}
        ranks = tensor_formats(tensor, dims, lists[tensor], storing, nest, names, notes)
        chosen[tensor], failed = ranks or TensorFormats(), failed or ranks is None
    bare, unit = [tensor for tensor in dense if not chosen[tensor].runs], stack.targets.get(compute.name, none)
    mechanisms = {at: mechanism(stack.targets.get(at, none), at, list(tensors), bare, notes) for at in names}
    if unit.rows("action_optimization"):
        text = f"{compute.name}: an action with a leader"
        notes.missing(unit.at("action_optimization"), "a compute unit's action with a leader", text)
        mechanisms[compute.name] = None
    kinds = [ACTIONS.get(str(row.get("type")), "") for row in unit.rows("compute_optimization")]
    if kinds and mechanisms.get(compute.name, {}) is not None:
        action, filters = "skip" if "skip" in kinds else "gate", [{"target": "operands", "leader": "operands"}]
        mechanisms[compute.name] = {"type": "filters", "action": action, "filters": filters}
        notes.taken(unit.at("compute_optimization"), f"{compute.name}: {action}s computes with an empty operand")
    if failed or any(table is None for table in mechanisms.values()):
        return None
    slots = max([1, *(len(ranks.slots) for ranks in chosen.values())])
    formats: dict[str, list[str]] = {}
    for tensor, ranks in chosen.items():
        found = [_piece(rank, older) for rank in ranks.slots]
        if ranks.one_word:
            name, innermost = found[-1]
            found[-1] = f"{name}-of-one-word", {**innermost, "of_one_word": True}
        pieces["format"] |= {name: table for name, table in found if table}
        formats[tensor] = ["uncompressed"] * (slots - len(found)) + [name for name, _ in found]
    places = {place: f"{place}-actions" if mechanisms.get(place) else "none" for place in (*spots, compute.name)}
    pieces["mechanism"] = {name: mechanisms[place] or {} for place, name in places.items() if name != "none"}
    decoded = {tensor: ranks.decoded for tensor, ranks in chosen.items() if ranks.decoded}
    return SparseDesign(formats, decoded, places, {kind: tables for kind, tables in pieces.items() if tables})
