"""This tree beside another commit, default model and space: the same work in turns, under equal load of the machine.

Each tree has a worker process; commands start processes of their own. Times are processor seconds."""

from __future__ import annotations

import hashlib
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from operator import methodcaller
from pathlib import Path

import numpy as np

from sparsemap.markdown import markdown_table

HERE = Path(__file__).resolve().parents[1]
PACKAGES = {"sparsemap": "sparsemap", "sparsemap_plugins": "plugins", "sparsemap_specs": "specs"}
CELLS = ["mm3 cloud", "conv4 mobile", "mm13 cloud"]
BATCHES = [38, 512, 4096]
COMMANDS = {
    "`sparsemap --help`": "--help",
    "`search mm1 mobile --budget 100`": "search mm1 mobile --budget 100 --out OUT --overwrite",
    **{f"`search {cell}`, 20,000, prompt to files": f"search {cell} --out OUT --overwrite" for cell in CELLS},
    "`run resnet50`, 24 layers x 500": "run resnet50 --hardware edge-16gbps --budget 500 --out OUT/net",
}

WORKER = r"""
import hashlib, sys, time, attrs, numpy as np, sparsemap
from sparsemap.pieces.loading import load
try:
    from sparsemap_plugins.analytic.occupancy.shared import SHARED
except ImportError:  # before problems shared tables
    SHARED = {}
registry, known = load(), {}

def cell(workload, hardware):
    if (workload, hardware) not in known:
        problem, rng = sparsemap.load_problem(workload, hardware, registry=registry), np.random.default_rng(2)
        genomes = problem.space.repair(problem.space.guess(8192, rng), rng)
        genomes = np.resize(genomes[problem.evaluator.evaluate(genomes).valid], (4096, genomes.shape[1]))
        problem.evaluator.evaluate(genomes)
        known[workload, hardware] = problem, genomes
    return known[workload, hardware]

def batch(workload, hardware, size):
    problem, genomes = cell(workload, hardware)
    parts = [genomes[i : i + int(size)] for i in range(0, min(4096, 40 * int(size)), int(size))]
    return lambda: np.concatenate([problem.evaluator.evaluate(part).cycles for part in parts])

def sweep(workload, hardware):
    problem, _ = cell(workload, hardware)
    factors = [1.0 + 0.25 * i for i in range(12)]
    if not hasattr(problem, "on"):  # before problems changed their chip: twelve problems of one chip
        problems = [sparsemap.load_problem(workload, hardware, registry=registry) for _ in factors]
    else:
        SHARED.clear()
        problems = [problem.on(attrs.evolve(problem.chip, bandwidth=problem.chip.bandwidth * x)) for x in factors]
    return lambda: np.concatenate([sparsemap.search(one, budget=500, seed=0).best.genome for one in problems])

for line in sys.stdin:
    name, *words = line.split()
    work = globals()[name](*words)
    start = time.process_time()
    found = work()
    took = time.process_time() - start
    print(took, hashlib.sha256(np.ascontiguousarray(found).tobytes()).hexdigest(), flush=True)
"""


class Tree:
    """A tree of the project with its worker process."""

    def __init__(self, root: Path, place: Path) -> None:
        place.mkdir()
        for package, folder in PACKAGES.items():
            (place / package).symlink_to(root / folder)
        self.out = place / "out"
        alone = {"PYTHONPATH": str(place), "PYTHONSAFEPATH": "1"}  # not what is in the working directory
        self.env = {**os.environ, **alone, "PYTHONDONTWRITEBYTECODE": ""}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
        self.worker = subprocess.Popen([sys.executable, "-c", WORKER], env=self.env, **pipes)  # type: ignore[call-overload]

    def ask(self, order: str) -> tuple[float, str]:
        """Seconds, and a digest of the results."""
        self.worker.stdin.write(order + "\n")
        seconds, digest = self.worker.stdout.readline().split()
        return float(seconds), digest

    def run(self, words: str) -> tuple[float, str]:
        """The same of a command in a process of its own, with a digest of its design files."""
        subprocess.run(["rm", "-rf", str(self.out)], check=True)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "sparsemap", *words.replace("OUT", str(self.out)).split()]
        subprocess.run(command, check=True, capture_output=True, env=self.env)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        designs = b"".join(path.read_bytes() for path in sorted(self.out.rglob("design.toml")))
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return seconds, hashlib.sha256(designs).hexdigest()

    def close(self) -> None:
        self.worker.stdin.close()
        self.worker.wait()


def report(revision: str, rounds: int) -> str:
    """The table: medians, and the median of the ratios of every round."""
    with tempfile.TemporaryDirectory(prefix="sparsemap-") as folder:
        other = Path(folder, "tree")
        other.mkdir()
        archive = subprocess.run(["git", "-C", HERE, "archive", revision], check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", other], input=archive, check=True)
        if (other / "setup.py").exists():
            subprocess.run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=other, check=True)
        trees = [Tree(root, Path(folder, name)) for root, name in ((other, "then"), (HERE, "now"))]
        work: dict[str, Callable[[Tree], tuple[float, str]]] = {}
        for cell in CELLS:
            for size in BATCHES:
                work[f"{cell}: valid designs, batches of {size:,}"] = methodcaller("ask", f"batch {cell} {size}")
        work["mm3 cloud: 12 chips x 500"] = methodcaller("ask", "sweep mm3 cloud")
        work |= {name: methodcaller("run", words) for name, words in COMMANDS.items()}
        rows = [_row(name, [[one(tree) for tree in trees] for _ in range(rounds)]) for name, one in work.items()]
        for tree in trees:
            tree.close()
    head = ["work", "then", "now", "then over now", "same designs"]
    title = f"### This tree beside {revision}: processor seconds, medians of {rounds} turns"
    return f"{title}\n\n{markdown_table([head, *rows])}"


def _row(name: str, turns: list[list[tuple[float, str]]]) -> list[str]:
    then, now = (np.array([turn[i][0] for turn in turns]) for i in (0, 1))
    same = all(a[1] == b[1] for a, b in turns)
    print(name, f"{np.median(then / now):.2f}x", file=sys.stderr, flush=True)
    numbers = [f"{np.median(part):.3f} s" for part in (then, now)]
    return [name, *numbers, f"{np.median(then / now):.2f}x", "yes" if same else "NO"]
