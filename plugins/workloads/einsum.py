"""Workloads as einsums of one to four sparse operands: matrix products, convolutions, tensor products (cost model, 1).

```toml
kind = "workload"
name = "strided-convolution"
einsum = "Z[k, p, q] = P[c, 2*p + r, 2*q + s] * Q[k, c, r, s]"
dims = { k = 64, c = 32, p = 28, q = 28, r = 3, s = 3 }
density = { P = 0.4, Q = { type = "structured", density = 0.5 } }
```"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar

import attrs

from sparsemap.errors import Mistake, SpecError, nearest, unknown
from sparsemap.inner.arrays import expm1, log1p
from sparsemap.pieces.contracts import DensityModel, Loops, Shape, Tensor, Workload, box, naming
from sparsemap.spec.structuring import Reader, collecting, join

from .notation import Einsum

LIMIT = 2**63
"""Limit on products of sizes, counted in int64."""
WORDS = 2**53
"""Limit on words of tensors and tiles, counted in float64, exact up to here."""
DENSE = 1 - 1e-9
"""Density above which an output counts as dense."""


def _notation(instance: Any, attribute: attrs.Attribute, value: str) -> None:
    Einsum.parse(value)


def _dims(instance: Any, attribute: attrs.Attribute, dims: Mapping[str, Any]) -> None:
    mistakes: list[Mistake] = []
    for dim, size in dims.items():
        with collecting(mistakes, join("", dim)):
            if Reader().read(int, size) < 1:
                raise ValueError(f"is {size}, expected at least 1")
    with suppress(ValueError):  # a wrong einsum is reported at its own key
        used = Einsum.parse(instance.einsum).dims
        for dim in (dim for dim in dims if dim not in used):
            guess = nearest(dim, [name for name in used if name not in dims])
            hint = f"did you mean '{guess}'?" if guess else f"it has {', '.join(used)}"
            text = f"the einsum '{instance.einsum}' has no such dimension; {hint}"
            mistakes.append(Mistake("", join("", dim), text))
        for dim in (dim for dim in used if dim not in dims):
            mistakes.append(Mistake("", "", f"has no size for dimension '{dim}' of the einsum '{instance.einsum}'"))
    if mistakes:
        raise SpecError(mistakes)


def _density(instance: Any, attribute: attrs.Attribute, density: Mapping[str, Any]) -> None:
    mistakes = [
        Mistake("", join("", name), f"is {share}, expected a share of nonzeros above 0, up to 1")
        for name, share in density.items()
        if _is_number(share) and not 0 < share <= 1
    ]
    with suppress(ValueError):
        einsum = Einsum.parse(instance.einsum)
        names = [access.name for access in einsum.accesses]
        for name in (name for name in density if name not in names):
            mistakes.append(Mistake("", join("", name), unknown("tensor", name, names)))
        for access in (access for access in einsum.operands if density and access.name not in density):
            mistakes.append(Mistake("", "", f"has no entry for operand '{access.name}'; give 1.0 if it is dense"))
    if mistakes:
        raise SpecError(mistakes)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@attrs.frozen(kw_only=True)
class EinsumWorkload(Workload):
    """An einsum over one to four operands; the genome takes the dimensions in the order of `dims`."""

    type_name: ClassVar[str] = "einsum"

    einsum: str = attrs.field(validator=_notation)
    """The output, `=` (or `+=`), and the product of one to four operands; an index may be a sum, for example `2*p + r`."""
    dims: Mapping[str, Any] = attrs.field(validator=[attrs.validators.min_len(1), _dims])
    """Size of every dimension, a whole number."""
    density: Mapping[str, Any] = attrs.field(factory=dict, validator=_density, metadata=naming("density"))
    """By tensor: the share of nonzeros, spread uniformly, or the table of a density model; not 0. Absent: all tensors
    are dense. Default of the output: the expected density of a sum of products of independent operands."""

    def __attrs_post_init__(self) -> None:
        mistakes = [Mistake("", "dims", text) for text in self._overflows()]
        if mistakes:
            raise SpecError(mistakes)

    def loops(self, registry: Any) -> Loops:
        """Loops and tensors, operands first, then the output."""
        einsum = Einsum.parse(self.einsum)
        models: dict[str, DensityModel] = {}
        mistakes: list[Mistake] = []
        for name, value in (self.density or {access.name: 1.0 for access in einsum.operands}).items():
            with collecting(mistakes, join("density", name)):
                models[name] = registry.build("density", spread(value) if _is_number(value) else value)
        for access in einsum.accesses:  # without nonzeros there would be designs without energy and cycles
            model, path = models.get(access.name), join("density", access.name)
            try:
                if model is not None and not model.occupancy(box(access.ranks, self.dims)).density > 0:
                    mistakes.append(Mistake("", path, "has no nonzeros; there is nothing to compute"))
            except SpecError as error:  # such as a file of data, which this one names
                mistakes += [attrs.evolve(item, file="", path=path, message=_told(item)) for item in error.mistakes]
        if mistakes:
            raise SpecError(mistakes)
        if einsum.output.name not in models:
            models[einsum.output.name] = self._output_model(registry, einsum, models)
        tensors = tuple(
            Tensor(access.name, access.ranks, models[access.name], output=access is einsum.output)
            for access in einsum.accesses
        )
        return Loops(dict(self.dims), tensors)

    def shape(self, inputs: Sequence[Shape]) -> Shape:
        """The box of the output; input shapes are not checked."""
        return box(Einsum.parse(self.einsum).output.ranks, self.dims)

    # -- density

    def _output_model(self, registry: Any, einsum: Einsum, models: Mapping[str, DensityModel]) -> DensityModel:
        """1 - (1 - dP dQ ..) ** (products summed into one output word), as uniform; dense if the value reaches 1.

        An operand constant over the sum, such as the mask of a sampled product, is a factor before the sum."""
        summed = {dim: size for dim, size in self.dims.items() if dim not in einsum.output.dims}
        products = math.prod(summed.values())
        mask = nonzero = 1.0
        for access in einsum.operands:
            density = models[access.name].occupancy(box(access.ranks, self.dims)).density
            if products > 1 and not any(summed.get(dim, 1) > 1 for dim in access.dims):
                mask *= density
            else:
                nonzero *= density
        density = mask if nonzero >= 1 else mask * -expm1(products * log1p(-nonzero))
        table = spread(1.0 if density > DENSE else density)
        return registry.build("density", table, "", f"density.{einsum.output.name}")

    def _overflows(self) -> Iterator[str]:
        if math.prod(self.dims.values()) >= LIMIT:
            yield "multiply up to 2^63 or more, which is too large to be counted"
        for access in Einsum.parse(self.einsum).accesses:
            if math.prod(box(access.ranks, self.dims)) >= WORDS:
                yield f"make tensor '{access.name}' 2^53 words or larger, which is too large to be counted"


def _told(mistake: Mistake) -> str:
    """A mistake of another file within a message."""
    return ": ".join(part for part in (mistake.file, mistake.path, mistake.message) if part)


def spread(density: float) -> dict[str, Any]:
    """The density table for a plain number: uniform, or structured if every word is nonzero."""
    return {"type": "structured" if density == 1 else "uniform", "density": float(density)}
