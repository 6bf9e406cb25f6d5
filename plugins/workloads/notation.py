"""Parser of `Z[k, p, q] = P[c, 2*p + r, q + s] * Q[k, c, r, s]`. Every ValueError gives the found and the expected
text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

import attrs

T = TypeVar("T")
Rank = tuple[tuple[str, int], ...]
"""The terms of an index: dimension and coefficient."""

_NAME = r"[A-Za-z_]\w*"
_TOKEN = re.compile(rf"({_NAME}|\d+|\+=|[][=*+,])|\S")
MAX_LENGTH = 1000
MAX_OPERANDS = 4
_NOTATION = "expected a form such as 'Z[m, n] = P[m, k] * Q[k, n]'"


@attrs.frozen
class Access:
    """A tensor of an einsum, with its indices."""

    name: str
    ranks: tuple[Rank, ...]

    @property
    def dims(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(dim for rank in self.ranks for dim, _ in rank))


@attrs.frozen
class Einsum:
    """A product of one to four operands, summed over the dimensions absent from the output."""

    output: Access
    operands: tuple[Access, ...]

    @property
    def accesses(self) -> tuple[Access, ...]:
        """Operands first, then the output."""
        return (*self.operands, self.output)

    @property
    def dims(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(dim for access in self.accesses for dim in access.dims))

    @classmethod
    def parse(cls, text: str) -> Einsum:
        if len(text) > MAX_LENGTH:
            raise ValueError(f"has {len(text)} characters, an einsum may have {MAX_LENGTH}")
        reader = _Reader(text)
        output = reader.access()
        reader.take("=", "+=")
        operands = reader.several(reader.access, "*")
        if reader.next:
            reader.fail("the end, '*' or an operand")
        if len(operands) > MAX_OPERANDS:
            raise ValueError(f"has {len(operands)} operands right of '=', expected one to four: {_NOTATION}")
        names = [access.name for access in (*operands, output)]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"'{name}' stands for two tensors; give each a name of its own")
        inputs = {dim for access in operands for dim in access.dims}
        for dim in output.dims:
            if dim not in inputs:
                raise ValueError(f"'{dim}' indexes the output '{output.name}' but no operand")
        return cls(output, tuple(operands))


class _Reader:
    """Token reader."""

    def __init__(self, text: str) -> None:
        self.text, self.tokens, self.place = text, _tokens(text), 0

    @property
    def next(self) -> str:
        return self.tokens[self.place][0] if self.place < len(self.tokens) else ""

    def take(self, *expected: str) -> str:
        token = self.next
        if token not in expected:
            self.fail(" or ".join(f"'{sign}'" for sign in expected))
        self.place += 1
        return token

    def several(self, read: Callable[[], T], sign: str) -> list[T]:
        """One or more items, separated by a sign."""
        found = [read()]
        while self.next == sign:
            self.take(sign)
            found.append(read())
        return found

    def fail(self, expected: str) -> None:
        found = f"'{self.next}' at character {self.tokens[self.place][1] + 1}" if self.next else "the end"
        raise ValueError(f"'{self.text}' has {found} where {expected} should stand; {_NOTATION}")

    def word(self, pattern: str, what: str) -> str:
        if not re.fullmatch(pattern, self.next):
            self.fail(what)
        return self.take(self.next)

    def access(self) -> Access:
        """A tensor with its indices; `Z[]` is a single value."""
        name = self.word(_NAME, "the name of a tensor")
        self.take("[")
        ranks: list[Rank] = [] if self.next == "]" else self.several(lambda: tuple(self.several(self.term, "+")), ",")
        self.take("]")
        dims = [dim for rank in ranks for dim, _ in rank]
        for dim in dims:
            if dims.count(dim) > 1:
                raise ValueError(f"'{dim}' indexes '{name}' twice; diagonals are not supported")
        return Access(name, tuple(ranks))

    def term(self) -> tuple[str, int]:
        """A dimension, or its product with a whole number on either side."""
        coefficient = 1
        if self.next.isdigit():
            coefficient = self.number()
            if self.next != "*":
                self.fail(f"'*' and a dimension after {coefficient} (constant offsets belong to the size)")
            self.take("*")
        dim = self.word(_NAME, "a dimension")
        if self.next == "*":
            self.take("*")
            coefficient *= self.number()
        if coefficient < 1:
            raise ValueError(f"the coefficient of '{dim}' is {coefficient}, expected at least 1")
        return dim, coefficient

    def number(self) -> int:
        return int(self.word(r"\d+", "a whole number"))


def _tokens(text: str) -> list[tuple[str, int]]:
    """Names, numbers and signs, each with its place in the text."""
    tokens = []
    for match in _TOKEN.finditer(text):
        sign, place = match[0], match.start()
        if not match[1]:
            hint = "; an index is a sum, differences are not supported" if sign == "-" else ""
            raise ValueError(f"'{text}' has '{sign}' at character {place + 1}, which is not understood{hint}")
        tokens.append((sign, place))
    return tokens
