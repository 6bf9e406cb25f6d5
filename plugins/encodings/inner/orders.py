"""Loop orders as Cantor codes 1..D!: codes (L, B), orders (L, D, B) from the outermost loop."""

from __future__ import annotations

from sparsemap.inner.types import Reals, Reals3, Small3, Whole, Wholes, Wholes2

__all__ = ["COPIED", "busy_first", "codes_of", "orders_of", "vary_orders"]

COPIED = 0.2
"""Share of moves copying the order of another level."""


def orders_of(codes: Wholes2, order: Small3) -> None:
    """Decode all codes to orders."""
    for level in range(codes.shape[0]):
        for b in range(codes.shape[1]):
            unrank(codes[level, b], order, level, b)


def unrank(code: Whole, order: Small3, level: Whole, b: Whole) -> None:
    """Decode one order, in the factorial number system."""
    dims = order.shape[1]
    rest = code - 1
    for place in range(dims - 1, -1, -1):
        order[level, place, b] = rest % (dims - place)
        rest = rest // (dims - place)
    for place in range(dims - 2, -1, -1):  # ranks among the unused dimensions become the dimensions themselves
        for later in range(place + 1, dims):
            if order[level, later, b] >= order[level, place, b]:
                order[level, later, b] += 1


def codes_of(order: Small3, codes: Wholes2) -> None:
    """Encode all orders: Eq. 1, `sum (a_i - 1) * (D - i)! + 1`."""
    for level in range(codes.shape[0]):
        for b in range(codes.shape[1]):
            codes[level, b] = rank_of(order, level, b)


def rank_of(order: Small3, level: Whole, b: Whole) -> Whole:
    """Code of one order."""
    dims = order.shape[1]
    code = 0
    for place in range(dims):
        smaller = 0
        for later in range(place + 1, dims):
            if order[level, later, b] < order[level, place, b]:
                smaller += 1
        code = code * (dims - place) + smaller
    return code + 1


def busy_first(codes: Wholes2, bounds: Reals3, order: Small3) -> None:
    """Move loops of bound one (`bounds`, (L, D, B)) to the end, in workload order. Scratch: `order` (1, D, 2)."""
    dims = order.shape[1]
    for level in range(codes.shape[0]):
        for b in range(codes.shape[1]):
            unrank(codes[level, b], order, 0, 0)
            some = 0
            for place in range(dims):
                if bounds[level, order[0, place, 0], b] > 1.0:
                    order[0, some, 1] = order[0, place, 0]
                    some += 1
            for d in range(dims):
                if bounds[level, d, b] <= 1.0:
                    order[0, some, 1] = d
                    some += 1
            codes[level, b] = rank_of(order, 0, 1)


def vary_orders(
    codes: Wholes2, level: Wholes, first: Wholes, step: Wholes, kind: Reals, source: Wholes, order: Small3
) -> None:
    """Change the order of one level per design, in place: copy the order of the level at the next entry of `source`, or
    swap the loop at `first` with the loop `step` + 1 places later. All (B,). Scratch: `order` (1, D, 1)."""
    dims, copies = order.shape[1], 0
    for b in range(codes.shape[1]):
        if kind[b] < COPIED:
            codes[level[b], b] = codes[source[copies], b]
            copies += 1
            continue
        unrank(codes[level[b], b], order, 0, 0)
        second = (first[b] + 1 + step[b]) % dims
        loop = order[0, first[b], 0]
        order[0, first[b], 0] = order[0, second, 0]
        order[0, second, 0] = loop
        codes[level[b], b] = rank_of(order, 0, 0)
