"""A case of the reference cost model, decoded: workload, architecture and mapping (specification sections 1 to 3).

Levels are numbered from the innermost (0) outwards, loops are listed innermost first.
"""

import math
from dataclasses import dataclass, field

from reference_density import density_model

COMPRESSED = {"B", "CP", "RLE"}


class Invalid(Exception):
    """The design cannot be built; carries the `ref` entry that says why."""

    def __init__(self, reason, level=None, needed_available=None):
        super().__init__(reason)
        self.ref = {"valid": False, "reason": reason}
        if level is not None:
            self.ref |= {"level": level, "needed_available": needed_available or []}


@dataclass(frozen=True)
class Loop:
    dim: str
    bound: int
    spatial: bool
    level: int
    stride: int  # product of the bounds of the same dim further in
    extents: dict = field(hash=False)  # operation-space box up to and including this loop


@dataclass
class Rank:
    """One rank of a tensor at a level (6.1)."""

    format: str
    metadata_bits: int
    payload_bits: int
    length: int = 1  # positions of a fiber
    box: list = field(default_factory=list)  # tile under one fiber
    max_fibers: int = 1

    def bits(self, units):
        return units[0] * self.metadata_bits + units[1] * self.payload_bits


class Tensor:
    def __init__(self, name, spec, dims, quirks):
        self.name, self.is_output = name, bool(spec.get("output"))
        self.projection = spec["proj"]
        self.dims = {dim for rank in self.projection for dim, _ in rank}
        self.model = density_model(spec["density"], self.box(dims), quirks)

    def box(self, extents):
        return [1 + sum(coef * (extents.get(dim, 1) - 1) for dim, coef in rank) for rank in self.projection]

    def volume(self, extents):
        return math.prod(self.box(extents))

    def shift(self, loop, steps=1):
        """Translation of the tile by `steps` of a loop, per rank."""
        moved = [sum(coef for dim, coef in rank if dim == loop.dim) for rank in self.projection]
        return tuple(steps * loop.stride * coef for coef in moved)


class Design:
    """A case, decoded."""

    def __init__(self, case, quirks):
        self.quirks = quirks
        workload, hardware, self.sparse = case["workload"], case["hw"], case.get("sparse") or {}
        self.dims = workload["dims"]
        self.hardware = hardware
        self.names = list(hardware["levels"])[::-1]  # innermost first
        self.levels = [hardware["levels"][name] for name in self.names]
        self.count = len(self.levels)
        self.tensors = [Tensor(name, spec, self.dims, quirks) for name, spec in workload["tensors"].items()]
        inner_instances = [hardware["mac"]["instances"]] + [level["instances"] for level in self.levels]
        self.fan_out = [inner_instances[s] // inner_instances[s + 1] for s in range(self.count)]
        bypass = case["mapping"].get("bypass") or {}
        resides = workload.get("resides", {})  # tensor -> the outermost level that has it
        self.home = {t.name: self.names.index(resides.get(t.name, self.names[-1])) for t in self.tensors}
        self.stored = {  # levels that store a tensor, innermost first
            t.name: [s for s in range(self.home[t.name] + 1) if t.name not in bypass.get(self.names[s], [])]
            for t in self.tensors
        }
        self.loops = self._nest(case["mapping"])
        self.instances = [self.spatial_product(s + 1) for s in range(self.count)]
        self.macs = self.spatial_product(0)
        self.iterations = math.prod(loop.bound for loop in self.loops if not loop.spatial)

    def _nest(self, mapping):
        loops, extents = [], dict.fromkeys(self.dims, 1)
        for level in range(self.count):
            index = self.count - level
            spatial = mapping.get(f"L{index}_S") or [[dim, 1] for dim in self.dims]
            if self.fan_out[level] == 1:  # then the level has no spatial loops at all, not even of bound 1
                if any(bound > 1 for _, bound in spatial):
                    raise Invalid("fanout")
                spatial = []
            group = [(dim, n, True) for dim, n in spatial[::-1]]
            group += [(dim, n, False) for dim, n in mapping[f"L{index}_T"][::-1]]
            for dim, bound, is_spatial in group:
                stride = extents[dim]
                extents = extents | {dim: stride * bound}
                loops.append(Loop(dim, bound, is_spatial, level, stride, extents))
        if extents != self.dims:
            raise Invalid("mapping")
        return loops

    def spatial_product(self, from_level):
        return math.prod(loop.bound for loop in self.loops if loop.spatial and loop.level >= from_level)

    def block(self, low, high=None):
        """The loops of the blocks low..high, innermost first."""
        return [loop for loop in self.loops if low <= loop.level <= (low if high is None else high)]

    def extents(self, level):
        """Operation-space box of the tile of a level; -1 is one operation."""
        return self.block(level)[-1].extents if level >= 0 else {}

    def span(self, tensor, level):
        """The level whose tile this one has: where a tensor resides, the outermost one's, which is the whole tensor."""
        return self.count - 1 if level == self.home[tensor.name] else level

    def child(self, tensor, level):
        """The next inner level that stores the tensor, -1 when there is none."""
        return max((s for s in self.stored[tensor.name] if s < level), default=-1)

    def parent(self, tensor, level):
        return min((s for s in self.stored[tensor.name] if s > level), default=None)

    def formats(self, tensor, level):
        if level is None or level < 0 or level not in self.stored[tensor.name]:
            return []
        return self.sparse.get("ranks", {}).get(tensor.name, {}).get(self.names[self.span(tensor, level)], [])

    def is_compressed(self, tensor, level):
        return any(rank[0] in COMPRESSED for rank in self.formats(tensor, level))

    def actions(self, level):
        return self.sparse.get("actions", {}).get(self.names[level], [])

    @property
    def is_sparse(self):
        """Without any format, action or compute optimisation the densities are ignored completely (5.6)."""
        everywhere = range(self.count)
        return (
            self.sparse.get("compute", "none") != "none"
            or any(self.actions(s) for s in everywhere)
            or any(self.formats(t, s) for t in self.tensors for s in everywhere)
        )
