"""A fixture for tests of the words and numbers of a page: its charts are drawn, but no picture is written."""

import pytest

BLANK = '<svg xmlns="http://www.w3.org/2000/svg"/>'


@pytest.fixture
def blank_charts(monkeypatch):
    """Figures in text form are empty: laying out and writing them takes nine tenths of the time of a page. The tests of
    reports and plots hold the pictures."""
    from matplotlib.figure import Figure

    write = Figure.savefig

    def savefig(figure, target, **options):
        return target.write(BLANK) if hasattr(target, "write") else write(figure, target, **options)

    monkeypatch.setattr(Figure, "savefig", savefig)
