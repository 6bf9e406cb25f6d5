"""Are faults in the model noticed? Draws faults over the operators and constants of the chain and runs independent tests.

    python tests/conformance/faults.py [--seed 0] [--count 40] [--only N] [--jobs 2]

Each mutant is a copy of the project with one fault, executed by CPython. Two kinds of tests look for the fault: every
fourth reference case of Timeloop, and tests that count by hand, by the scalar reference model, or by executing designs.
None of them shares formulas with the chain. The exit status is 1 where fewer than 36 of 40 faults are noticed.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

import attrs

ROOT = Path(__file__).parents[2]
FOLDER = "plugins/analytic/inner"
CHAIN = (
    *("nest", "traffic", "stored", "metadata", "leaders", "removal", "skipping", "counts", "computes", "drains"),
    *("vectors", "cycles", "lanes", "imbalance", "overlap", "ratios", "work", "cost", "checks"),
)
"""Modules of the chain, one or more per section of docs/model.md."""
TESTS = (
    "tests/oracle/test_oracle.py",
    *(f"tests/plugins/analytic/test_{name}.py" for name in ("worked_examples", "cycles_by_hand", "charges", "skips")),
    *(f"tests/plugins/analytic/test_{name}.py" for name in ("windows", "lanes", "remainders", "against_reference")),
    *(
        f"tests/plugins/verify/test_verify_{name}.py"
        for name in ("charges", "by_hand", "operands", "sparse", "formats")
    ),
)
"""Tests by hand, by the scalar reference model and by execution, about two minutes for CPython."""
SEARCHES = "not charged_designs and not fidelity and not code_that_other_charges and not charges_less"
"""Cases of these tests without a search."""
SHARE = 0.9
"""Noticed faults over drawn faults, at least."""
SECONDS = 1_200
SWAPS: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
CALLS = {"min": "max", "max": "min", "ceil": "floor", "floor": "ceil"}


@attrs.frozen
class Fault:
    """One change of a module: node `number` of `ast.walk` of function `function`."""

    module: str
    line: int
    before: str
    after: str
    text: str
    """The module with the fault."""

    def __str__(self) -> str:
        return f"{self.module}.py:{self.line}  {self.before}  ->  {self.after}"


def mutated(node: ast.AST) -> ast.AST | None:
    """The node with a fault; None for nodes without operators and constants of a formula."""
    if isinstance(node, ast.BinOp) and type(node.op) in SWAPS:
        return ast.BinOp(node.left, SWAPS[type(node.op)](), node.right)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in SWAPS:
        return ast.Compare(node.left, [SWAPS[type(node.ops[0])]()], node.comparators)
    if isinstance(node, ast.BoolOp):
        return ast.BoolOp(SWAPS[type(node.op)](), node.values)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
        return ast.Call(ast.Name(CALLS[node.func.id]), node.args, node.keywords)
    if isinstance(node, ast.Constant) and isinstance(node.value, float):
        return ast.Constant(node.value + 1.0)
    if isinstance(node, ast.AugAssign) and type(node.op) in SWAPS:
        return ast.AugAssign(node.target, SWAPS[type(node.op)](), node.value)
    return None


def formulas(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Nodes of the formulas of a function: neither indices nor the ends of loops, in which a fault stops the program."""
    waiting: list[ast.AST] = [*function.body]
    while waiting:
        node = waiting.pop(0)
        yield node
        if isinstance(node, ast.For):
            waiting += node.body
        elif not isinstance(node, ast.Subscript):
            waiting += ast.iter_child_nodes(node)


def faults_of(module: str) -> list[Fault]:
    """All faults of a module, in order of its lines."""
    source = (ROOT / FOLDER / f"{module}.py").read_text("utf-8")
    lines, found = source.encode().splitlines(keepends=True), []
    for function in (node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)):
        for node in formulas(function):
            fault = mutated(node)
            if fault is None:
                continue
            assert isinstance(node, ast.expr | ast.stmt) and node.end_lineno and node.end_col_offset
            before, after = ast.unparse(node), ast.unparse(ast.fix_missing_locations(fault))
            head = b"".join([*lines[: node.lineno - 1], lines[node.lineno - 1][: node.col_offset]])
            tail = b"".join([lines[node.end_lineno - 1][node.end_col_offset :], *lines[node.end_lineno :]])
            own = after if isinstance(node, ast.stmt) else f"({after})"
            found.append(Fault(module, node.lineno, before, after, head.decode() + own + tail.decode()))
    return sorted(found, key=lambda fault: (fault.line, fault.before))


def drawn(seed: int, count: int) -> list[Fault]:
    """Faults (count,) drawn without replacement, every place with the same chance."""
    return random.Random(seed).sample([fault for module in CHAIN for fault in faults_of(module)], count)


def copied(folder: Path) -> Path:
    """A copy of the project in a new folder."""
    for part in ("sparsemap", "plugins", "specs", "tests"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    for file in ("pyproject.toml", "setup.py"):
        shutil.copy(ROOT / file, folder / file)
    (folder / "sparsemap_plugins").symlink_to("plugins")
    (folder / "sparsemap_specs").symlink_to("specs")
    lines = [line for file in sorted((folder / "tests/conformance").glob("cases-*.jsonl")) for line in file.open()]
    (folder / "few.jsonl").write_text("".join(lines[::4]))
    return folder


def executed(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A command of Python in a copy, without compiled code."""
    env = {
        **os.environ,
        "SPARSEMAP_COMPILED": "0",
        "PYTHONPATH": f"{folder}:tests/conformance",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    try:
        return subprocess.run(
            [sys.executable, *command], cwd=folder, capture_output=True, text=True, env=env, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "0 FAILED no end", "")


def cases_of(folder: Path) -> str:
    """Disagreeing quantities of the reference cases, by family."""
    code = (
        "import pathlib, check; from sparsemap.pieces.loading import load\n"
        "families = check.run([pathlib.Path('few.jsonl')], 'timeloop-v3', load())\n"
        "print([(name, tally.cases, tally.perfect) for name, tally, _ in families])"
    )
    found = executed(folder, "-c", code)
    return found.stdout if found.returncode == 0 else "no result"


def noticed(folder: Path, usual: str) -> str:
    """The first test that fails in a copy; empty where all pass."""
    if cases_of(folder) != usual:
        return "cases of Timeloop"
    options = ("-x", "-q", "-p", "no:cacheprovider", "--no-header", "-m", "not slow", "-n", "0", "-k", SEARCHES)
    found = executed(folder, "-m", "pytest", *options, *TESTS)
    failed = [line for line in found.stdout.splitlines() if line.startswith(("FAILED", "ERROR")) or "no end" in line]
    return (failed or ["tests do not run"])[0][:100] if found.returncode else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--only", type=int, help="number of one fault, from 1 on")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    faults = list(enumerate(drawn(options.seed, options.count), 1))
    if options.only:
        faults = [faults[options.only - 1]]
    with tempfile.TemporaryDirectory() as name:
        copies: Queue[Path] = Queue()
        for job in range(options.jobs):
            copies.put(copied(Path(name) / f"{job}"))
        with ThreadPoolExecutor(options.jobs) as pool:
            first = copies.get()
            usual = cases_of(first)
            if wrong := noticed(first, usual):
                print(f"without a fault: {wrong}")
                return 1
            copies.put(first)

            def one(fault: Fault) -> str:
                folder = copies.get()
                file = folder / FOLDER / f"{fault.module}.py"
                text = file.read_text("utf-8")
                file.write_text(fault.text, "utf-8")
                by = noticed(folder, usual)
                file.write_text(text, "utf-8")
                copies.put(folder)
                return by

            results = pool.map(one, [fault for _, fault in faults])
            count = 0
            for (number, fault), by in zip(faults, results, strict=True):
                print(f"{number:3}  {fault}\n     {by or 'NOT NOTICED'}", flush=True)
                count += bool(by)
    print(f"{count} of {len(faults)} faults noticed")
    return 0 if count >= SHARE * len(faults) else 1


if __name__ == "__main__":
    sys.exit(main())
