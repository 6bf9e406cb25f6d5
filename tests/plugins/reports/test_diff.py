"""Two designs differ in some values; each is changed alone and in turn, and the last change makes the second design."""

import json

import pytest
from click.testing import CliRunner
from sparsemap_plugins.reports.compare.designs import diff_lines, steps
from sparsemap_plugins.reports.variants import Base
from sparsemap_plugins.reports.wording import change_text

from sparsemap import load_problem, search
from sparsemap.cli.main import cli
from sparsemap.errors import SearchError
from sparsemap.pieces.contracts import plain
from sparsemap.problem import design_file
from sparsemap.spec import toml_text


@pytest.fixture(scope="module")
def result():
    return search(load_problem("mm1", "cloud"), budget=400)


@pytest.fixture(scope="module")
def base(result):
    return Base(result.found.design)


def changed(base, **values):
    """The design with other values in its table, by path with two underscores between keys."""
    table = json.loads(json.dumps(base.table))
    for path, value in values.items():
        *keys, last = path.split("__")
        here = table
        for key in keys:
            here = here[int(key)] if isinstance(here, list) else here[key]
        here[last] = value
    return Base(design_file.structure(table, base.design.problem.registry))


def test_the_last_change_makes_the_second_design(base):
    other = Base(search(load_problem("mm1", "mobile"), budget=400, seed=1).found.design)
    found = steps(base, other)
    assert (found[-1].after.energy_pj, found[-1].after.cycles) == (other.outcome.energy_pj, other.outcome.cycles)
    assert {"mapping", "GLB capacity"} <= {step.name for step in found}


def test_one_change_costs_the_same_alone_and_in_turn(base):
    slow = changed(base, hardware__levels__0__bandwidth="64 GB/s")
    (step,) = steps(base, slow)
    assert step.texts == (("DRAM bandwidth", "128 GB/s", "64 GB/s"),)
    assert step.alone.cycles == step.after.cycles == slow.outcome.cycles > base.outcome.cycles


def test_a_format_defined_anew_is_not_taken_for_the_one_of_the_same_name(base):
    """Changes of one base share what follows from parts, but not across definitions of a piece."""
    tensor, pieces = "P", {"format": {"own": {"extends": "bitmask"}}}
    table = json.loads(json.dumps(base.table))
    table["formats"][tensor] = ["own"] * len(table["formats"][tensor])
    own = Base(design_file.structure({**table, "pieces": pieces}, base.design.problem.registry))
    place = ("pieces", "format", "own")
    definitions = {name: {"extends": name} for name in ("run-length", "coordinate", "bitmask")}
    shared = [own.changed({place: piece}).to_dict() for piece in definitions.values()]
    alone = [Base(own.design).changed({place: piece}).to_dict() for piece in definitions.values()]
    assert shared == alone and len({str(one) for one in shared}) > 1


def test_designs_of_two_clocks_are_compared_in_seconds(base):
    """Half as fast with the same cycles: what is shown doubles with its change."""
    assert float(base.design.problem.chip.clock_hz) == 1e9
    slow = changed(base, hardware__clock="500 MHz")
    text = "\n".join(diff_lines(("one", "other"), base, slow, steps(base, slow)))
    assert "EDP in J * s if it is the only one" in text
    shown = base.outcome.energy_pj * base.outcome.cycles * 1e-21
    assert text.count(f"{shown:.3e}") == 2 and f"{slow.outcome.costs['edp_js']:.3e}" in text
    assert "J * s" not in "\n".join(diff_lines(("one", "one"), base, base, []))


def test_formats_change_by_tensor_and_mechanisms_by_place(base):
    plain_p = ["uncompressed"] * len(base.table["formats"]["P"])
    found = steps(base, changed(base, formats__P=plain_p, gate_skip__MAC="none"))
    assert [step.name for step in found] == ["formats of P", "gate_skip at MAC"]


def test_names_and_descriptions_are_no_difference(base):
    found = steps(base, changed(base, workload__description="another", hardware__name="mine"))
    assert found == []
    text = "\n".join(map(plain, diff_lines(("a", "b"), base, base, found)))
    assert "the designs do not differ in anything that the numbers depend on" in text


def test_a_change_that_is_not_valid_says_why_and_the_next_one_goes_on(base):
    small = changed(base, hardware__levels__2__capacity="8 B", hardware__levels__0__bandwidth="64 GB/s")
    first, second = steps(base, small)
    assert first.alone.valid
    assert second.alone.reasons == second.after.reasons == ("capacity:PEB",)
    assert "not valid: capacity:PEB" in "\n".join(diff_lines(("a", "b"), base, small, [first, second]))


def test_designs_of_other_tensors_or_dimensions_are_refused(base):
    other = Base(search(load_problem("conv1", "cloud"), budget=400).found.design)
    with pytest.raises(SearchError, match="designs of other tensors or dimensions"):
        steps(base, other)


def test_the_verb_prints_what_differs(base, result, tmp_path):
    result.write(tmp_path / "a")
    table = changed(base, hardware__levels__0__bandwidth="64 GB/s").table
    (tmp_path / "b.toml").write_text(toml_text.dumps(table), "utf-8")
    args = ["compare", str(tmp_path / "a"), str(tmp_path / "b.toml")]
    text = CliRunner().invoke(cli, args).output
    assert "DRAM bandwidth  128 GB/s  ->  64 GB/s" in text
    data = json.loads(CliRunner().invoke(cli, [*args, "--json"]).output)
    assert [step["change"] for step in data["changes"]] == ["DRAM bandwidth"]
    assert sum(row["share"] for row in data["levels"]) == pytest.approx(1.0) and "levels; shares are of what" in text


def test_a_change_has_its_sign_and_is_a_factor_from_ten_times_on():
    assert [change_text(new, 100.0) for new in (80.0, 100.0, 120.0, 1000.0)] == ["-20.0 %", "+0.0 %", "+20.0 %", "10x"]
    assert change_text(1.0, 0.0) == "-"


def test_a_folder_alone_is_told_what_to_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two").mkdir()
    told = CliRunner().invoke(cli, ["compare", "two"]).stderr
    assert "two results are compared, such as two folders in two; all in a folder by: sparsemap report two" in told
