"""Operations of a `Space` on genomes, segment by segment, with checked results. Genomes (n, G) are within bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..errors import SpecError
from ..pieces.boundary import guarded, locked, numbers, wrong
from ..pieces.contracts import Array, Segment
from ..pieces.contracts.base import GeneColumns, Genomes
from .designs import Decoded, Designs
from .space import Space


def guess(space: Space, count: int, rng: np.random.Generator) -> Genomes:
    genomes = np.empty((count, len(space)), dtype=np.int64)
    for name, segment in space.segments.items():
        shape = (len(space.segment_genes[name].names), count)
        genomes[:, space.slices[name]] = _genes(segment, "guess", shape, count, space.problem, rng).T
    return genomes


def columns_of(space: Space, genomes: Genomes) -> dict[str, Array]:
    """Decoded columns of genomes."""
    by_gene = np.ascontiguousarray(genomes.T)
    columns: dict[str, Array] = {}
    for name, segment in space.segments.items():
        columns.update(_columns(space, segment, by_gene[space.slices[name]]))
    return columns


def _columns(space: Space, segment: Segment, genes: GeneColumns) -> Mapping[str, Array]:
    """Columns decoded by a segment from genes (g, B)."""
    with guarded(segment, "decode"):
        columns = segment.decode(locked(genes), space.problem)
        shapes = {name: column.shape[-1:] for name, column in columns.items()}
    expected = dict.fromkeys(segment.provides, genes.shape[1:])
    if shapes != expected:
        raise wrong(segment, "decode", f"returned columns of batches {shapes}, expected {expected}")
    return columns


def _genes(segment: Segment, method: str, shape: tuple[int, ...], *given: Any) -> GeneColumns:
    """Genes (g, B) from a method of a segment."""
    with guarded(segment, method):
        genes = getattr(segment, method)(*given)
    return numbers(segment, method, "genes", genes, shape, "iu")


def vary(space: Space, genomes: Genomes, name: str, rng: np.random.Generator) -> Genomes:
    times = np.array([[other == name] for other in space.segments]) * np.ones(len(genomes), dtype=np.int64)
    return varied(space, genomes, times, rng)


def varied(space: Space, genomes: Genomes, times: Array, rng: np.random.Generator) -> Genomes:
    by_gene = np.array(genomes.T, order="C")
    for (name, segment), count in zip(space.segments.items(), times, strict=True):
        part = by_gene[space.slices[name]]
        for again in range(count.max(initial=0)):
            (rows,) = (count > again).nonzero()
            genes = part.take(rows, axis=1)
            part[:, rows] = _genes(segment, "vary", genes.shape, locked(genes), space.problem, rng)
    return np.ascontiguousarray(by_gene.T)


def canonical(space: Space, genomes: Genomes, segments: Iterable[str] | None) -> Genomes:
    by_gene, decoded = np.array(genomes.T, order="C"), dict[str, Mapping[str, Array]]()
    for name in space.canonical_order if segments is None else segments:
        segment, part = space.segments[name], space.slices[name]
        columns: dict[str, Array] = {}
        for other, provider in space.segments.items():
            if set(provider.provides) & set(segment.canonical_needs):
                decoded[other] = decoded.get(other) or _columns(space, provider, by_gene[space.slices[other]])
                columns.update(decoded[other])
        decoded.pop(name, None)
        genes = by_gene[part]
        by_gene[part] = _genes(segment, "canonical", genes.shape, genes, space.problem, columns)
    return np.ascontiguousarray(by_gene.T)


def canonical_order(space: Space) -> tuple[str, ...]:
    """See `Space.canonical_order`."""
    rest, done = dict(space.segments), list[str]()
    while rest:
        open_columns = {column for segment in rest.values() for column in segment.provides}
        ready = [name for name, segment in rest.items() if not open_columns & set(segment.canonical_needs)]
        if not ready:
            text = f"{' and '.join(rest)} need each other's columns to tell equal designs"
            raise SpecError.at(space.problem.files.get("space", "space"), "segments", text)
        done += ready
        rest = {name: segment for name, segment in rest.items() if name not in ready}
    return tuple(done)


def repaired(space: Space, genomes: Genomes, rng: np.random.Generator) -> Decoded:
    by_gene = np.array(genomes.T, order="C")
    columns = columns_of(space, by_gene.T)
    for name, segment in space.segments.items():
        if type(segment).repair is Segment.repair:
            continue
        part = space.slices[name]
        genes = by_gene[part]
        genes.flags.writeable = False  # what is changed in place would not be seen here
        changed_genes = _genes(segment, "repair", genes.shape, genes, space.problem, columns, rng)
        if (changed_genes != genes).any():
            by_gene[part] = changed_genes
            columns.update(_columns(space, segment, genes))
    return Decoded(np.ascontiguousarray(by_gene.T), Designs(columns))
