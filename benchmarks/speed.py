"""Speed of SparseMap on this machine, also as ratios to a NumPy kernel measured in the same run.

    python benchmarks/speed.py [--quick] [--against REV [--rounds N]] [--markdown docs/results/speed.md]

Prints valid designs per second and core, whole searches and rejected random designs per second, cold and warm, at
several batch sizes; designs on a second chip; start-up times; peak memory; and speed over the size of a
problem. `--against` prints a single table: this tree and another commit, measured in turns in the same run
(`pairs.py`). Times are processor time unless marked, for little disturbance by other programs; the calibration kernel
compares machines."""

from __future__ import annotations

import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import attrs
import numpy as np
import pairs
from common import asked
from sparsemap_plugins.analytic.occupancy.shared import SHARED

import sparsemap
from sparsemap.files import percent
from sparsemap.markdown import markdown_table
from sparsemap.pieces.loading import load

PROBLEMS = [("mm3", "cloud"), ("mm13", "cloud"), ("conv4", "cloud"), ("batched-matmul-8x64x64x64", "clustered")]
BATCHES = [256, 1024, 4096, 16384]
GENOMES = 1 << 15
"""Genomes per measurement, in batches, enough for some valid random ones of any problem here."""
UNCHARGED = "'paper', cost_model='timeloop'"
"""Arguments in a program's text, for all tables but the table of both fidelities."""


def uncharged(workload: object, hardware: object, registry: object, space: object = "paper") -> sparsemap.Problem:
    return sparsemap.load_problem(workload, hardware, space, cost_model="timeloop", registry=registry)


def processor() -> str:
    """Name of the processor, if known."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def took(work: Callable[[], object]) -> float:
    """Processor seconds."""
    start = time.process_time()
    work()
    return time.process_time() - start


def fastest(work: Callable[[], object], seconds: float) -> float:
    """Processor seconds of the fastest of several runs."""
    runs: list[float] = []
    while sum(runs) < seconds or len(runs) < 3:
        runs.append(took(work))
    return min(runs)


def python(*words: str) -> str:
    """The output of a process."""
    return subprocess.run([sys.executable, *words], check=True, capture_output=True, text=True).stdout


def calibration(seconds: float) -> float:
    """Seconds of a fixed kernel like the model's own work: arithmetic, selection and look-ups on arrays of 4096."""
    rng = np.random.default_rng(0)
    a, b = rng.random((16, 4096)), rng.random((16, 4096))
    index = rng.integers(0, 4096, 4096)

    def kernel() -> float:
        total = 0.0
        for row, other in zip(a, b, strict=True):
            x = np.floor(row * 1000.0) + np.ceil(other * 1000.0)
            x = np.where(x > 1000.0, x / (other + 1.0), x * row)
            total += float(x[index].max())
        return total

    return fastest(kernel, seconds)


def valid_genomes(problem: sparsemap.Problem, count: int) -> np.ndarray:
    """Different valid designs: repaired guesses, repeated if too few are valid."""
    rng = np.random.default_rng(2)
    genomes = problem.space.repair(problem.space.guess(2 * count, rng), rng)
    return np.resize(genomes[problem.evaluator.evaluate(genomes).valid], (count, genomes.shape[1]))


def speeds(registry: object, seconds: float, batches: list[int]) -> list[list[float | str]]:
    rows: list[list[float | str]] = []
    for workload, hardware in PROBLEMS:
        problem = uncharged(workload, hardware, registry)
        random, valid = problem.space.sample(GENOMES, np.random.default_rng(1)), valid_genomes(problem, GENOMES)
        problem.evaluator.evaluate(valid)
        share = float(problem.evaluator.evaluate(random).valid.mean())
        for batch in batches:

            def work(genomes: np.ndarray, problem: sparsemap.Problem = problem, batch: int = batch) -> None:
                for start in range(0, GENOMES, batch):
                    problem.evaluator.evaluate_designs(problem.space.decode(genomes[start : start + batch]))

            fast, rejected = (GENOMES / fastest(partial(work, genomes), seconds) for genomes in (valid, random))
            rows.append([f"{workload} on {hardware}", batch, fast, loop(problem, batch), rejected, share])
    return rows


def loop(problem: sparsemap.Problem, batch: int) -> float:
    """Designs per second of a whole search with warm tables and `batch` proposals at a time."""
    budget, how = max(20_000, 20 * batch), {"type": "memetic", "offspring": batch}
    return budget / took(lambda: sparsemap.search(problem, budget=budget, searcher=how, seed=0))


def fidelities(registry: object, seconds: float) -> list[list[str]]:
    """Valid designs per second with no charge and with all, tables warm, and whole searches of 10,000, tables empty: one
    after the other, again and again; medians, of the ratios too."""

    def problem(workload: str, hardware: str, model: str) -> sparsemap.Problem:
        return sparsemap.load_problem(workload, hardware, "paper", cost_model=model, registry=registry)

    def medians(designs: int, rounds: list[list[float]]) -> list[str]:
        plain, charged = np.array(rounds).T
        rates = [f"{designs / np.median(part):,.0f}" for part in (plain, charged)]
        return [*rates, percent(float(np.median(plain / charged)))]

    def empty(problem: sparsemap.Problem, seed: int) -> object:
        SHARED.clear()
        return sparsemap.search(problem, budget=10_000, seed=seed)

    rows = []
    for workload, hardware in PROBLEMS:
        both = [problem(workload, hardware, model) for model in ("timeloop", "physical")]
        works = [partial(one.evaluator.evaluate, valid_genomes(one, 4096)) for one in both]
        warm = [[took(work) for work in works] for _ in range(max(10, round(20 * seconds)))][1:]
        searches = []
        for seed in range(5):
            fresh = [problem(workload, hardware, model) for model in ("timeloop", "physical")]
            searches.append([took(partial(empty, one, seed)) for one in fresh])
        rows.append([f"{workload} on {hardware}", *medians(4096, warm), *medians(10_000, searches)])
    return rows


def chips(registry: object) -> list[list[str]]:
    """Seconds of 2,000 repaired guesses on a first chip with empty tables; then on a second chip with twice the
    bandwidth and twice the energy of an access, with the existing tables and with empty ones. Medians of 5."""

    def seconds(problem: sparsemap.Problem, genomes: np.ndarray, empty: bool) -> float:
        if empty:
            SHARED.clear()
        return took(lambda: problem.evaluator.evaluate(genomes))

    rows = []
    for workload, hardware in PROBLEMS:
        first = sparsemap.load_problem(workload, hardware, registry=registry)
        chip, rng = first.chip, np.random.default_rng(0)
        energy_pj = {action: 2.0 * pj for action, pj in chip.energy_pj.items()}
        other = attrs.evolve(chip, bandwidth=2.0 * chip.bandwidth, energy_pj=energy_pj)
        genomes = first.space.repair(first.space.guess(2000, rng), rng)
        runs = []
        for _ in range(5):
            problems = [first.on(each) for each in (chip, other, other)]
            runs.append(
                [seconds(one, genomes, empty) for one, empty in zip(problems, (True, False, True), strict=True)]
            )
        rows.append([f"{workload} on {hardware}", *(f"{x:.2f} s" for x in np.median(runs, axis=0))])
    return rows


def cold(workload: str, hardware: str, search: bool) -> float:
    """Designs per second over the first 20,000 of a fresh process, tables empty; loading is not counted."""
    random = "p.evaluator.evaluate(p.space.sample(20000, np.random.default_rng(0)))"
    work = "sparsemap.search(p, budget=20000, seed=0)" if search else random
    code = (
        "import time, numpy as np, sparsemap; "
        f"p = sparsemap.load_problem({workload!r}, {hardware!r}, {UNCHARGED}); p.space.names; p.cost_model.reasons(p); "
        f"t = time.process_time(); {work}; print(20000 / (time.process_time() - t))"
    )
    return float(python("-c", code))


def startup() -> list[list[str]]:
    """Processor seconds of the parts of a start, each in a process of its own."""

    def timed(code: str) -> str:
        program = f"import time; t = time.process_time(); {code}; print(time.process_time() - t)"
        return f"{min(float(python('-c', program)) for _ in range(3)):.2f} s"

    with tempfile.TemporaryDirectory() as folder:
        uncharged_words = ["--space", "paper", "--cost-model", "timeloop"]
        wall, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        python("-m", "sparsemap", "search", "mm3", "cloud", *uncharged_words, "--out", f"{folder}/out")
        wall, after = time.perf_counter() - wall, resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return [
        ["import numpy", timed("import numpy")],
        ["import sparsemap, NumPy included", timed("import sparsemap")],
        ["... and plugins and specs loaded", timed("import sparsemap.pieces.loading as it; it.load()")],
        [
            "... and a problem made",
            timed(f"import sparsemap; sparsemap.load_problem('mm3', 'cloud', {UNCHARGED}).space.names"),
        ],
        ["`sparsemap search mm3 cloud`, 20,000 designs, from prompt to files", f"{spent:.2f} s"],
        ["the same by the clock on the wall", f"{wall:.2f} s"],
    ]


def growth(registry: object, seconds: float) -> list[list[str]]:
    """Evaluations per second of valid designs at batch 4,096, for growing problems."""

    def matmul(size: int = 256, *more: str) -> dict:
        index = "".join(f"{dim}, " for dim in more)
        dims = {"m": size, "k": size, "n": size} | dict.fromkeys(more, 16)
        einsum = f"Z[{index}m, n] = P[{index}m, k] * Q[{index}k, n]"
        return {"einsum": einsum, "density": {"P": 0.2, "Q": 0.2}, "dims": dims}

    names = ["uncompressed", "bitmask", "run-length", "coordinate", "offset-pair"]
    spaces = {n: {"extends": "paper", "formats": {"candidates": [names[i % 5] for i in range(n)]}} for n in (2, 5, 20)}
    cases: list[tuple[str, dict, object, object]] = [
        *((f"{3 * int(np.log2(n))} prime factors", matmul(n), "cloud", "paper") for n in (64, 1024, 16384)),
        *((f"{3 + n} dimensions", matmul(256, *"bhg"[:n]), "cloud", "paper") for n in range(4)),
        *((f"{n} storage levels", matmul(), hardware, "paper") for hardware, n in (("cloud", 3), ("clustered", 4))),
        *((f"{n} formats to choose from", matmul(), "cloud", space) for n, space in spaces.items()),
    ]
    rows = []
    for what, workload, hardware, space in cases:
        problem = uncharged(workload, hardware, registry, space)
        genomes = valid_genomes(problem, 4096)
        problem.evaluator.evaluate(genomes)
        rows.append([what, f"{len(genomes) / fastest(partial(problem.evaluator.evaluate, genomes), seconds):,.0f}"])
    return rows


def peak_memory(budgets: list[int]) -> list[list[str]]:
    """Peak memory of whole searches of mm3 on cloud, each in a process of its own."""
    rows = []
    for budget in budgets:
        code = (
            f"import sparsemap; p = sparsemap.load_problem('mm3', 'cloud', {UNCHARGED}); sparsemap.search(p, budget={budget});"
            "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])"
        )
        rows.append([f"search of {budget:,} designs", f"{int(python('-c', code)) / 1024:.0f} MB"])
    return rows


def table(title: str, head: list[str], rows: list[list[str]]) -> str:
    """A table with a title."""
    return f"### {title}\n\n{markdown_table([head, *rows])}"


def main() -> None:
    options = asked(
        __doc__,
        quick={"action": "store_true", "help": "a minute instead of several, less exact"},
        against={"metavar": "REV", "help": "only the table of this tree beside another commit"},
        rounds={"type": int, "default": 10, "help": "turns of `--against`"},
        markdown={"type": Path, "help": "also write the tables to this file"},
    )
    if options.against:
        text = pairs.report(options.against, options.rounds)
        print(text)
        if options.markdown is not None:
            options.markdown.write_text(text)
        return
    seconds = 0.2 if options.quick else 1.5
    batches = [1024, 16384] if options.quick else BATCHES
    registry = load()
    kernel = calibration(seconds)
    unit = 65536 / kernel
    parts = [
        f"Python {platform.python_version()}, NumPy {np.__version__}, {processor()}, one core. Calibration kernel: "
        f"{kernel * 1e3:.2f} ms, {unit / 1e6:.1f} million elements per second.\n"
    ]

    def show(text: str) -> None:
        parts.append(text)
        print(text, flush=True)

    print(parts[0])
    rows = [
        [name, f"{batch:,}", *(f"{rate:,.0f}" for rate in rates), percent(share, 2), f"{1e3 * rates[0] / unit:.2f}"]
        for name, batch, *rates, share in speeds(registry, seconds, batches)
    ]
    head = ["designs per second and core", "batch", "valid designs", "whole search", "random designs"]
    head += ["of these valid", "valid, per 1000 elements of the kernel"]
    show(table("Warm: decoded and evaluated; most random designs are rejected by the first checks", head, rows))
    cold_rows = [[f"{w} on {h}", f"{cold(w, h, False):,.0f}", f"{cold(w, h, True):,.0f}"] for w, h in PROBLEMS]
    head = ["designs per second", "random", "whole search"]
    show(table("Cold: the first 20,000 designs of a fresh process", head, cold_rows))
    head = ["designs per second", "timeloop", "physical", "ratio", "search, timeloop", "search, physical", "ratio"]
    title = "With no charge and with all: valid designs, warm, batch 4,096, and whole searches of 10,000, tables empty"
    show(table(title, head, fidelities(registry, seconds)))
    head = ["2,000 designs", "first chip", "second chip", "second chip, tables empty"]
    show(table("Warm tables across chips: `physical`, processor time", head, chips(registry)))
    title = "How speed changes with the problem (the model is of three tensors: two operands, one output)"
    show(table(title, ["valid designs, batch 4,096", "designs/s"], growth(registry, seconds)))
    show(table("Start-up, processor time", ["step", "seconds"], startup()))
    budgets = [20_000, 200_000] if options.quick else [20_000, 200_000, 1_000_000]
    show(table("Peak memory", ["process", "memory"], peak_memory(budgets)))
    if options.markdown is not None:
        options.markdown.parent.mkdir(parents=True, exist_ok=True)
        title = ["# Speed", "", "`python benchmarks/speed.py --markdown FILE` wrote this.", ""]
        options.markdown.write_text("\n".join([*title, *parts]))


if __name__ == "__main__":
    main()
