"""The model against the reference evaluator, family by family: `check.py` on the case files beside it.

That every case agrees in every quantity, but for those that docs/agreement.md names, is in
`tests/docs/test_docs.py`: it holds the table of that page to what `check.py` prints.
"""

from __future__ import annotations

from pathlib import Path

import check
import pytest
from mutations import FOLDER, MUTANTS, ROOT

from sparsemap.pieces.loading import load

FILES = sorted(Path(__file__).parent.glob("cases-*.jsonl"))
REGISTRY = load()


@pytest.mark.parametrize("file", [f for f in FILES if f.stem[-1] in "ABC"], ids=lambda file: file.stem)
def test_without_quirks_cases_that_touch_none_agree_as_well(file: Path) -> None:
    ((_, tally, _),) = check.run([file], "none", REGISTRY)
    assert tally.within == tally.quantities, tally.examples


def test_out_writes_a_line_per_case(tmp_path: Path) -> None:
    """`--out` is what other programs read: id and result in the shape of `ref`."""
    few = tmp_path / "few.jsonl"
    few.write_text("\n".join(FILES[5].read_text().splitlines()[:3]) + "\n")
    assert check.main([str(few), "--out", str(tmp_path / "results.jsonl")]) == 0
    import json

    lines = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()]
    cases = [json.loads(line) for line in few.read_text().splitlines()]
    assert [line["id"] for line in lines] == [case["id"] for case in cases]
    assert all(line["result"]["valid"] == case["ref"]["valid"] for line, case in zip(lines, cases, strict=True))


@pytest.mark.parametrize(("file", "right"), [mutant[1:3] for mutant in MUTANTS], ids=[mutant[0] for mutant in MUTANTS])
def test_the_lines_that_mutations_change_are_there(file: str, right: str) -> None:
    """`mutations.py`, which takes longer, shows that the comparison notices when they are wrong."""
    assert right in (ROOT / FOLDER / file).read_text("utf-8")
