"""One mapping counted by every tool, and side-by-side searches: `python benchmarks/peers [--out docs/results]`.

Installs accelforge and ZigZag in environments of their own below `--environments`, replays designs in both directions,
searches every problem on both chips with every tool, and writes peers.csv and peers.md. accelforge needs Python 3.12
(`--python`) and the program `dot`. Rows of a peer that is not installed read "not installed". `--render` writes the
page from the figures in peers.csv, without any peer. Takes an hour or two of processor time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from blocks import fused_rows  # noqa: E402
from common import asked, say  # noqa: E402
from harness import PEERS, Environment, installed  # noqa: E402
from problems import CHIPS, PROBLEMS  # noqa: E402
from rendering import read_rows, render, write_rows  # noqa: E402
from replays import count_rows  # noqa: E402
from searches import Row, cell  # noqa: E402

from sparsemap.pieces.loading import load  # noqa: E402

WIDE_CELLS, WINDOWS = ("square-512",), "conv-3x3"
"""Problems on the first chip for the widest settings of peers, at minutes per search."""


def settings_of(problem: str, chip: str, peers: list[Environment]) -> dict[str, list[str]]:
    """Settings of a cell by tool; accelforge reaches the limit of time with windows, and searches one such cell."""
    first = chip == next(iter(CHIPS))
    windows = "+" in PROBLEMS[problem]["einsum"] and (problem, first) != (WINDOWS, True)
    found = {"SparseMap": ["default", "short", "widest"]}
    for peer in peers:
        default = [] if windows and peer.name == "accelforge" else ["default"]
        found[peer.name] = [*default, *(["widest"] if first and problem in WIDE_CELLS else [])]
    return found


def measured(peers: list[Environment], root: Path, problems: list[str]) -> Iterator[Row]:
    """All rows but those of the tools."""
    registry = load()
    for chip in CHIPS:
        for problem in problems:
            for row in cell(problem, chip, settings_of(problem, chip, peers), peers, root / "searches", registry):
                say(*(f"{key}={value}" for key, value in row.items() if value not in ("", None)))
                yield {"part": "search", **row}
        for row in fused_rows(chip, peers, root / "fused", registry):
            say(row)
            yield {"part": "fused", **row}
    for row in count_rows(peers, root / "searches", root, registry):
        yield {"part": "count", **row}


def main() -> None:
    given = asked(
        __doc__.split("\n\n")[0], out={"type": Path, "default": Path("docs/results"), "help": "folder of the page"},
        environments={"type": Path, "default": Path("build/peers"), "help": "folder of the peers' environments"},
        python={"default": sys.executable, "help": "Python for the environments"},
        problems={"nargs": "+", "choices": list(PROBLEMS), "default": list(PROBLEMS)}, render={"action": "store_true"},
    )  # fmt: skip
    table = given.out / "peers.csv"
    if not given.render:
        root = given.environments.resolve()
        root.mkdir(parents=True, exist_ok=True)
        tools = {peer: installed(peer, root, given.python) for peer in PEERS}
        rows: list[Row] = []
        for peer, own in tools.items():
            here = isinstance(own, Environment)
            state = (
                {"version": own.version, "python": own.python_version, "missing": ", ".join(own.missing)}
                if here
                else {"error": own}
            )
            say(f"{peer.name}: {state}")
            rows.append({"part": "tool", "tool": peer.name, **state})
        peers = [own for own in tools.values() if isinstance(own, Environment)]
        for row in measured(peers, root / "work", given.problems):
            rows.append(row)
            write_rows(root / "peers.csv", rows)  # what is measured survives an interruption
        write_rows(table, rows)
    render(read_rows(table), given.out / "peers.md")


if __name__ == "__main__":
    main()
