"""Does the comparison notice wrong formulas? Changes one term of the model per section and counts disagreeing cases.

    python tests/conformance/mutations.py

Each mutant is a copy of the project with one line changed; it is compared on every fourth reference case (quirks as the
evaluator has them, so that every section is exercised). A mutant that no case notices is an error.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
MUTANTS = [  # section, file, a line or part of one, what it becomes
    ("1 box", "../../sparsemap/pieces/contracts/workload.py",
     "c * (extents[dim] - 1) + (1 if width is None else width)", "extents[dim]"),
    ("4.1 temporal reuse", "traffic.py", "run = np.where(still, run * bound, run)", "run = run"),
    ("4.1 sliding windows", "windows.py", "delta = np.where(starts | same, first_delta, words)", "delta = words"),
    ("4.2 multicast", "traffic.py", "distinct = distinct * spatial[rank[0][0]]", "pass"),
    ("4.3 partition", "traffic.py",
     "part.append(np.floor(part[-1] / (spread / nest.tile_words[t, s])))", "part.append(part[-1])"),
    ("4.4 first-write elision", "traffic.py", "np.floor(accesses[s] - part[s] + 0.5)", "np.floor(accesses[s] + 0.5)"),
    ("5.6 empty tiles", "counts.py", "used, 0.0) * stored.occupied", "used, 0.0)"),
    ("6.1 fiber length", "ranks.py", "place < width, found", "place < width - 1, found"),
    ("6.3 accesses", "metadata.py", "np.ceil(units.metadata * ratio)", "np.floor(units.metadata * ratio)"),
    ("6.4 compression", "counts.py",
     "_Words(*(less(part, emptiness) for part in dense))", "_Words(*(part.copy() for part in dense))"),
    ("7.1 leader tile", "leaders.py", "to_region = np.where(spans, bound, to_target)", "to_region = to_target"),
    ("7.1 shared loops", "leaders.py", "f[d] = np.where(on, np.ceil(f[d] / (q / need)), f[d])", "pass"),
    ("7.2 nested shares", "counts.py", "np.where(acts_above, nested, removal.still[here])", "removal.still[here]"),
    ("7.2 output reads", "counts.py", "np.where(is_output, np.ceil(lost), np.floor(lost))", "np.floor(lost)"),
    ("7.3 computes", "computes.py", "left = less(left, share)", "left = left"),
    ("7.3 one, three or four operands", "computes.py", "vanish = vanish + computes", "pass"),
    ("8 bandwidth", "cycles.py", "read = read + np.floor(timed_read / word)", "pass"),
    ("8 rounding of demand", "cycles.py", "np.ceil(demand.read / share)", "demand.read / share"),
    ("9 metadata energy", "cost.py",
     "np.ceil(bits / by_level(chip.metadata_width)) * each", "bits / by_level(chip.metadata_width) * each"),
    ("10 capacity", "checks.py", "words[s] > data_words(chip, s)", "words[s] > data_words(chip, s) + 1000"),
]  # fmt: skip


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name)
        for part in ("sparsemap", "plugins", "specs", "tests/conformance"):
            shutil.copytree(ROOT / part, copy / part)
        (copy / "sparsemap_plugins").symlink_to("plugins")
        (copy / "sparsemap_specs").symlink_to("specs")
        few = copy / "few.jsonl"
        lines = [line for file in sorted((copy / "tests/conformance").glob("cases-*.jsonl")) for line in file.open()]
        few.write_text("".join(lines[::4]))
        unnoticed, usual = 0, 0
        print(f"{'section':26}{'disagreeing cases':>18} of {len(lines[::4])}")
        for section, file, right, wrong in [("none", "", "", ""), *MUTANTS]:
            path = copy / "plugins/analytic" / file
            text = path.read_text() if file else ""
            if file and right not in text:
                print(f"{section:26} its line is no longer there: {right}")
                unnoticed += 1
                continue
            if file:
                path.write_text(text.replace(right, wrong, 1))
            count = disagreeing(copy, few)
            if file:
                path.write_text(text)
                unnoticed += count == usual
            else:
                usual = count  # rounding noise of family K
            print(f"{section:26}{count if count >= 0 else 'raises':>18}", flush=True)
    return 1 if unnoticed else 0


def disagreeing(copy: Path, few: Path) -> int:
    """Cases with a quantity outside the tolerance; -1 if the mutant cannot run."""
    code = (
        "import sys, pathlib; sys.path[:0] = ['tests/conformance', '.']\n"
        "import check; from sparsemap.pieces.loading import load\n"
        f"families = check.run([pathlib.Path({str(few)!r})], 'timeloop-v3', load())\n"
        "print(sum(tally.cases - tally.perfect for _, tally, _ in families))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=copy, capture_output=True, text=True)
    return int(done.stdout) if done.returncode == 0 else -1


if __name__ == "__main__":
    sys.exit(main())
