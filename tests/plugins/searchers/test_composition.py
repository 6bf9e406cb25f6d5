"""The default search is a composition of operators: what a spec lists takes part, and what fails is named."""

import attrs
import numpy as np
import pytest
from click.testing import CliRunner
from sparsemap_plugins.searchers.evolution import Evolution
from sparsemap_plugins.searchers.operators.segments import SegmentCrossover, SegmentMoves
from sparsemap_plugins.searchers.variation import Variation
from toy_problem import toy_problem

from sparsemap import Budget, Context, Scored, load_problem, search
from sparsemap.cli.main import cli
from sparsemap.errors import PluginError
from sparsemap.pieces.contracts import Mutation

PLUGIN = '''
import attrs
import numpy as np
from sparsemap import Mutation, hookimpl

CALLS = []

@attrs.frozen(kw_only=True)
class Reset(Mutation):
    """One gene of every genome gets any value."""
    type_name = "reset"

    def mutate(self, genomes, context):
        CALLS.append(len(genomes))
        changed = genomes.copy()
        genes = context.rng.integers(len(context.space), size=len(genomes))
        values = context.rng.integers(context.space.low[genes], context.space.high[genes], endpoint=True)
        changed[np.arange(len(genomes)), genes] = values
        return changed

@attrs.frozen(kw_only=True)
class Broken(Mutation):
    type_name = "broken"
    how: str = "shape"

    def mutate(self, genomes, context):
        if self.how == "shape":
            return genomes[:, :3]
        if self.how == "type":
            return genomes + 0.5
        if self.how == "bounds":
            return genomes + 100_000_000
        return genomes[len(genomes)]

@hookimpl
def register_operators():
    return [Reset, Broken]
'''
SPEC = 'kind = "searcher"\nname = "{name}"\nextends = "{base}"\nmutations = ["segment-moves", {mutation}]\n'


@pytest.fixture
def plugins(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").write_text(PLUGIN)
    for base in ("sparsemap", "nsga2"):
        text = SPEC.format(name=f"{base}-and-mine", base=base, mutation='"reset"')
        (tmp_path / "mine" / f"{base}.toml").write_text(text)
    return tmp_path


@pytest.mark.parametrize(("base", "objective"), [("sparsemap", "edp"), ("nsga2", "pareto:energy,delay")])
def test_a_mutation_of_a_plugin_takes_part_in_the_default_searches(plugins, base, objective):
    problem = load_problem("mm1", "edge-16gbps", objective=objective, plugin_dirs=[plugins])
    result = search(problem, 2_000, searcher=f"{base}-and-mine")
    calls = type(problem.registry.get("mutation", "reset")).mutate.__globals__["CALLS"]
    assert result.evaluations == 2_000 and result.best is not None
    assert sum(calls) > 100


def test_the_command_finds_a_spec_with_operators_of_a_plugin(plugins, tmp_path):
    options = [
        "--searcher",
        "sparsemap-and-mine",
        "--plugin-dir",
        str(plugins),
        "--budget",
        "300",
        "-q",
        "--out",
        str(tmp_path / "out"),
    ]
    assert CliRunner().invoke(cli, ["search", "mm1", "edge-16gbps", *options]).exit_code == 0


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ("shape", "mutate gave wrong values: an array of shape"),
        ("type", "mutate gave wrong values: genomes have type float64, expected integers"),
        ("bounds", "mutate gave wrong values: genome 0: gene 'order.L1_T' is 1000000"),
        ("raise", "mutate raised IndexError"),
    ],
)
def test_a_broken_mutation_is_named_with_its_line_and_what_was_found_is_kept(plugins, how, text):
    problem = load_problem("mm1", "edge-16gbps", plugin_dirs=[plugins])
    table = {"extends": "sparsemap", "mutations": [{"type": "broken", "how": how}]}
    with pytest.raises(PluginError) as error:
        search(problem, 2_000, searcher=table)
    assert "mutation 'broken'" in str(error.value) and text in str(error.value)
    assert "__init__.py, line 2" in str(error.value) or "__init__.py, line 3" in str(error.value)
    assert error.value.result.evaluations > 0


@attrs.frozen(kw_only=True)
class Aimed(Mutation):
    """Sets all genes to their lowest or, to no use, their highest values."""

    best: bool

    def mutate(self, genomes, context):
        return np.repeat((context.space.low if self.best else context.space.high)[None, :], len(genomes), axis=0)


def test_shares_follow_success_and_no_mutation_is_given_up():
    space = toy_problem().space
    context = Context(space, np.random.default_rng(0))
    variation = Variation(space, [Aimed(best=True), Aimed(best=False)], SegmentCrossover(), rate=0.0)
    assert variation.shares.tolist() == [0.5, 0.5]
    for _ in range(20):
        children, used = variation.mutate(space.sample(100, context.rng), context)
        variation.learn(used, (children == space.low).all(axis=1))
    assert 0.06 <= variation.shares[1] < 0.35 < variation.shares[0]


def test_many_mutations_have_a_share_each():
    space = toy_problem().space
    variation = Variation(space, [Aimed(best=True)] * 40, SegmentCrossover(), rate=0.0)
    assert variation.shares.sum() == pytest.approx(1.0) and variation.shares.min() > 0.0


def test_segment_moves_change_one_segment_at_a_time():
    space = load_problem("mm1", "edge-16gbps").space
    context = Context(space, np.random.default_rng(0))
    genomes = space.sample(200, context.rng)
    segments = [part.start for part in space.slices.values()]
    changed = np.add.reduceat(SegmentMoves().mutate(genomes, context) != genomes, segments, axis=1) > 0
    assert (changed.sum(axis=1) <= 1).all()
    assert changed.any(axis=0).all()


def test_an_evolution_may_repair_what_it_proposes_and_propose_the_best_again():
    """The best so far, by the last score of each, opens each batch but the first until it scores the same again, and all are
    their own repair."""
    problem = toy_problem()
    space, rng = problem.space, np.random.default_rng(0)
    searcher = Evolution(population=6, offspring=5, repeats=False, repairs=True, again=True)
    proposals = searcher.search(space, Budget(60), np.random.default_rng(0))
    genomes, last, ended = next(proposals), dict[tuple[int, ...], float](), set()
    for batch in range(8):
        assert np.array_equal(space.repair(genomes, rng), genomes)
        scores, rows = rng.random(len(genomes)), list(map(tuple, genomes.tolist()))
        best = min(last, key=lambda row: last[row], default=None)
        assert not batch or (rows[0] == best) == (best not in ended)
        if batch in (3, 5) and rows[0] == best:
            scores[0] = last[best]
            ended.add(best)
        last |= dict(zip(rows, scores.tolist(), strict=True))
        genomes = proposals.send(Scored(genomes, scores))
    assert ended


def test_some_of_what_an_evolution_evaluates_may_be_one_step_beside_the_best():
    """Two of five, as long as there are any that were not proposed."""
    space = toy_problem().space
    searcher = Evolution(population=6, offspring=5, repeats=False, screen=4, steps=2)
    proposals = searcher.search(space, Budget(60), np.random.default_rng(0))
    genomes, best, rng = next(proposals), (np.inf, np.zeros(0)), np.random.default_rng(1)
    for batch in range(4):
        if batch:
            assert len(genomes) == 5 == len(np.unique(genomes, axis=0))
            assert (np.abs(genomes[:2] - best[1]).sum(axis=1) == 1).all()
        scores = 1.0 + rng.random(len(genomes))
        best = min(best, *zip(scores, genomes, strict=True), key=lambda pair: pair[0])
        genomes = proposals.send(Scored(genomes, scores))


def test_an_evolution_without_repeats_proposes_no_design_twice_and_ends_when_all_were(monkeypatch):
    monkeypatch.setattr("toy_problem.HIGH", np.array([3, 2, 2, 2, 1, 1, 1, 1]))
    few = {"type": "evolution", "offspring": 8, "population": 4}
    result = search(toy_problem(), 400, searcher={**few, "repeats": False})
    assert 24 <= result.evaluations <= 24 + 4  # each of 24 designs once, but for what the initialisation lost
    assert search(toy_problem(), 400, searcher=few).evaluations == 400
