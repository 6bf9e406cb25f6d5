"""What is said of a design comes from evaluating it, as it is and with one thing changed."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from sparsemap_plugins.reports.explain import explain, limits
from sparsemap_plugins.reports.figures import KINDS, PlotSource
from sparsemap_plugins.reports.variants import MISSING, Base, freed

from sparsemap import load_problem, search
from sparsemap.cli.main import cli
from sparsemap.errors import SearchError, SpecError
from sparsemap.pieces.contracts import plain
from sparsemap.problem import design_file
from sparsemap.searching.breakdown import LOST


@pytest.fixture(scope="module")
def result():
    return search(load_problem("mm1", "cloud", cost_model="physical"), budget=400)


@pytest.fixture(scope="module")
def base(result):
    return Base(result.found.design)


@pytest.fixture(scope="module")
def uncharged():
    return Base(search(load_problem("mm1", "cloud", cost_model="timeloop"), budget=400).found.design)


@pytest.fixture(scope="module")
def free(base):
    return {found.name: found.outcome for found in freed(base)}


def on(result, hardware):
    """The same genome on another hardware."""
    problem = load_problem("mm1", hardware, cost_model="physical")
    return problem.evaluator.evaluate(result.found.genome[None, :])


def test_a_design_whose_table_is_not_changed_costs_what_it_costs(base, result):
    same = base.changed({})
    assert (same.energy_pj, same.cycles) == (result.found.energy_pj, result.found.cycles)


def test_free_bandwidth_is_that_of_a_hardware_without_the_limit(base, free, result):
    wide = {"name": "wide", "extends": "cloud", "levels": {"DRAM": {"bandwidth": "unlimited"}}}
    found = free["bandwidth of DRAM"]
    assert (found.energy_pj, found.cycles) == (on(result, wide).energy_pj[0], on(result, wide).cycles[0])
    assert found.cycles < base.outcome.cycles


def test_a_value_may_be_taken_out_of_the_table(base, free):
    kept = str(base.table)
    given = [key for key in base.table["hardware"]["levels"][0] if key.endswith("bandwidth")]
    without = base.changed({("hardware", "levels", 0, key): MISSING for key in given})
    assert given and without.cycles == free["bandwidth of DRAM"].cycles and str(base.table) == kept


def test_energies_that_are_free_one_by_one_add_up_to_the_energy(uncharged):
    free = {found.name: found.outcome for found in freed(uncharged, ("accesses",))}
    assert list(free) == ["energy of DRAM", "energy of GLB", "energy of PEB", "energy of MAC"]
    saved = sum(uncharged.outcome.energy_pj - found.energy_pj for found in free.values())
    assert saved == pytest.approx(uncharged.outcome.energy_pj)


def test_energy_that_is_not_of_accesses_is_that_of_charges(base, uncharged):
    assert "leakage" in "\n".join(explain(base, "edp").lines).partition("energy")[2].partition("\n")[0]
    assert "leakage" not in "\n".join(explain(uncharged, "edp").lines)


def test_free_metadata_have_no_bits_and_still_lead(free):
    found = free["metadata"]
    assert found.valid
    cells = [cell for row in found.detail.cells for cell in row if cell is not None]
    assert not any(np.any(bits) for cell in cells for bits in cell.bits.values())


def test_a_charge_is_free_when_the_cost_model_is_without_it(base, free, result):
    charges = [charge.type_name for charge in base.design.problem.cost_model.charges]
    rest = [name for name in charges if name != "filter-metadata"]
    problem = load_problem("mm1", "cloud", cost_model={"type": "analytic", "charges": rest})
    found = problem.evaluator.evaluate(result.found.genome[None, :])
    assert free["charge filter-metadata"].energy_pj == found.energy_pj[0]


def test_capacity_costs_a_design_that_fits_nothing(uncharged):
    for found in freed(uncharged, ("capacity",)):
        same = uncharged.outcome
        assert (found.outcome.energy_pj, found.outcome.cycles) == (same.energy_pj, same.cycles), found.name


def test_limits_are_followed_down_to_the_compute_units(base):
    chain = limits(base)
    assert chain[0] is base.outcome
    assert [step.cycles for step in chain] == sorted((step.cycles for step in chain), reverse=True)
    assert "the MAC units" in chain[-1].limit


def test_accesses_times_their_prices_are_the_energy_of_a_tensor_at_a_level(uncharged):
    problem = uncharged.design.problem
    names = {(tensor.name, level.name) for tensor in problem.tensors for level in problem.levels}
    assert uncharged.outcome.accesses.keys() == names
    for name, found in uncharged.outcome.accesses.items():
        assert sum(row.energy_pj for row in found.rows) == pytest.approx(found.energy_pj), name


def test_a_tensor_at_a_level_is_explained_in_words(base):
    text = "\n".join(map(plain, explain(base, "PEB.Z").lines))
    assert text.startswith("Z at PEB: ")
    for word in ("tile", "held by", "loops", "update", "pJ each"):
        assert word in text


SILENT = """
import attrs
from sparsemap import CostModel, hookimpl

@attrs.frozen(kw_only=True)
class Silent(CostModel):
    type_name = "silent"
    told: CostModel

    @property
    def needs(self):
        return self.told.needs

    def reasons(self, problem):
        return self.told.reasons(problem)

    def evaluate(self, designs, problem, detail=False):
        return self.told.evaluate(designs, problem)

@hookimpl
def register_cost_models():
    return [Silent]
"""


def test_a_cost_model_that_tells_no_energies_by_level_is_not_said_to_charge_for_all(tmp_path):
    (tmp_path / "silent").mkdir()
    (tmp_path / "silent" / "__init__.py").write_text(SILENT)
    model = {"type": "silent", "told": "analytic"}
    problem = load_problem("matmul-32x64x48", "edge-16gbps", cost_model=model, plugin_dirs=[tmp_path])
    base = Base(search(problem, budget=100).found.design)
    assert "charges" not in "\n".join(map(plain, explain(base, "").lines))
    assert explain(base, "GLB.P").lines == ["cost model 'silent' gives no accesses by level and tensor"]
    with pytest.raises(SearchError, match="cost model 'silent' gives no energies by level"):
        KINDS["energy"](PlotSource(base.outcome, None))


def test_what_makes_no_difference_is_named_without_a_row(uncharged):
    text = "\n".join(map(plain, explain(uncharged, "edp").lines))
    _, _, same = text.partition("no difference: ")
    assert "capacity of GLB" in same
    assert text.index("bandwidth of DRAM") < text.index("no difference")


def test_searches_start_from_the_design_and_are_never_worse(uncharged):
    data = explain(uncharged, "cycles", budget=20).data
    assert data["searched_edp"] <= data["edp"] * (1 + 1e-12)
    for row in data["free"]:
        assert row["searched_edp"] <= row["edp"] * (1 + 1e-12)


def test_an_invalid_design_is_told_what_it_lacks_and_what_would_make_it_valid(tmp_path, result):
    text = result.found.text().replace('capacity = "128 KB"', 'capacity = "64 B"')
    (tmp_path / "small.toml").write_text(text, "utf-8")
    found = CliRunner().invoke(cli, ["explain", str(tmp_path / "small.toml")])
    assert found.exit_code == 0, found.output
    assert "the design is not valid: capacity:PEB" in found.output
    data = json.loads(CliRunner().invoke(cli, ["explain", str(tmp_path / "small.toml"), "--json"]).output)
    assert data["reasons"] == ["capacity:PEB"]
    assert {row["free"]: bool(row["reasons"]) for row in data["free"]} == {
        "capacity of GLB": True,
        "capacity of PEB": False,
        "capacity of all levels": False,
    }
    found = CliRunner().invoke(cli, ["explain", str(tmp_path / "small.toml"), "PEB"])
    assert found.exit_code == 2
    assert "the design is not valid" in found.output


def test_the_folder_of_a_search_names_its_design(tmp_path, result):
    result.write(tmp_path)
    whole = CliRunner().invoke(cli, ["explain", str(tmp_path), "--json"])
    assert json.loads(whole.output)["edp"] == result.found.edp
    assert whole.output == CliRunner().invoke(cli, ["explain", str(tmp_path / "design.toml"), "--json"]).output


def test_a_quantity_that_there_is_not_is_told_with_the_nearest_one(base):
    with pytest.raises(SearchError, match=r"no quantity 'GLB\.p'; did you mean 'GLB\.P'"):
        explain(base, "GLB.p")


def test_hardware_that_cannot_be_without_a_limit_is_told_as_such(base, monkeypatch):
    def structure(table, registry, **more):
        raise SpecError.at("", "levels", "a buffer cannot be unlimited")

    monkeypatch.setattr(design_file, "structure", structure)
    found = {x.name: x.outcome.reasons for x in freed(base, ("capacity",))}
    assert found["capacity of GLB"] == ("a buffer cannot be unlimited",)


def test_areas_of_parts_add_up_to_the_chip_and_the_units_of_the_design(base):
    found = explain(base, "area")
    chip, design = base.design.problem.chip, base.design
    assert found.data["area_mm2"] == pytest.approx(float(chip.total_area_mm2) + design.units_mm2)
    assert found.data["parts_mm2"]["GLB"] == pytest.approx(float(chip.instances[1] * chip.area_mm2[1]))
    assert [line.split("  ")[0] for line in found.lines][:4] == ["DRAM interface", "GLB", "PEB", "MAC"]


def test_compute_units_have_their_energy_and_cycles_by_cause(base):
    found = explain(base, "MAC")
    (row,) = (row for row in base.outcome.breakdown.rows if row.name == "MAC")
    assert found.lines[0].startswith("computes: ") and set(found.data["lost_cycles"]) <= set(LOST)
    assert 0 < sum(found.data["lost_cycles"].values()) <= row.cycles
