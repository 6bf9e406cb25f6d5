"""Does the comparison notice wrong formulas? Changes one term of the model per section and counts disagreeing cases.

    python tests/conformance/mutations.py

Each mutant is a copy of the project with one line changed, which CPython runs; it is compared on every fourth reference
case (quirks as the evaluator has them, so that every section is exercised). A mutant that no case notices is an error.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = "plugins/analytic/inner"
MUTANTS = [  # section, file, a line or part of one, what it becomes
    ("1 box", "nest.py", "m.term_factor[t, r, i] * (extent[row, m.term_dim[t, r, i]] - 1.0)", "extent[row, m.term_dim[t, r, i]]"),
    ("4.1 temporal reuse", "traffic.py", "            run *= x.bound[group, d]", "            run *= 1.0"),
    ("4.1 sliding windows", "traffic.py", "first_change if same or not seen else words", "words"),
    ("4.2 multicast", "traffic.py", "            found *= one\n", "            found *= 1.0\n"),
    ("4.3 partition", "traffic.py", "floor(before / (volume(m, t, x.around, s - 1) / x.words[t, s]))", "before"),
    ("4.4 first-write elision", "traffic.py", "x.accesses[s] - x.partition[s] + 0.5", "x.accesses[s] + 0.5"),
    ("5.6 empty tiles", "counts.py", " * x.occupied[t, s] if handles", " if handles"),
    ("6.1 fiber length", "stored.py", "if place < m.slots else", "if place < m.slots - 1 else"),
    ("6.3 accesses", "counts.py", "less(ceil(units * (x.reads", "less(floor(units * (x.reads"),
    ("6.4 compression", "counts.py", "emptiness_share = 1.0 - x.kept[t, s]", "emptiness_share = 0.0"),
    ("7.1 leader tile", "leaders.py", "if (inside or spans) and (moves", "if inside and (moves"),
    ("7.1 shared loops", "leaders.py", "ceil(x.part[LED, d] / (x.factor[d] / need))", "x.part[LED, d]"),
    ("7.2 nested shares", "counts.py", "if acts_above:", "if 0:"),
    ("7.2 output reads", "counts.py", "ceil(c.read[t, s] * own) if t == m.output", "floor(c.read[t, s] * own) if t == m.output"),
    ("7.3 computes", "computes.py", "            c.left = less(c.left, share)\n            x.emptied", "            x.emptied"),
    ("7.3 one, three or four operands", "computes.py", "c.passed += count", "c.passed += 0.0"),
    ("8 bandwidth", "cycles.py", "* x.word_width[t, s] + floor(read_bits / m.word_bits[s])", "* x.word_width[t, s]"),
    ("8 rounding of demand", "cycles.py", "ceil(x.demand_read[t, s] / share)", "x.demand_read[t, s] / share"),
    ("9 metadata energy", "cost.py", "ceil(c.read_bits[t, s] / width) * m.price_pj", "c.read_bits[t, s] / width * m.price_pj"),
    ("10 capacity", "checks.py", "words_of(m, x, s) > m.data_words[s]", "words_of(m, x, s) > m.data_words[s] + 1000"),
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
            path = copy / FOLDER / file
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
    env = {**os.environ, "SPARSEMAP_COMPILED": "0"}
    done = subprocess.run([sys.executable, "-c", code], cwd=copy, capture_output=True, text=True, env=env)
    return int(done.stdout) if done.returncode == 0 else -1


if __name__ == "__main__":
    sys.exit(main())
