"""Tables that fit a terminal."""

from __future__ import annotations

import textwrap
from itertools import zip_longest

from . import output


def fitted(rows: list[list[str]], gap: int = 2, margin: int = 0) -> list[list[str]]:
    """Rows with wrapped cells that fit the width of a terminal."""
    room = output.terminal()
    if room is None or not rows:
        return rows
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    over = margin + sum(widths) + gap * (len(widths) - 1) - room
    while over > 0 and max(widths) > output.NARROWEST:
        widest = widths.index(max(widths))
        second = max([output.NARROWEST, *(width for width in widths if width < widths[widest])])
        less = min(over, max(widths[widest] - second, 1))
        widths[widest], over = widths[widest] - less, over - less
    made = []
    for row in rows:
        parts = [textwrap.wrap(cell, width) or [""] for cell, width in zip(row, widths, strict=True)]
        made += [list(cells) for cells in zip_longest(*parts, fillvalue="")]
    return made
