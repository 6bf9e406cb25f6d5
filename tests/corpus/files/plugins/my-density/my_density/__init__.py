"""Every word is nonzero with the same probability, independently of all others: occupancies are binomial."""
from pathlib import Path

import math

import attrs
import numpy as np
from sparsemap import DensityModel, Occupancy, hookimpl


def log_choose(n, k):
    """Logarithm of the binomial coefficients C(n, k), for an array k; minus infinity where k > n."""
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, n + 1)))])
    some = np.minimum(k, n).astype(int)
    return np.where(k <= n, log_factorial[n] - log_factorial[some] - log_factorial[n - some], -np.inf)


@attrs.frozen
class Flips(Occupancy):
    shape: tuple
    density: float

    def distribution(self, tile):
        words = math.prod(tile)
        k = np.arange(words + 1)
        share = np.exp(log_choose(words, k) + k * math.log(self.density) + (words - k) * math.log1p(-self.density))
        return k[share > 0], share[share > 0]

    def empty(self, tile):
        return (1 - self.density) ** math.prod(tile)

    def empty_within(self, sub_tile, tile, k):
        words, part = math.prod(tile), math.prod(sub_tile)
        return np.exp(log_choose(words - part, k) - log_choose(words, k))

    def largest(self, tile):
        return float(math.prod(tile))

    def draw(self, rng):
        return rng.random(self.shape) < self.density


@attrs.frozen(kw_only=True)
class MyDensity(DensityModel):
    type_name = "my-density"
    density: float = attrs.field(validator=[attrs.validators.gt(0), attrs.validators.lt(1)])

    def occupancy(self, shape):
        return Flips(tuple(shape), self.density)


@hookimpl
def register_density_models():
    return [MyDensity]


@hookimpl
def register_specs():
    return [Path(__file__).parent]
