"""The journal of a search: what is in it is believed as far as it is whole and fits, and nothing is evaluated twice."""

import random
import tracemalloc
import zlib

import attrs
import numpy as np
import pytest
from crashes import outcome, search_quietly, stopped
from toy_problem import ToyModel, toy_problem

from sparsemap import Search, Searcher, SearchError, load_problem, search
from sparsemap.pieces.loading import load
from sparsemap.problem.evaluator import Evaluator
from sparsemap.searching.folder import search_into, unfinished
from sparsemap.searching.identity import identity_of
from sparsemap.searching.journal import JOURNAL_FILE, MAGIC, Journal, JournalMismatch
from sparsemap.searching.result import DESIGN_FILE, RESULT_FILE
from sparsemap.searching.written import read_result


@pytest.fixture(scope="module")
def registry():
    return load()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """What `search_quietly` writes for the toy problem with a budget of 200."""
    folder = tmp_path_factory.mktemp("undisturbed")
    search_quietly(folder, toy_problem(), 200)
    return outcome(folder)


def _identity(problem, budget=600, seed=7, searcher="sparsemap"):
    return identity_of(problem, Search(problem, searcher, budget).searcher, budget, seed)


def test_a_torn_journal_is_good_up_to_the_tear(undisturbed, tmp_path):
    data = stopped(tmp_path / "torn", toy_problem(), 200, 100).read_bytes()
    sizes = [*range(12), *range(12, 60, 6), *random.Random(0).sample(range(60, len(data)), 16), len(data) - 1]
    for size in sizes:
        folder = tmp_path / f"torn{size}"
        folder.mkdir(exist_ok=True)
        (folder / JOURNAL_FILE).write_bytes(data[:size])
        search_quietly(folder, toy_problem(), 200)
        assert outcome(folder) == undisturbed, size


def test_damage_in_the_journal_costs_what_comes_after_it_but_is_never_believed(undisturbed, tmp_path):
    data = stopped(tmp_path / "good", toy_problem(), 200, 100).read_bytes()
    start = data.index(b"}}", 20)
    draw = random.Random(0)
    for place in draw.sample(range(start + 10, len(data)), 24):
        folder = tmp_path / f"bad{place}"
        folder.mkdir(exist_ok=True)
        changed = bytearray(data)
        changed[place] ^= 1 << draw.randrange(8)
        (folder / JOURNAL_FILE).write_bytes(changed)
        search_quietly(folder, toy_problem(), 200)
        assert outcome(folder) == undisturbed, place


@pytest.mark.parametrize("header", [b"{not JSON", b"[" * 100_000, b"[1]", None])
def test_a_header_that_says_nothing_is_no_header(header, undisturbed, tmp_path):
    length = (2**32 - 1 if header is None else len(header)).to_bytes(4, "little")
    text = header or b"{}"
    (tmp_path / JOURNAL_FILE).write_bytes(MAGIC + length + text + zlib.crc32(text).to_bytes(4, "little"))
    tracemalloc.start()
    search_quietly(tmp_path, toy_problem(), 200)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e9  # not what the length asks for
    assert outcome(tmp_path) == undisturbed


def test_recorded_designs_are_not_evaluated_again(tmp_path, monkeypatch):
    stopped(tmp_path, toy_problem(), 3000, after=2500)
    counts = []
    evaluate = Evaluator.evaluate_designs

    def counted(self, designs, detail=False):
        counts.append(len(designs))
        return evaluate(self, designs, detail)

    monkeypatch.setattr(Evaluator, "evaluate_designs", counted)
    result = search_quietly(tmp_path, toy_problem(), 3000)
    assert result.evaluations == 3000
    assert sum(counts) < 1000


def test_the_time_of_a_search_is_that_of_all_its_parts(tmp_path):
    stopped(tmp_path, toy_problem())
    journal = tmp_path / JOURNAL_FILE
    with Journal(journal, _identity(toy_problem())) as record:
        run = Search(toy_problem(), "sparsemap", 600, 7)
        genomes = run.ask()
        evaluation = record.recorded(genomes)
    journal.unlink()
    with Journal(journal, _identity(toy_problem())) as record:
        record.append(genomes, evaluation, 1000.0)
    assert search_quietly(tmp_path, toy_problem(), 600).seconds > 1000


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"budget": 700}, "budget is 600 there, 700 here"),
        ({"seed": 8}, "seed is 7 there, 8 here"),
        ({"searcher": "random"}, 'searcher.name is "sparsemap" there, "random" here'),
        ({"searcher": {"type": "memetic", "name": "sparsemap", "population": 48}}, "searcher.population is nothing"),
    ],
)
def test_another_search_in_the_folder_is_an_error_that_says_what_differs(arguments, text, tmp_path):
    before = stopped(tmp_path, toy_problem()).read_bytes()
    arguments = {"budget": 600, "seed": 7, "searcher": "sparsemap", **arguments}
    with pytest.raises(JournalMismatch) as caught:
        search_into(tmp_path, toy_problem(), **arguments)
    assert text in str(caught.value)
    assert "--overwrite" in str(caught.value) and JOURNAL_FILE in str(caught.value)
    assert (tmp_path / JOURNAL_FILE).read_bytes() == before
    assert search_into(tmp_path, toy_problem(), **arguments, overwrite=True).evaluations == arguments["budget"]
    assert not unfinished(tmp_path)


def test_another_problem_is_another_search(registry, tmp_path):
    stopped(tmp_path, load_problem("mm1", "cloud", registry=registry))
    with pytest.raises(JournalMismatch, match='clock is nothing there, "2 GHz" here'):
        search_quietly(tmp_path, load_problem("mm1", {"extends": "cloud", "clock": "2 GHz"}, registry=registry), 600)


def test_a_piece_that_changed_behind_its_name_is_noticed(tmp_path):
    class Dearer(ToyModel):
        def evaluate(self, designs, problem, detail=False):
            found = super().evaluate(designs, problem, detail)
            return attrs.evolve(found, costs=found.costs.each(lambda column: column * 1.001))

    stopped(tmp_path, toy_problem())
    problem = toy_problem()
    problem.cost_model = Dearer(name="toy-model")
    with pytest.raises(JournalMismatch, match="no longer worth what they were"):
        search_quietly(tmp_path, problem, 600)


def test_a_searcher_that_does_not_repeat_itself_is_noticed(tmp_path):
    class Fickle(Searcher):
        type_name = "fickle"

        def search(self, space, budget, rng):
            while True:
                yield space.sample(100, np.random.default_rng())

    stopped(tmp_path, toy_problem(), searcher=Fickle(name="fickle"))
    with pytest.raises(JournalMismatch, match="proposes other designs in batch 1 than"):
        search_quietly(tmp_path, toy_problem(), 600, Fickle(name="fickle"))


def test_a_file_that_is_no_journal_is_not_touched(tmp_path):
    (tmp_path / JOURNAL_FILE).write_bytes(b"the only copy of my thesis")
    with pytest.raises(JournalMismatch, match="is not the journal of a search"):
        search_quietly(tmp_path, toy_problem(), 600)
    assert (tmp_path / JOURNAL_FILE).read_bytes() == b"the only copy of my thesis"


def test_two_searches_in_one_folder_at_a_time_are_refused(tmp_path, monkeypatch):
    pytest.importorskip("fcntl")
    monkeypatch.setattr("sparsemap.searching.journal.WAIT_SECONDS", 0.2)
    with (
        Journal(tmp_path / JOURNAL_FILE, _identity(toy_problem())),
        pytest.raises(SearchError, match="another search is writing it"),
    ):
        search_quietly(tmp_path, toy_problem(), 600)


def test_memory_does_not_grow_with_the_journal(tmp_path):
    """A journal of 14 MB is replayed within two."""

    class Wide(Searcher):
        type_name = "wide"

        def search(self, space, budget, rng):
            while True:
                yield space.sample(5_000, rng)

    path = tmp_path / JOURNAL_FILE
    search(toy_problem(), 600_000, 0, Wide(name="wide"), journal=path)
    assert path.stat().st_size > 14e6
    tracemalloc.start()
    search(toy_problem(), 600_000, 0, Wide(name="wide"), journal=path)
    assert tracemalloc.get_traced_memory()[1] < 5e6
    tracemalloc.stop()


def test_a_journal_of_an_earlier_version_is_refused(tmp_path):
    (tmp_path / JOURNAL_FILE).write_bytes(b"sparsemap journal 1\n\x02\x00\x00\x00{}")
    with pytest.raises(JournalMismatch, match="was written by another version of SparseMap"):
        search_into(tmp_path, toy_problem(), 100)
    assert search_into(tmp_path, toy_problem(), 100, overwrite=True).evaluations == 100


def test_a_folder_of_another_search_is_refused_before_anything_runs(tmp_path):
    problem = toy_problem()
    found = search(problem, 600, seed=7, out=tmp_path)
    assert read_result(tmp_path)["edp"] == found.best.edp and not (tmp_path / JOURNAL_FILE).exists()
    assert search(problem, 600, seed=7, out=tmp_path).best.edp == found.best.edp

    def never(*_):
        raise AssertionError("the search has begun")

    with pytest.raises(JournalMismatch, match=r"seed is 7 there, 8 here.*overwrite=True"):
        search(problem, 600, seed=8, out=tmp_path, progress=never)
    with pytest.raises(SearchError, match="both a journal and out"):
        search(problem, 600, out=tmp_path, journal=tmp_path / "j")


@pytest.mark.parametrize("left", [None, 500])
def test_a_design_without_a_readable_result_is_not_overwritten(left, registry, tmp_path):
    problem = load_problem("small-sparse", "small", registry=registry)
    found = search(problem, 60, seed=7, out=tmp_path)
    text = (tmp_path / RESULT_FILE).read_text()
    (tmp_path / RESULT_FILE).unlink()
    if left:
        (tmp_path / RESULT_FILE).write_text(text[:left])
    before = (tmp_path / DESIGN_FILE).read_text()
    for again in (lambda: search(problem, 60, seed=8, out=tmp_path), lambda: found.write(tmp_path)):
        with pytest.raises(JournalMismatch, match=r"design.toml is of a search that is not known"):
            again()
    assert before == (tmp_path / DESIGN_FILE).read_text()
    assert search(problem, 60, seed=8, out=tmp_path, overwrite=True).seed == 8
