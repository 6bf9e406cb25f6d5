from sparsemap.pieces.loading import load
from sparsemap.study.study import run_study


def test_all_its_searches_end(tmp_path):
    outcomes = run_study(load().get("study", "plugin-name"), out=str(tmp_path))
    assert [outcome.state for outcome in outcomes] == ["done"] * 4
