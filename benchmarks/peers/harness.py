"""Peers in environments of their own, and processes with their processor time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from shutil import which

import attrs

HERE = Path(__file__).parent
LIMIT = 150.0
"""Seconds of processor time of any process of a search before the search is stopped."""


@attrs.frozen
class Figures:
    """Energy, cycles, and words read and written on the whole chip by `memory/tensor/action`."""

    energy_pj: float
    cycles: float
    counts: Mapping[str, float] = attrs.field(factory=dict)

    @property
    def edp(self) -> float:
        return self.energy_pj * self.cycles


@attrs.frozen
class Done:
    """A finished process: processor seconds including children, and figures or the last line of the error."""

    seconds: float
    figures: Figures | None = None
    error: str = ""
    text: str = ""


@attrs.frozen
class Peer:
    """A tool to compare with."""

    name: str
    package: str
    script: str
    extra: tuple[str, ...] = ()
    """Packages missing in the list of requirements."""
    commands: tuple[str, ...] = ()
    """Programs started by the tool."""
    python: tuple[int, int] = (3, 11)
    """Oldest Python to run the tool."""


PEERS = (
    Peer("accelforge", "accelforge", "run_accelforge.py", commands=("dot",), python=(3, 12)),
    Peer("ZigZag", "zigzag-dse", "run_zigzag.py", extra=("six",)),
)
WIDEST = {"accelforge": "may_keep: All in every inner memory",
          "ZigZag": "lpf_limit 7, 6 spatial mappings, mixed"}  # fmt: skip


@attrs.frozen
class Environment:
    """An installed peer."""

    peer: Peer
    python: Path
    version: str
    missing: tuple[str, ...] = ()
    """Requirements beside the package."""
    python_version: str = ""

    @property
    def name(self) -> str:
        return self.peer.name

    def run(self, what: str, folder: Path) -> Done:
        """`search`, `widest` or `replay` on a folder of the peer's files."""
        return run([str(self.python), str(HERE / self.peer.script), what, str(folder)], folder)

    def in_words(self, figures: Figures, word_bits: int, names: Mapping[str, str]) -> Figures:
        """Figures in words, with the names of tensors by operand; accelforge counts words already."""
        if self.name != "ZigZag":
            return figures
        parts = [(key.split("/"), bits) for key, bits in figures.counts.items()]
        counts = {f"{memory}/{names[op]}/{action}": bits / word_bits for (memory, op, action), bits in parts}
        return attrs.evolve(figures, counts=counts)


def run(command: list[str], cwd: Path, limit: float = LIMIT) -> Done:
    """A process, stopped once it or a child used `limit` processor seconds; JSON in its last line becomes figures."""

    def limited() -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 5))

    with open(cwd / "stdout.txt", "w") as out, open(cwd / "stderr.txt", "w") as err:
        child = subprocess.Popen(command, cwd=cwd, stdout=out, stderr=err, preexec_fn=limited)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    seconds = usage.ru_utime + usage.ru_stime
    text, errors = (cwd / "stdout.txt").read_text(), (cwd / "stderr.txt").read_text().strip().splitlines()
    if child.returncode:
        stopped = f"stopped: a process used {limit:.0f} s" if seconds >= limit - 1 else ""
        return Done(seconds, error=stopped or (errors[-1][:200] if errors else f"exit code {child.returncode}"))
    lines = [line for line in text.splitlines() if line.startswith("{")]
    if not lines:
        return Done(seconds, text=text)
    found = json.loads(lines[-1])
    cycles = found["cycles"] if "cycles" in found else found["seconds"] * 1e9  # chips of this page run at 1 GHz
    return Done(seconds, Figures(found["energy_pj"], cycles, found.get("counts") or found.get("bits") or {}))


def installed(peer: Peer, root: Path, python: str) -> Environment | str:
    """The environment of a peer below a folder, made if missing; otherwise the reason why it is not installed."""
    place = root / peer.package
    own = place / "bin" / "python"
    if not own.exists():
        version = _said(python, "import sys; print(*sys.version_info[:2])").split()
        if tuple(map(int, version)) < peer.python:
            return f"needs Python {'.'.join(map(str, peer.python))}; found {'.'.join(version) or 'none'}"
        made = subprocess.run([python, "-m", "venv", str(place)], capture_output=True, text=True)
        pip = [str(own), "-m", "pip", "install", "-q", peer.package, *peer.extra]
        made = made if made.returncode else subprocess.run(pip, capture_output=True, text=True)
        if made.returncode:
            return f"pip fails: {(made.stderr.strip().splitlines() or ['?'])[-1][:120]}"
    missing = [command for command in peer.commands if which(command) is None]
    if missing:
        return f"needs the program {', '.join(missing)}"
    code = f"import platform; from importlib.metadata import version; print(version('{peer.package}'), platform.python_version())"
    if not (said := _said(str(own), code).split()):
        return f"{peer.package} is not in its environment"
    return Environment(peer, own, said[0], (*peer.extra, *peer.commands), said[1])


def _said(python: str, code: str) -> str:
    try:
        return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as problem:
        print(problem, file=sys.stderr)
        return ""
