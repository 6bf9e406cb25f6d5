"""What a search remembers: a history that is thinned, designs rejected by reason."""

import numpy as np
import pytest
from toy_problem import toy_problem

from sparsemap import search
from sparsemap.searching.archive import History, Row


def test_a_long_history_is_thinned_without_losing_a_design():
    history = History(limit=8)
    for i in range(1, 101):
        history.add(Row(i * 10, 1000.0 - i, 10, float(i)))
    assert len(history.rows) <= 9
    assert sum(row.valid for row in history.rows) == 1000
    assert history.rows[-1].evaluations == 1000
    assert history.rows[-1].best_score == 900.0
    assert np.average([r.mean_score for r in history.rows], weights=[r.valid for r in history.rows]) == pytest.approx(
        50.5
    )


def test_rejected_designs_are_counted_by_reason():
    result = search(toy_problem(limit=5.0), 2000, searcher="random")
    assert list(result.rejects) == ["capacity:GLB", "fanout:L2"]
    assert result.rejects["capacity:GLB"] == round(2000 * (1 - result.valid_fraction))
