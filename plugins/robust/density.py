"""A density known only as a range, such as for activations, which change with every input."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import attrs
import numpy as np

from sparsemap import DensityModel, Occupancy, SpecError
from sparsemap.inner.arrays import dot

POINTS = 5
"""Default number of densities in a range."""
Weights = Literal["inverse", "equal", "probability"] | tuple[float, ...]

share = [attrs.validators.gt(0), attrs.validators.le(1)]


def check_weights(weights: Sequence[float], count: int, what: str) -> None:
    """Raise ValueError unless there are `count` weights, none negative, not all zero."""
    if len(weights) != count:
        raise ValueError(f"has {len(weights)} weights, expected {count}, one per {what}")
    if min(weights) < 0 or not 0 < sum(weights) < math.inf:
        raise ValueError(f"is {list(weights)}, expected weights from 0 on, and one above 0")


def _high(instance: Range, attribute: attrs.Attribute, value: float) -> None:
    if not instance.low < value:
        raise ValueError(f"is {value:g}, expected more than low = {instance.low:g}")


def _points(instance: Range, attribute: attrs.Attribute, points: tuple[float, ...]) -> None:
    for index, point in enumerate(points):
        if not instance.low <= point <= instance.high:
            raise ValueError(f"has {point:g}, which is not within low = {instance.low:g} and high = {instance.high:g}")
        if point in points[:index]:
            raise ValueError(f"has {point:g} twice")


def _weights(instance: Range, attribute: attrs.Attribute, weights: str | tuple[float, ...]) -> None:
    if not isinstance(weights, str):
        check_weights(weights, len(instance.densities), "point")


def _histogram(instance: Range, attribute: attrs.Attribute, histogram: tuple[float, ...]) -> None:
    if histogram:
        check_weights(histogram, len(histogram), "bin")


@attrs.frozen(kw_only=True)
class Range(DensityModel):
    """A share of nonzeros between `low` and `high`; the objective `robust` searches designs for several densities in
    between.

    A non-robust objective uses the single `nominal` density."""

    type_name: ClassVar[str] = "range"

    low: float = attrs.field(validator=share)
    """The least share of nonzeros."""
    high: float = attrs.field(validator=[*share, _high])
    """The largest share of nonzeros."""
    points: tuple[float, ...] = attrs.field(default=(), validator=_points)
    """Densities for the evaluation of designs; absent: five, evenly from `high` to `low`."""
    weights: Weights = attrs.field(default="inverse", validator=_weights)
    """Weight of each point: "inverse", 1 / density; "equal"; "probability", the chance of a density nearer to the point
    than to the others; or a list of numbers."""
    histogram: tuple[float, ...] = attrs.field(default=(), validator=_histogram)
    """Frequencies of densities in bins of equal width from `low` to `high`; absent: uniform. For "probability"."""
    nominal_: float | None = attrs.field(default=None, alias="nominal", validator=attrs.validators.optional(share))
    """Density for the numbers `energy_pj` and `cycles`; absent: the expected density, the mean of the points with the
    probabilities of `histogram`."""
    model: str | DensityModel = "uniform"
    """Distribution of the nonzeros: the type of a density model with a key `density`, or its table without that key."""

    @classmethod
    def from_table(cls, table: Any) -> Any:
        """The table with the model as a piece's table; a density of 1 stands in until `at` sets the density."""
        if not isinstance(table, Mapping):
            return table
        model = table.get("model", "uniform")
        if isinstance(model, str):
            model = {"type": model}
        return {**table, "model": {"density": 1.0, **model} if isinstance(model, Mapping) else model}

    @property
    def densities(self) -> tuple[float, ...]:
        """The points, explicit or by default."""
        evenly = np.linspace(self.high, self.low, POINTS)
        return self.points or tuple(float(f"{density:.6g}") for density in evenly)

    @property
    def expected(self) -> float:
        """The `nominal` density, or the expected density."""
        return dot(np.array(self.probabilities()), np.array(self.densities)) if self.nominal_ is None else self.nominal_

    @property
    def nominal(self) -> DensityModel:
        return self.at(self.expected)

    def occupancy(self, shape: tuple[int, ...]) -> Occupancy:
        return self.nominal.occupancy(shape)

    def at(self, density: float) -> DensityModel:
        """The same pattern at a single density."""
        if isinstance(self.model, str):
            text = f"the name '{self.model}' means something in a registry only; give the object"
            raise SpecError.at("", "model", text)
        return self.model.at(density)

    def weighed(self, rule: str = "") -> tuple[float, ...]:
        """Weights of the points by `weights`, or by another rule."""
        match rule or self.weights:
            case "inverse":
                return tuple(1.0 / density for density in self.densities)
            case "probability":
                return self.probabilities()
            case str():
                return (1.0,) * len(self.densities)
            case weights:
                return weights

    def probabilities(self) -> tuple[float, ...]:
        """Per point, the chance of a density nearer to the point than to the others; the chances add up to 1."""
        order = np.argsort(self.densities)
        ascending = np.array(self.densities)[order]
        between = (ascending[1:] + ascending[:-1]) / 2
        counts = np.array(self.histogram or (1.0,), np.float64)
        edges = np.linspace(self.low, self.high, len(counts) + 1)
        below = np.interp([self.low, *between, self.high], edges, np.concatenate([[0.0], np.cumsum(counts)]))
        found = np.empty(len(order))
        found[order] = np.diff(below) / counts.sum()
        return tuple(found.tolist())
