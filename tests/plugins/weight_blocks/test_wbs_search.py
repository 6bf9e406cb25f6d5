"""Splits as genes: ordinary searchers find the best ones, designs are written and read, and reports say what they are."""

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sparsemap_plugins.weight_blocks.cost_model import ConvProblem
from sparsemap_plugins.weight_blocks.networks import layer_of
from wbs_layers import registry

from sparsemap import SpecError, load_problem, search
from sparsemap.cli.main import cli
from sparsemap.pieces.study_spec import Network
from sparsemap.problem import design_file
from sparsemap.problem.network import nodes_of
from sparsemap.testing import check_cost_model, check_segment

DENSITY = {"Q": {"type": "block", "density": 0.5, "block": [8, 8, 3, 3]}}
LAYER = {"name": "layer", "type": "conv2d", "k": 128, "c": 64, "p": 14, "q": 14, "r": 3, "s": 3, "padding": 1}


@pytest.fixture(scope="module")
def problem():
    return load_problem({**LAYER, "density": DENSITY}, "aie2-4x4", "aie2", "delay", registry=registry())


def test_the_space_names_its_cost_model_and_both_keep_their_contracts(problem) -> None:
    assert problem.cost_model.type_name == "aie2-time"
    check_segment(problem.space.segments["sub-volume"], problem)
    check_cost_model(problem.cost_model, problem)


def test_the_first_guess_is_the_rule_of_the_paper_and_repaired_genomes_are_valid(problem) -> None:
    rng = np.random.default_rng(0)
    first = problem.space.decode(problem.space.guess(8, rng)).columns["subvolume"][:, 0]
    rule = ConvProblem.of(problem).cut.rule()
    assert tuple(first[:2]) == (rule.co, rule.ci) and first[2] <= rule.rows
    repaired = problem.space.repair(problem.space.sample(300, rng), rng)
    evaluation = problem.evaluator.evaluate(repaired)
    assert evaluation.valid.all()
    assert not problem.evaluator.evaluate(problem.space.sample(300, rng)).valid.all()


def test_a_search_reaches_the_optimum_and_never_goes_below_the_bound(problem) -> None:
    known = ConvProblem.of(problem)
    every = known.cut.candidates(14)
    columns = {"subvolume": np.stack([every.co, every.ci, every.rows, every.co * 0 + 1, every.co * 0 + 1])}
    from sparsemap.problem.designs import Designs

    best = problem.cost_model.evaluate(Designs(columns), problem).cycles.min()
    result = search(problem, 1000, 0)
    assert result.found.cycles == pytest.approx(best)
    bound = problem.cost_model.lower_bound(problem)
    assert bound.cycles[0] < best < 2 * bound.cycles[0]


@pytest.mark.parametrize(
    "layer",
    [
        {},
        {"k": 40, "c": 24, "p": 9, "q": 7, "r": 1, "s": 1, "stride": 2, "padding": 0},
        {"k": 512, "c": 512, "p": 7, "q": 7},
        {"k": 64, "c": 3, "p": 112, "q": 112, "r": 7, "s": 7, "stride": 2, "padding": 3},
    ],
)
def test_no_design_costs_less_than_the_bound(layer) -> None:
    problem = load_problem({**LAYER, **layer}, "aie2-4x4", "aie2", registry=registry())
    rng = np.random.default_rng(0)
    found = problem.evaluator.evaluate(problem.space.repair(problem.space.sample(500, rng), rng))
    bound = problem.cost_model.lower_bound(problem)
    assert found.valid.any()
    assert (
        bound.cycles[0] <= found.cycles.min() and bound.energy_pj[0] <= found.energy_pj.min() < 3 * bound.energy_pj[0]
    )


def test_a_design_file_holds_the_sub_volume_and_is_read_back(problem, tmp_path: Path) -> None:
    result = search(problem, 200, 0)
    table = design_file.dump(result.found.design)
    own = table["segments"]["sub-volume"]["design"]
    assert set(own) == {"co", "ci", "rows", "tiles", "passes"} and "mapping" not in table
    again = design_file.structure(table, registry())
    assert again.problem.evaluator.evaluate(np.zeros((1, 0), np.int64)).cycles[0] == pytest.approx(result.found.cycles)
    result.write(str(tmp_path))
    shown = CliRunner().invoke(cli, ["show", "loop-nest", str(tmp_path / "design.toml")])
    assert f"chunks of {own['co']} output channels" in shown.output, shown.output
    table["segments"]["sub-volume"]["design"] = {"co": 16, "cii": 8}
    with pytest.raises(SpecError, match="unknown: cii"):
        design_file.structure(table, registry())


def test_sub_volumes_that_no_buffer_holds_are_invalid_for_a_reason() -> None:
    fixed = {"type": "sub-volume", "design": {"co": 16, "ci": 128, "rows": 14, "tiles": 1, "passes": 1}}
    space = {"name": "one", "segments": ["sub-volume"], "sub-volume": fixed, "cost_model": "aie2-time"}
    workload = {**LAYER, "c": 128, "density": DENSITY}
    one = load_problem(workload, "aie2-4x4", space, "delay", registry=registry())
    evaluation = one.evaluator.evaluate(np.zeros((1, 0), np.int64))
    assert evaluation.reasons_of(0) == ("core-input",)


@pytest.mark.parametrize("padding", ["same", 1, [[0, 1], [0, 1]]])
def test_a_layer_that_is_searched_has_the_image_and_the_padding_that_is_compiled(padding) -> None:
    """Of a stride of two an image of 28 columns leaves no padding before it, or some behind it, unread."""
    own = {"type": "conv2d", "k": 16, "c": 8, "p": 14, "q": 14, "r": 3, "s": 3, "stride": 2, "padding": padding}
    network = Network(name="n", input=(8, 28, 28), layers=({"name": "a", **own},))
    (node,) = nodes_of(network, registry())
    compiled, searched = (
        layer_of(node),
        ConvProblem.of(
            load_problem({**own, "name": "a", "image": [28, 28]}, "aie2-2x2", "aie2", registry=registry())
        ).cut.layer,
    )
    for about in ("height", "width", "padding", "out_height", "out_width"):
        assert getattr(searched, about) == getattr(compiled, about), about


def test_other_models_workloads_and_hardware_are_told() -> None:
    with pytest.raises(SpecError, match="needs column"):
        _ = load_problem(LAYER, "aie2-4x4", "aie2", cost_model="analytic", registry=registry()).space.segments
    with pytest.raises(SpecError, match="only as one 'conv2d' or 'linear'"):
        len(load_problem("mm3", "aie2-4x4", "aie2", registry=registry()).space)
    with pytest.raises(SpecError, match="expected an outer level"):
        len(load_problem(LAYER, "cloud", "aie2", registry=registry()).space)


def test_a_hardware_that_names_its_space_is_searched_there_unless_another_is_asked_for() -> None:
    own = load_problem(LAYER, "aie2-4x4", registry=registry())
    assert (own.space_spec.name, own.cost_model.type_name) == ("aie2", "aie2-time")
    assert load_problem(LAYER, "aie2-4x4", "full", registry=registry()).space_spec.name == "full"
    assert load_problem(LAYER, "mobile", registry=registry()).space_spec.name == "full"


def test_a_layer_that_no_buffer_holds_is_named(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(
        'kind = "hardware"\nname = "small"\nextends = "aie2-2x2"\nlevels.Core.weight_buffer = "64 B"\n'
    )
    lines = ", ".join(f"{key} = {value!r}" for key, value in {**LAYER, "name": "wide"}.items())
    (tmp_path / "net.toml").write_text(
        f'kind = "network"\nname = "net"\ninput = [64, 14, 14]\nlayers = [{{ {lines} }}]\n'
    )
    files = (str(tmp_path / "net.toml"), str(tmp_path / "small.toml"), "--out", str(tmp_path / "out"))
    done = CliRunner().invoke(cli, ["extra", "compile", *files])
    assert done.exit_code == 2 and "layer wide: no sub-volume fits" in done.output, done.output


def test_shares_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        cli, ["extra", "compile", "vgg16", "aie2-2x2", "--sparsity", "nan", "--out", str(tmp_path)]
    )
    assert done.exit_code == 2 and "nan is not in the range 0<=x<=1" in done.output, done.output


def test_mistakes_of_a_hardware_file_name_it_and_options_that_exclude_each_other_are_told(tmp_path: Path) -> None:
    def told(*words: str) -> str:
        done = CliRunner().invoke(cli, [*words])
        assert done.exit_code == 2, done.output
        return done.output

    (tmp_path / "mesh.toml").write_text(
        'kind = "hardware"\nname = "mesh"\nextends = "aie2-2x2"\nlevels.Core.blok = [8, 8]\n'
    )
    out = ("--out", str(tmp_path / "out"))
    assert "mesh.toml: levels[2].blok: unknown key" in told(
        "extra", "compile", "vgg16", str(tmp_path / "mesh.toml"), *out
    )
    masks = ("--masks", str(tmp_path), "--sparsity", "0")
    assert "exclude each other" in told("extra", "compile", "vgg16", "aie2-2x2", *masks, *out)
