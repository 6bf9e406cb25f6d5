"""The names a program starts with."""

import pydoc
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import sparsemap
from sparsemap import EvaluationError, SpecError, evaluate, load_problem, search
from sparsemap.pieces.loading import load

TINY = {"name": "tiny", "einsum": "Z[m, n] = P[m, k] * Q[k, n]", "dims": {"m": 4, "k": 8, "n": 4}}
TINY["density"] = {"P": 0.5, "Q": 0.5}


@pytest.fixture(scope="module")
def registry():
    return load()


def test_every_public_name_is_there():
    names = dir(sparsemap)
    assert all(getattr(sparsemap, name) is not None for name in names)
    assert {"Search", "evaluate", "load_problem", "search", "search_network", "Problem", "Format"} <= set(names)
    assert not {"Any", "ModuleType", "annotations", "errors", "TYPE_CHECKING"} & set(names)
    with pytest.raises(AttributeError, match="no attribute 'serach'"):
        _ = sparsemap.serach


def test_help_is_short_and_its_example_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert len(pydoc.render_doc(sparsemap).splitlines()) < 60
    example = re.search(r"\n\n((?:    .*\n|\n)+)", sparsemap.__doc__)[1]
    exec(textwrap.dedent(example).replace('"mm3", "cloud"', '"mm1", "edge-16gbps"').replace("20_000", "500"), {})
    assert "Result(mm1 on edge-16gbps: EDP" in capsys.readouterr().out
    assert (tmp_path / "best" / "design.toml").exists()


def test_importing_reads_no_toml_and_loads_no_plugin():
    heavy = ("cattrs", "toml", "click", "rich", "sparsemap_plugins")
    code = f"import sys, sparsemap; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_parts_may_be_names_tables_files_or_objects(registry, tmp_path):
    from sparsemap.spec import toml_text

    file = tmp_path / "mine.toml"
    toml_text.write(file, {"kind": "workload", **TINY})
    by_table = load_problem(TINY, {"extends": "edge", "clock": "2 GHz"}, registry=registry)
    by_file = load_problem(file, by_table.hardware, registry=registry)
    assert by_file.workload == by_table.workload
    assert by_file.files["workload"] == str(file)
    assert by_file.hardware.clock == "2 GHz"
    assert load_problem("mm3", "cloud", registry=registry).files["hardware"].endswith("cloud.toml")


def test_evaluating_genomes_checks_them(registry):
    problem = load_problem(TINY, "edge", registry=registry)
    genomes = problem.space.sample(5, np.random.default_rng(0))
    assert len(evaluate(problem, genomes)) == 5
    with pytest.raises(EvaluationError, match="expected"):
        evaluate(problem, genomes[:, 1:])


def test_an_unknown_part_is_told_with_the_nearest_name(registry):
    with pytest.raises(SpecError, match="did you mean 'cloud'"):
        load_problem("mm3", "clod", registry=registry)


def test_the_shortest_program_finds_a_design(registry):
    result = search(load_problem(TINY, "edge", registry=registry), budget=3000)
    assert result.best is not None
    assert result.best.edp == result.best.score
    assert "for m" in result.report("loop-nest")
    assert set(result.versions["plugins"]) >= {"analytic", "encodings", "searchers"}


def test_one_level_of_another_hardware_changes_under_its_name(registry, tmp_path):
    file = tmp_path / "big.toml"
    file.write_text('kind = "hardware"\nname = "big"\nextends = "edge"\nlevels.GLB.capacity = "512 KB"\n')
    edge = load_problem(TINY, "edge", registry=registry)
    for hardware in (file, {"extends": "edge", "levels": {"GLB": {"capacity": "512 KB"}}}):
        levels = load_problem(TINY, hardware, registry=registry).levels
        assert [level.name for level in levels] == [level.name for level in edge.levels]
        assert levels[1].capacity_bits == 512 * 1024 * 8 and levels[2] == edge.levels[2]
    wrong = {"extends": "edge", "levels": {"GBL": {"capacity": "512 KB"}}}
    with pytest.raises(SpecError, match=r"^hardware\.levels\.GBL: no entry 'GBL'; did you mean 'GLB'\?$"):
        load_problem(TINY, wrong, registry=registry)


def test_a_memory_that_is_too_small_is_named_in_the_shortfalls(registry):
    levels = [dict(level) for level in load_problem(TINY, "edge", registry=registry).hardware.levels]
    levels[-1]["capacity"] = "1 bit"
    result = search(load_problem(TINY, {"extends": "edge", "levels": levels}, registry=registry), 2000)
    assert result.best is None
    lack = next(lack for lack in result.shortfalls if lack.reason.startswith("capacity"))
    assert lack.needed > lack.available
    assert str(lack) == "PEB: needs 12 B, has 0 B"  # room for two
