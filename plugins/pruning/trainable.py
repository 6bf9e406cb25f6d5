"""Masks that are trained with the weights (*Weight Block Sparsity*, III-D).

A mask is real numbers Gamma, one per block, that multiply the block; a penalty lambda(Gamma) is added to the loss, and
in the end the smallest entries are cut. The authors report that this did not work; `docs/results/wbs-table-1.md` has
what it does here. max and min are smooth: LSE(x, alpha) = log(sum exp(alpha x)) / alpha.
"""

from __future__ import annotations

import math

import attrs
import numpy as np

from sparsemap.errors import SparseMapError
from sparsemap.pieces.contracts.base import Array

PENALTIES = ("range", "range-bounded", "ratio")
"""Equations (13), (14) and (15)."""


def smooth_max(x: Array, alpha: float) -> float:
    """LSE(x, alpha); above max(x) by at most log(N) / alpha."""
    top = float(np.max(x))
    return top + math.log(float(np.exp(alpha * (x - top)).sum())) / alpha


def smooth_min(x: Array, alpha: float) -> float:
    """-LSE(-x, alpha)."""
    return -smooth_max(-x, alpha)


def _softmax(x: Array, alpha: float) -> Array:
    weights = np.exp(alpha * (x - np.max(x)))
    return weights / weights.sum()


@attrs.frozen
class Penalty:
    """lambda(Gamma) and its gradient.

    (13) -(max - min) + beta * (sum(Gamma) - T)^2 + iota * sum |Gamma|; (14) adds sum max(-Gamma, 0) + max(Gamma - 1, 0);
    (15) has -min / max in place of the range. T is the number of blocks to keep; the paper's L2(Gamma - T) is read as
    the square of a sum, since T is one number.
    """

    target: float
    form: str = attrs.field(default="range", validator=attrs.validators.in_(PENALTIES))
    alpha: float = 100.0
    beta: float = 1e-3
    iota: float = 1e-3

    def value(self, gamma: Array) -> float:
        top, bottom = smooth_max(gamma, self.alpha), smooth_min(gamma, self.alpha)
        if self.form == "ratio" and top <= 0:
            raise SparseMapError("the penalty -min / max needs a mask with an entry above 0")
        first = -bottom / top if self.form == "ratio" else bottom - top
        if self.form == "range-bounded":
            first += float(np.maximum(-gamma, 0).sum() + np.maximum(gamma - 1, 0).sum())
        return first + self.beta * float(gamma.sum() - self.target) ** 2 + self.iota * float(np.abs(gamma).sum())

    def gradient(self, gamma: Array) -> Array:
        """d lambda / d Gamma, in the shape of Gamma."""
        at_top, at_bottom = _softmax(gamma, self.alpha), _softmax(-gamma, self.alpha)
        if self.form == "ratio":
            top, bottom = smooth_max(gamma, self.alpha), smooth_min(gamma, self.alpha)
            first = -at_bottom / top + bottom / top**2 * at_top
        else:
            first = at_bottom - at_top
        if self.form == "range-bounded":
            first = first - (gamma < 0) + (gamma > 1)
        return first + 2 * self.beta * (gamma.sum() - self.target) + self.iota * np.sign(gamma)
