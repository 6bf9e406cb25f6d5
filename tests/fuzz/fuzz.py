"""Whatever is in a file, reading it ends soon, takes little memory, and tells what is wrong: tries odd inputs.

    python tests/fuzz/fuzz.py 200000 --jobs 2

Inputs are numbered, and a number always stands for the same input; `--first N --only` tries a single one. Every input
has 5 s of processor time and 1 GB of memory. Processes of their own try them, so that one that crashes costs no other.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import timeloop_fuzz
from exchange_texts import ACCELFORGE, ZIGZAG
from onnx_fuzz import OnnxModels, counted
from sparsemap_plugins.densities.data import ActualData
from sparsemap_plugins.exchange.programs import imported
from sparsemap_plugins.importing.folding import ImportChoices
from sparsemap_plugins.importing.importer import ModelImport, import_weights
from sparsemap_plugins.importing.model_import import import_model
from sparsemap_plugins.pruning.weight_files import chosen_layers, read_weights
from sparsemap_plugins.timeloop.importer import read_problem
from sparsemap_plugins.timeloop.project import import_project
from sparsemap_plugins.weight_blocks.machine import CoreMesh
from sparsemap_plugins.weight_blocks.networks import layers_of, read_masks
from sparsemap_plugins.weight_blocks.schedule import compile_layers
from sparsemap_plugins.weight_blocks.schedule_file import SCHEDULE, read_schedule
from sparsemap_plugins.weight_blocks.simulate import NetworkData, given_weights, simulate
from spec_fuzz import Inputs, mutated_bytes

from sparsemap import SparseMapError, load_problem
from sparsemap.arrays import read_arrays
from sparsemap.pieces.loading import load
from sparsemap.problem import design_file
from sparsemap.problem.network import nodes_of
from sparsemap.spec import toml_io
from sparsemap.study.study import cells_of, folder_of

SECONDS = 5
"""Of processor time, which other programs do not take."""
MEMORY = 1 << 30
"""Bytes beyond those of the process before its first input."""
CHUNK = 1000
"""Inputs per process: what stays in caches is no input's fault."""


class Attempts:
    """One way per kind of input to read it as SparseMap does; the files are made in the working directory."""

    def __init__(self) -> None:
        self.registry = load(env={})
        self.inputs = Inputs(self.registry)
        self.models = OnnxModels()

    def made_up_table(self, rng: random.Random) -> None:
        kind, table = self.inputs.made_up(rng)
        self.registry.build(kind, table, "spec.toml", "")

    def real_spec(self, rng: random.Random) -> None:
        kind, table = self.inputs.mutated(rng)
        self.registry.build(kind, {**table, "name": table.get("name", "x")}, "spec.toml", "")

    def bytes_of_a_spec(self, rng: random.Random) -> None:
        Path("spec.toml").write_bytes(self.inputs.text(rng))
        table = toml_io.read("spec.toml")
        if isinstance(table.get("kind"), str) and table["kind"] in self.registry.kinds():
            self.registry.build(table.pop("kind"), table, "spec.toml", "")

    def problem(self, rng: random.Random) -> None:
        """Up to the design space, the bound and a few evaluated designs."""
        parts = {"workload": "mm1", "hardware": "cloud", "space": "paper"}
        for kind in rng.sample(sorted(parts), rng.choice((1, 1, 2))):
            parts[kind] = self.inputs.mutated(rng, (kind,))[1]
        problem = load_problem(**parts, registry=self.registry)
        evaluation = problem.evaluator.evaluate(problem.space.sample(3, np.random.default_rng(0)))
        assert (evaluation.energy_pj[evaluation.valid] >= 0).all()

    def expression(self, rng: random.Random) -> None:
        text = self.inputs.expression(rng)
        if rng.random() < 0.5:
            self.registry.build("objective", {"name": "x", "score": text})
        else:
            self.registry.build("format", {"name": "x", "compressed": True, "bits": text})

    def design(self, rng: random.Random) -> None:
        design = design_file.structure(self.inputs.design(rng), self.registry, "design.toml")
        design.problem.evaluator.evaluate_designs(design.batch)

    def study(self, rng: random.Random) -> None:
        study = self.registry.build("study", self.inputs.mutated(rng, ("study",))[1], "study.toml", "")
        folder_of(study)
        list(cells_of(study, Path("out")))

    def timeloop_problem(self, rng: random.Random) -> None:
        Path("problem.yaml").write_bytes(self.inputs.yaml(rng))
        self.registry.build("workload", read_problem("problem.yaml"), "problem.yaml").loops(self.registry)

    def timeloop_project(self, rng: random.Random) -> None:
        """Up to what its design costs, and designs that its space has."""
        Path("project.yaml").write_text(timeloop_fuzz.project(rng), "utf-8")
        tables = import_project([Path("project.yaml")], older=rng.random() < 0.5).tables
        for part in ("workload", "hardware", "space"):
            if part in tables:
                self.registry.build(part, tables[part], f"{part}.toml", "")
        if "space" in tables:
            parts = [tables[part] for part in ("workload", "hardware", "space")]
            problem = load_problem(*parts, registry=self.registry)
            genomes = problem.space.repair(problem.space.guess(4, own := np.random.default_rng(0)), own)
            found, bound = problem.evaluator.evaluate(genomes), problem.bound
            scores = found.energy_pj[found.valid] * found.cycles[found.valid]
            assert bound is None or (scores >= bound * (1 - 1e-9)).all(), "a design is below the bound"
        if "design" in tables:
            design = design_file.structure(dict(tables["design"]), self.registry, "design.toml")
            found = design.problem.evaluator.evaluate_designs(design.batch)
            assert (found.energy_pj[found.valid] >= 0).all()

    def exchange(self, rng: random.Random) -> None:
        """Files of accelforge or ZigZag, up to what their design costs."""
        texts = {"all.yaml": ACCELFORGE} if rng.random() < 0.5 else ZIGZAG
        odd = rng.choice(list(texts))
        for name, text in texts.items():
            Path(name).write_text(timeloop_fuzz.mutated(text, rng) if name == odd else text, "utf-8")
        tables = imported([Path(name) for name in texts], "", "first" if "all.yaml" in texts else "", False)[1].tables
        for part in ("workload", "hardware"):
            if part in tables:
                self.registry.build(part, tables[part], f"{part}.toml", "")
        if "design" in tables:
            design = design_file.structure(dict(tables["design"]), self.registry, "design.toml")
            design.problem.evaluator.evaluate_designs(design.batch)

    def onnx(self, rng: random.Random) -> None:
        """A result has the MACs and weights that an independent count says."""
        model, path = self.models.model(rng), Path("model.onnx")
        data = model.SerializeToString()
        path.write_bytes(mutated_bytes(rng, data) if rng.random() < 0.1 else data)
        batch, dims = rng.choice((None,) * 9 + (1, 2, 3)), {"words": 5} if b"words" in path.read_bytes() else {}
        found = ModelImport(path, Path("net.toml"), self.registry, False, lambda text: None)
        import_model(
            found,
            ImportChoices(batch=batch, dims=dims),
            rng.choice(("range", "dense")),
            rng.choice(("measured", "dense")),
        )
        totals = (
            sum(node.repeat * node.macs for node in found.nodes),
            sum(node.repeat * node.weights for node in found.nodes),
        )
        expected = counted(path, batch or 1, dims, {one.node for one in found.skipped})
        assert expected in (totals, None), f"has {totals} MACs and weights, counted {expected}"

    def tensor(self, rng: random.Random) -> None:
        name, data = self.inputs.tensor(rng)
        Path(name).write_bytes(mutated_bytes(rng, data) if rng.random() < 0.5 else data)
        ActualData(file=Path(name)).occupancy(rng.choice([*[(8, 8)] * 8, (16, 8), (10**6, 8)])).density  # noqa: B018

    def network(self, rng: random.Random) -> None:
        """Up to the shapes of its layers, and what the compiler for a mesh of cores makes of them."""
        network = self.registry.build("network", self.inputs.network(rng), "network.toml", "")
        layers_of(nodes_of(network, self.registry, file="network.toml"), rng.choice((0.0, 0.5)))

    def chip(self, rng: random.Random) -> None:
        """A mesh of cores, with a layer compiled for it."""
        hardware = self.registry.build("hardware", self.inputs.chip(rng), "hardware.toml", "")
        machine = CoreMesh.of(hardware, self.registry, "hardware.toml")
        compile_layers(self.inputs.layers[:1], machine)

    def masks(self, rng: random.Random) -> None:
        name, data = self.inputs.masks(rng)
        Path(name).write_bytes(data)
        masks = read_masks(Path(name))
        layers_of(self.inputs.nodes, 0.0, masks)

    def schedule(self, rng: random.Random) -> None:
        """Up to its execution."""
        for name, text in self.inputs.schedule(rng).items():
            Path(name).write_bytes(text)
        compiled = read_schedule(Path(SCHEDULE))
        simulate(compiled, NetworkData.of(compiled))

    def weights(self, rng: random.Random) -> None:
        """Of a network: their densities, what is pruned, and what a schedule executes."""
        name, data = self.inputs.weights(rng)
        Path(name).write_bytes(data)
        way = rng.choice(("import", "prune", "execute"))
        if way == "import":
            found = ModelImport(Path(name), Path("net.toml"), self.registry, False, lambda text: None, "tiny")
            import_weights(found, self.inputs.network_piece, self.inputs.nodes)
        elif way == "prune":
            chosen_layers(read_weights(Path(name), rng.choice(("oihw", "hwio"))), ())
        else:
            for part, text in self.inputs.compiled.items():
                Path(part).write_bytes(text)
            compiled = read_schedule(Path(SCHEDULE))
            NetworkData.of(compiled, 0, given_weights(compiled, read_arrays(Path(name))))


KINDS: dict[str, int] = {
    "made_up_table": 5, "real_spec": 5, "bytes_of_a_spec": 3, "problem": 1, "expression": 2, "design": 1, "study": 2,
    "timeloop_problem": 2, "timeloop_project": 4, "exchange": 2, "tensor": 4, "network": 2, "chip": 1, "masks": 1, "weights": 1,
    "schedule": 1, "onnx": 3,
}  # fmt: skip
"""The inputs of each kind among 40."""
TURNS = [kind for kind, share in KINDS.items() for _ in range(share)]
ONLY = "SPARSEMAP_FUZZ_KIND"
"""A variable of the environment: the one kind that is tried, set by `--kind`."""


def kind_of(number: int) -> str:
    return os.environ.get(ONLY) or TURNS[number % len(TURNS)]


def attempt(attempts: Attempts, number: int) -> str:
    """Tries an input; what was told of it, empty if it was taken. Raises what no user should see."""
    try:
        with limited_time():
            getattr(attempts, kind_of(number))(random.Random(number))
    except SparseMapError as error:
        assert str(error).strip(), "an error without a text"
        assert len(str(error)) < 100_000, "an error that nobody can read"
        return str(error)
    return ""


@contextmanager
def limited_time() -> Iterator[None]:
    """TimeoutError after `SECONDS` of processor time."""

    def late(*_: object) -> None:
        raise TimeoutError(f"took more than {SECONDS} s")

    if os.name != "posix":
        yield
        return
    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def bound_memory() -> Callable[[], None]:
    """Lets the process have `MEMORY` bytes more than now; gives the way back."""
    if sys.platform != "linux":
        return lambda: None
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, before[1]))
    return lambda: resource.setrlimit(resource.RLIMIT_AS, before)


# ------------------------------------------------------------------------------------------------------------- command


def work(first: int, last: int) -> None:
    """Tries inputs in this process; prints the number of each before it begins, and what is wrong with it."""
    attempts = Attempts()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        bound_memory()
        for number in range(first, last):
            print("begin", number, flush=True)
            try:
                print("told" if attempt(attempts, number) else "taken")
            except Exception as error:
                print("wrong", f"{type(error).__name__}: {error}"[:300].replace("\n", " "))
        os.chdir("/")


def chunk(first: int, last: int) -> tuple[Counter[str], list[str]]:
    """Counts, and what is wrong, of inputs that processes of their own try."""
    counts, wrong = Counter[str](), []
    while first < last:
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        args = [sys.executable, __file__, "--work", str(first), str(last)]
        done = subprocess.run(args, env=environment, capture_output=True, text=True, errors="replace")
        at = first
        for line in done.stdout.splitlines():
            word, _, rest = line.partition(" ")
            if word == "begin":
                at = int(rest)
            else:
                counts[word] += 1
            if word == "wrong":
                wrong.append(f"{at} ({kind_of(at)}): {rest}")
        first = last
        if done.returncode:
            counts["wrong"] += 1
            told = done.stderr.strip().splitlines()[-1:]
            wrong.append(f"{at} ({kind_of(at)}): ended the process with status {done.returncode} {told}")
            first = at + 1
        elif done.stderr.strip():
            counts["wrong"] += 1
            wrong.append(f"{at} or before: printed {done.stderr.strip()[:300]!r}")
    return counts, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", nargs="?", type=int, default=200_000, help="inputs to try (200,000)")
    parser.add_argument("--first", type=int, default=0, help="number of the first one")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--kind", choices=list(KINDS), help="inputs of this kind alone")
    parser.add_argument("--only", action="store_true", help="try the first one here, with its traceback")
    parser.add_argument("--work", nargs=2, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.kind:
        os.environ[ONLY] = options.kind
    if options.work:
        work(*options.work)
        return 0
    if options.only:
        print(attempt(Attempts(), options.first) or "taken")
        return 0
    end = options.first + options.count
    starts = range(options.first, end, CHUNK)
    total, started = Counter[str](), time.monotonic()
    with ThreadPoolExecutor(options.jobs) as pool:
        for counts, wrong in pool.map(lambda start: chunk(start, min(start + CHUNK, end)), starts):
            total += counts
            print(*wrong, sep="\n", end="\n" if wrong else "")
            seconds = time.monotonic() - started
            numbers = ", ".join(f"{total[word]:,} {word}" for word in ("told", "taken", "wrong"))
            print(f"{total.total():,} of {options.count:,} inputs in {seconds:,.0f} s: {numbers}", flush=True)
    return 1 if total["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
