"""The verbs that only look: evaluate, show, export, list, describe, check, plugins; help, errors and plugin verbs."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import forking
import pytest
import toml
from click.testing import CliRunner

from sparsemap.cli.group import GROUPS, RENAMED, Verbs
from sparsemap.cli.main import cli

VERBS = [verb for verbs in GROUPS.values() for verb in verbs]


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def design(tmp_path_factory):
    out = tmp_path_factory.mktemp("design")
    run("search", "mm1", "edge-16gbps", "--budget", 500, "--out", out)
    return out / "design.toml"


def run(*args, code=0, **more):
    done = CliRunner().invoke(cli, [str(arg) for arg in args], **more)
    assert done.exit_code == code, (done.exit_code, done.stdout, done.stderr, done.exception)
    return done


# ------------------------------------------------------------------------------------------------------------ designs


def test_evaluate_agrees_with_the_search(design):
    result = json.loads((design.parent / "result.json").read_text())
    table = json.loads(run("show", design, "--json").stdout)
    assert table["valid"] is True and table["reasons"] == []
    assert {key: table[key] for key in ("edp", "energy_pj", "cycles", "score")} == {
        key: result[key] for key in ("edp", "energy_pj", "cycles", "score")
    }


def test_evaluate_prints_a_report(design):
    text = run("show", design).stdout
    assert text.startswith("mm1 on edge-16gbps\n") and "DRAM ──" in text and "search " not in text


def test_evaluate_says_why_a_design_is_not_valid(design):
    Path("small.toml").write_text(design.read_text().replace('"1 KB"', '"2 B"').replace('"128 KB"', '"2 B"'))
    done = run("show", "small.toml", code=1)
    assert "small.toml: the design is not valid" in done.stderr and "GLB: needs " in done.stderr
    table = json.loads(run("show", "small.toml", "--json", code=1).stdout)
    assert table["valid"] is False and "capacity:GLB" in table["reasons"] and table["edp"] is None


def test_every_report_is_shown_under_its_name(design):
    assert run("show", "loop-nest", design).stdout.startswith("DRAM ──")
    assert "total" in run("show", "breakdown", design).stdout
    assert run("show", "csv", design).stdout.startswith("level,tensor,energy_pj\n")
    listed = run("show", "--help").stdout
    assert all(f"  {name} " in listed for name in ("space", "loop-nest", "breakdown", "summary"))


def test_reports_have_json(design):
    table = json.loads(run("show", "breakdown", design, "--json").stdout)
    spent = [level["energy_pj"] for level in table["levels"]] + list(table["charges"].values())
    assert sum(spent) == pytest.approx(table["energy_pj"]) and "leakage" in table["charges"]
    assert table["limit"] and table["levels"][0]["name"] == "DRAM"
    nest = json.loads(run("show", "loop-nest", design, "--json").stdout)
    assert set(nest) == {"mapping", "formats", "beyond_format", "gate_skip"} and any(nest["mapping"].values())


def test_a_report_that_is_not_there(design):
    assert "no exporter 'breakdwon'; did you mean 'breakdown'?" in run("show", "breakdwon", design, code=2).stderr
    assert "sparsemap export" in run("show", "timeloop", design, code=2).stderr


def test_a_space_as_json():
    table = json.loads(run("show", "space", "--workload", "mm1", "--hardware", "edge", "--json").stdout)
    assert table["mapping_levels"] == ["L1_T", "L2_T", "L2_S", "L3_T", "L3_S"]
    assert list(table["segments"]) == ["orders", "tiling", "formats", "gate-skip"]
    assert table["segments"]["formats"]["genes"]["P.1"] == [0, 4]


def test_mistakes_as_json(tmp_path):
    (tmp_path / "mine.toml").write_text('kind = "hardware"\nname = "mine"\nlevels = [{ clas = "dram" }]\n')
    (mistakes,) = json.loads(run("check", str(tmp_path / "mine.toml"), "--json", code=1).stdout).values()
    assert {mistake["path"] for mistake in mistakes} == {"levels[0].clas"}


def test_export_writes_where_it_is_told(design, tmp_path):
    done = run("export", design, "--to", "csv", "-o", "there")
    assert done.stdout.strip() == os.path.join("there", "energy.csv")
    assert (tmp_path / "there" / "energy.csv").read_text().startswith("level,tensor,energy_pj\n")
    assert "did you mean 'csv'" in run("export", design, "--to", "csvv", "-o", "there", code=2).stderr


def test_a_design_file_that_is_not_there():
    done = run("show", "nowhere.toml", code=2)
    assert done.stderr == "nowhere.toml: no such file\n"


# -------------------------------------------------------------------------------------------------------------- space


def test_space_with_four_memory_levels(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    lines = run("show", "space", "--hardware", "clustered", "--workload", "matmul-128x1024x128").stdout.splitlines()
    assert lines == [
        "mapping levels  L1_T  L2_T L2_S  L3_T L3_S  L4_T L4_S",
        "orders     7 genes  1..6     one Cantor code per mapping level",
        "tiling    24 genes  1..7     one mapping level per prime factor (7 of m, 10 of k, 7 of n)",
        "formats   15 genes  0..4     5 slots each for P, Q, Z",
        "gate-skip  4 genes  0..15    GLB, Cluster, PE, MAC" + " " * 36 + "total 50 genes",
    ]


def test_space_says_what_is_padded_and_can_list_genes():
    Path("odd.toml").write_text(
        'kind = "workload"\nname = "odd"\neinsum = "Z[m, n] = P[m, k] * Q[k, n]"\n'
        "dims = { m = 31, k = 8, n = 8 }\ndensity = { P = 0.5, Q = 0.5 }\n"
    )
    text = run("show", "space", "--hardware", "edge", "--workload", "odd.toml", "--genes").stdout
    assert "padded  m 31 -> 32" in text and "order.L1_T" in text and "tile.m.1" in text


# ------------------------------------------------------------------------------------------------------------- pieces


def test_list_kinds_and_pieces():
    assert "workload" in run("list").stdout
    text = run("list", "workload").stdout
    assert text.index("\nmm2 ") < text.index("\nmm10 ")
    assert run("list", "workloads").stdout == text
    assert "mm3" in json.loads(run("list", "workload", "--json").stdout)
    assert "no kind 'wrkload'; did you mean 'workload'?" in run("list", "wrkload", code=2).stderr


def test_list_names_types_that_need_a_spec():
    assert "rank-formats" in run("list", "segment").stdout


def test_describe_says_fields_meaning_and_origin():
    text = run("list", "hardware", "cloud").stdout
    for part in ("hardware cloud", "plugin specs", "cloud.toml", 'clock = "1 GHz"', '{ name = "DRAM"'):
        assert part in text
    assert "One table per storage level, outermost first" in " ".join(text.split())


def test_describe_types_and_their_required_fields():
    assert "required" in run("list", "workload", "einsum").stdout
    assert "word_bits" in run("list", "memory-level", "sram").stdout


def test_describe_has_the_layers_of_a_network():
    text = run("list", "networks", "vgg16").stdout
    assert "classifier.0  linear    m 1 k 25088 n 4096" in text and "102,760,448" in text
    assert "16 layers to search, 12 of them distinct; 15,470,264,320 MACs, 138,344,128 weights" in text
    assert json.loads(run("list", "network", "vgg16", "--json").stdout)["distinct"] == 12


def test_describe_as_json():
    table = json.loads(run("list", "format", "bitmask", "--json").stdout)
    assert table["name"] == "bitmask" and {"key", "value", "state", "doc"} == table["fields"][0].keys()
    assert "did you mean 'bitmask'" in run("list", "format", "bitmaks", code=2).stderr


def test_every_piece_can_be_described():
    from sparsemap.cli.describe import described
    from sparsemap.pieces.loading import load

    registry = load()
    for kind in registry.kinds():
        for name in {*registry.names(kind), *registry.types(kind)}:
            assert described(registry, kind, name).text(80)


def test_plugins_with_their_hooks():
    assert "register_exporters" in run("plugins").stdout
    table = json.loads(run("plugins", "--json").stdout)
    assert {"name": "reports", "hooks": ["register_exporters", "search_written"]}.items() <= next(
        {key: row[key] for key in ("name", "hooks")} for row in table if row["name"] == "reports"
    ).items()


# -------------------------------------------------------------------------------------------------------------- check


def test_check_tells_all_problems_of_all_files_at_once(design):
    Path("chip.toml").write_text(
        'kind = "hardware"\nname = "chip"\nlevels = [\n'
        '  { name = "DRAM", class = "dram", bandwith = "1 GB/s" },\n  { name = "GLB", class = "sramm" },\n]\n'
    )
    Path("layer.toml").write_text('kind = "workload"\nname = "layer"\neinsum = "Z[m, n] = P[m, k] * Q[k, n]"\n')
    Path("kindless.toml").write_text('name = "x"\n')
    Path("fine.toml").write_text('kind = "objective"\nname = "fine"\nscore = "energy_pj"\n')
    done = run("check", "chip.toml", "layer.toml", "kindless.toml", "fine.toml", design, code=1)
    assert "chip.toml: levels[0].bandwith: unknown key; did you mean 'bandwidth'?" in done.stderr
    assert "chip.toml: levels[1].class: no memory-level 'sramm'; did you mean 'sram'?" in done.stderr
    assert "layer.toml: dims: missing" in done.stderr
    assert "kindless.toml: kind: missing" in done.stderr
    assert "fine.toml: fine" in done.stdout and "design.toml: fine" in done.stdout


def test_check_looks_at_what_follows_from_a_spec():
    Path("space.toml").write_text('kind = "space"\nname = "s"\nsegments = ["orders"]\norders = { type = "cantor" }\n')
    assert "needs column" in run("check", "space.toml", code=1).stderr
    Path("study.toml").write_text('kind = "study"\nname = "s"\nworkloads = ["mm33"]\nhardware = ["cluod"]\n')
    done = run("check", "study.toml", code=1)
    assert "study.toml: workloads[0]: no workload 'mm33'; did you mean 'mm3'?" in done.stderr
    assert "study.toml: hardware[0]: no hardware 'cluod'; did you mean 'cloud'?" in done.stderr
    Path("layer.toml").write_text(
        'kind = "workload"\nname = "l"\neinsum = "Z[m, n] = P[m, k] * Q[k, n]"\n'
        "dims = { m = 4, k = 4 }\ndensity = { P = 0.5 }\n"
    )
    assert "layer.toml" in run("check", "layer.toml", code=1).stderr


def test_check_reports_clock_and_levels_together_and_densities_beside_wrong_dims():
    Path("chip.toml").write_text(
        'kind = "hardware"\nname = "chip"\nclock = "800"\nlevels = [\n'
        '  { name = "DRAM", class = "dram" },\n  { name = "GLB", class = "sram", capacity = "8", fanout = 2 },\n]\n'
    )
    Path("layer.toml").write_text(
        'kind = "workload"\nname = "l"\neinsum = "Z[m, n] = P[m, k] * Q[k, n]"\n'
        'dims = { m = 0, k = 4, n = 4 }\ndensity = { P = 0.5, Q = { type = "n-of-m", n = 5, m = 4 } }\n'
    )
    lines = [line.partition(";")[0] for line in run("check", "chip.toml", "layer.toml", code=1).stderr.splitlines()]
    assert lines == [
        "chip.toml: clock: '800' has no unit",
        "chip.toml: levels[1].capacity: '8' has no unit",
        "layer.toml: dims.m: is 0, expected at least 1",
        "layer.toml: density.Q: n-of-m: n = 5 is more than m = 4",
    ]


def test_check_knows_the_pieces_of_the_files_that_are_checked_with_a_spec():
    Path("mine").mkdir()
    Path("mine/format.toml").write_text('kind = "format"\nname = "thirds"\ncompressed = true\nbits = "fibers"\n')
    Path("mine/a-space.toml").write_text(
        'kind = "space"\nname = "with-thirds"\nextends = "paper"\nformats.candidates = ["bitmask", "thirds"]\n'
    )
    assert run("check", "mine").stdout.splitlines() == ["mine/a-space.toml: fine", "mine/format.toml: fine"]
    assert "no format 'thirds'" in run("check", "mine/a-space.toml", code=1).stderr
    Path("mine/format.toml").write_text('kind = "format"\nname = "thirds"\nbits = "fibers"\n')
    done = run("check", "mine", code=1)  # a mistake is reported once, whoever uses the piece
    assert done.stderr.splitlines() == ["mine/format.toml: compressed: missing; expected true or false"]
    assert done.stdout == ""


def test_check_finds_data_files_beside_the_spec_that_names_them(tmp_path):
    layers = tmp_path / "layers"
    layers.mkdir()
    (layers / "mask.mtx").write_text("%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 1\n")
    (layers / "layer.toml").write_text(
        'kind = "workload"\nname = "layer"\neinsum = "Z[m,n] = P[m,k] * Q[k,n]"\ndims = { m = 2, k = 2, n = 2 }\n'
        'density = { P = { type = "data", file = "mask.mtx" }, Q = 0.5 }\n'
    )
    assert run("check", str(layers / "layer.toml")).stdout.endswith("layer.toml: fine\n")


def test_check_spells_control_characters_of_file_names():
    Path("\x1b]0;x\a.toml").write_text('kind = "objective"\nname = "fine"\nscore = "energy_pj"\n')
    assert run("check", "\x1b]0;x\a.toml").stdout == "\\x1b]0;x\\x07.toml: fine\n"


def test_check_shows_the_first_of_very_many_mistakes():
    keys = "".join(f"k{number} = 1\n" for number in range(1200))
    Path("many.toml").write_text(f'kind = "objective"\nname = "many"\nscore = "energy_pj"\n{keys}')
    lines = run("check", "many.toml", code=1).stderr.splitlines()
    assert len(lines) == 101 and lines[-1] == "and 1,100 more"


def test_check_says_nothing_twice(design):
    text = Path(design).read_text().replace("L3_T = ", "L4_X = ", 1)
    Path("far.toml").write_text(text)
    lines = run("check", "far.toml", code=1).stderr.splitlines()
    assert any("mapping.L4_X" in line for line in lines) and len(lines) == len(set(lines))


def test_check_takes_folders(tmp_path):
    import sparsemap_specs

    (folder,) = sparsemap_specs.__path__
    for kind, names in (("formats", "*b*.toml"), ("mechanisms", "*.toml")):  # `check_format` of other tests tries all
        (tmp_path / kind).mkdir()
        for file in (Path(folder) / kind).glob(names):
            shutil.copy(file, tmp_path / kind)
    lines = run("check", tmp_path).stdout.splitlines()
    assert len(lines) == len([*tmp_path.glob("*/*.toml")]) > 20 and all(line.endswith(": fine") for line in lines)


@pytest.mark.parametrize(("length", "code"), [("length", 0), ("length - 9.0", 1), ("lenth", 1)])
def test_check_loads_the_python_files_of_a_folder(length, code):
    Path("mine/word").mkdir(parents=True)
    Path("mine/word/__init__.py").write_text(f"""import attrs
from sparsemap import Format, hookimpl

@attrs.frozen(kw_only=True)
class Word(Format):
    type_name = "word"
    compressed: bool = True
    metadata_bits = lambda self, fiber: fiber.{length}

@hookimpl
def register_formats():
    return [Word]
""")
    Path("mine/word/own.toml").write_text('kind = "format"\nname = "own"\ntype = "word"\n')
    for folder in ("mine", "mine/word"):
        done = run("check", folder, code=code)
        assert ("own.toml: fine" in done.stdout) == (not code)
        assert code == 0 or "own.toml: its codec or its formulas are wrong" in done.stderr


@pytest.mark.parametrize(
    ("right", "wrong", "found"),
    [
        ("> 0", "< 0", "decode does not bring back what encode has written (bad/word/__init__.py, line 13)"),
        ("fiber.length", "2", "(`encoded`) (bad/word/__init__.py, line 15)"),
        ("fiber.length, 1.0", "2, 1.0", "(`encoded`) (bad/word/__init__.py, line 15)"),
        ("rank.length) > 0", "rank.length)[:, 1:] > 0", "for 'rows', expected an array of shape ("),
        ("Units(fiber", "Unit(fiber", "NameError(\"name 'Unit' is not defined\") (bad/word/__init__.py, line 16)"),
        ("rows.reshape(-1)", "rows.nothing()", "has no attribute 'nothing' (bad/word/__init__.py, line 11)"),
    ],
)
def test_check_tries_the_codec_of_every_class_of_a_folder(right, wrong, found):
    text = """import attrs, numpy as np
from sparsemap import Code, Format, Units, hookimpl

@attrs.frozen(kw_only=True)
class Word(Format):
    type_name = "word"
    compressed: bool = True

    def encode(self, rows, rank, tiles):
        fiber = np.repeat(np.arange(len(rows)), rank.length)
        return Code.of(len(rows), [(fiber, rows.reshape(-1).astype(int), 1)])

    def decode(self, bits, rank, tiles, ends):
        return bits.many(len(tiles) * rank.length, 1).reshape(len(tiles), rank.length) > 0
    def encoded(self, fiber, outer):
        return Units(fiber.fibers * fiber.length, 1.0)
    metadata_bits = lambda self, fiber: fiber.fibers * fiber.length

@hookimpl
def register_formats():
    return [Word]
"""
    for folder, written in (("good/word", text), ("bad/word", text.replace(right, wrong, 1))):
        Path(folder).mkdir(parents=True)
        Path(folder, "__init__.py").write_text(written)
    for folder in ("good", "good/word"):
        assert "good/word/__init__.py: fine" in run("check", folder).stdout
    for folder in ("bad", "bad/word"):
        told = run("check", folder, code=1).stderr
        assert "__init__.py: word: its codec or its formulas are wrong: " in told and found in told


MECHANISM = """import attrs
from sparsemap import Filter, Mechanism, hookimpl

@attrs.frozen(kw_only=True)
class Half(Mechanism):
    type_name = "half"

    def filters(self, place):
        return (Filter("P", ("Q",), "skip"),)
    def eliminated(self, place, rule, empty):
        return empty / 2

@hookimpl
def register_mechanisms():
    return [Half]
"""


@pytest.mark.parametrize(
    ("right", "wrong", "found"),
    [
        ('"skip"', '"skipp"', "no action 'skipp'; did you mean 'skip'?"),
        ("empty / 2", "empty + 1", "eliminated: expected 0..["),
        ("empty / 2", "nothing", "NameError(\"name 'nothing' is not defined\") (bad/half/__init__.py, line 11)"),
    ],
)
def test_check_tries_the_filters_of_every_class_of_a_folder(right, wrong, found):
    for folder, written in (("good/half", MECHANISM), ("bad/half", MECHANISM.replace(right, wrong, 1))):
        Path(folder).mkdir(parents=True)
        Path(folder, "__init__.py").write_text(written)
    assert "good/half/__init__.py: fine" in run("check", "good").stdout
    told = run("check", "bad", code=1).stderr
    assert "__init__.py: half: its filters are wrong: " in told and found in told, told


def test_check_says_that_nobody_can_read_a_format_without_a_codec(caplog):
    Path("mine").mkdir()
    text = "import attrs\nfrom sparsemap import Format, hookimpl\n\n@attrs.frozen(kw_only=True)\nclass Word(Format):\n"
    text += (
        "    type_name = 'word'\n    compressed: bool = True\n    metadata_bits = lambda self, fiber: fiber.length\n"
    )
    Path("mine/__init__.py").write_text(text + "\n@hookimpl\ndef register_formats():\n    return [Word]\n")
    done = run("check", "mine")
    assert "fine" in done.stdout and "format 'word' has no codec" in caplog.text


@pytest.mark.parametrize(("lists", "bits"), [("runs", "0"), ("runs", "-3"), ("coordinates", "2"), ("runs", '"1 / 0"')])
def test_check_tries_the_codec_of_a_format(lists, bits):
    Path("odd.toml").write_text(
        f'kind = "format"\nname = "odd"\ncompressed = true\nlists = "{lists}"\nentry_bits = {bits}\n'
    )
    said = "expected a finite number from 0 on" if bits in ("-3", '"1 / 0"') else "odd.toml: its codec"
    assert said in run("check", "odd.toml", code=1).stderr
    Path("odd.toml").write_text(Path("odd.toml").read_text().replace(bits, "3"))
    assert "odd.toml: fine" in run("check", "odd.toml").stdout  # for ranks of up to eight positions


# ------------------------------------------------------------------------------------------------------ help and errors


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(verb):
    text = run(verb, "--help").stdout
    assert text.startswith("Usage: ") and len(text.splitlines()) > 4


def test_help_lists_the_verbs_in_groups():
    text = run("--help").stdout
    assert all(f"\n  {verb} " in text for verb in VERBS) and all(f"\n{title}:\n" in text for title in GROUPS)
    assert text.count("...") == 1 and not any(f"\n  {verb} " in text for verb in (*RENAMED, "prune"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("describe format bitmask", "list format bitmask"),
        ("schema format", "extra schema format"),
        ("evaluate nowhere.toml", "show nowhere.toml"),
        ("diff a.toml b.toml", "compare a.toml b.toml"),
    ],
)
def test_verbs_of_earlier_releases_work_and_say_their_name(old, new):
    done = {text: CliRunner().invoke(cli, text.split()) for text in (old, new)}
    assert done[old].exit_code == done[new].exit_code and done[old].stdout == done[new].stdout
    first, _, rest = done[old].stderr.partition("\n")
    name = " ".join(new.split()[: 2 if new.startswith("extra") else 1])
    assert first == f"`sparsemap {old.split()[0]}` is now `sparsemap {name}`; the old name goes with the next release"
    assert rest == done[new].stderr


def test_init_writes_what_a_search_takes():
    text = forking.run(["-m", "sparsemap", "init", "mine"]).stdout
    assert "sparsemap search mine/workload.toml mine/hardware.toml" in text
    assert run("check", "mine").stdout.count(": fine") == 3
    assert "# " in Path("mine/hardware.toml").read_text("utf-8")
    assert (
        "mine/workload.toml, mine/hardware.toml, mine/study.toml exist"
        in forking.run(["-m", "sparsemap", "init", "mine"]).stderr
    )


def test_import_goes_by_the_kind_of_file():
    text = run("import").stdout
    assert "FILE.onnx" in text and "PROBLEM.yaml" in text
    assert "--batch" in run("import", "model.onnx", "--help").stdout
    assert "--before-v3" in run("import", "arch.yaml", "--help").stdout
    done = run("import", "notes.txt", code=2)
    assert (
        "notes.txt: no file that can be imported; expected FILE.yaml of accelforge or ZigZag, FILE.onnx" in done.stderr
    )


def test_run_hands_specs_of_a_plugin_s_kind_to_the_plugin_s_verb(tmp_path):
    """By name, by file, and by a misspelt name; studies and networks stay with `run`."""
    model = tmp_path / "mine.toml"
    model.write_text('kind = "language-model"\nname = "mine"\nextends = "llama3-8b"\n', "utf-8")
    for words in (("llama3-8b", "--help"), ("--budget", "3", str(model), "--help")):
        assert "--context" in run("run", *words).stdout
    assert "--fuse" in run("run", "vgg16", "--help").stdout and "--context" not in run("run", "--help").stdout
    assert (
        "no language-model 'lama3-8b'; did you mean 'llama3-8b'?"
        in run("run", "lama3-8b", "--hardware", "mobile", code=2).stderr
    )
    assert (
        "no network 'resnet51'; did you mean 'resnet50'?"
        in run("run", "resnet51", "--hardware", "mobile", code=2).stderr
    )
    assert "language-model" not in run("extra", "--help").stdout


def test_two_results_have_no_options_of_a_study():
    assert "--by is for a study, not for two results" in run("compare", "a", "b", "--by", "hardware", code=2).stderr


def test_a_network_is_searched_with_run():
    assert "sparsemap run resnet50 --hardware cloud" in run("search", "resnet50", "cloud", code=2).stderr


def test_version():
    import sparsemap

    assert run("--version").stdout == f"sparsemap {sparsemap.__version__}\n"


def test_unknown_verbs_are_answered_with_the_nearest():
    assert "no command 'serach'; did you mean 'search'?" in run("serach", code=2).stderr


def test_plugins_may_add_verbs(tmp_path):
    plugin = tmp_path / "plugins" / "greeting"
    plugin.mkdir(parents=True)
    (plugin / "__init__.py").write_text(
        "import click\nfrom sparsemap import hookimpl\n"
        "@click.command()\ndef greet():\n    '''Say hello.'''\n    click.echo('hello')\n"
        "@hookimpl\ndef register_commands(cli):\n    cli.add_command(greet)\n"
    )
    env = {**os.environ, "SPARSEMAP_PLUGIN_DIRS": str(tmp_path / "plugins")}
    assert "Say hello." in forking.run(["-m", "sparsemap", "--help"], env=env).stdout
    assert forking.run(["-m", "sparsemap", "greet"], env=env).stdout == "hello\n"


EXITING = "import sys\nfrom sparsemap import hookimpl\n@hookimpl\ndef register_commands(cli):\n    sys.exit(0)\n"


@pytest.mark.parametrize("body", ["1 / 0\n", EXITING])
def test_a_broken_plugin_does_not_break_help(body, tmp_path):
    plugin = tmp_path / "plugins" / "broken"
    plugin.mkdir(parents=True)
    (plugin / "__init__.py").write_text(body)
    env = {**os.environ, "SPARSEMAP_PLUGIN_DIRS": str(tmp_path / "plugins")}
    done = forking.run(["-m", "sparsemap", "--help"], env=env)
    assert done.returncode == 0 and "search" in done.stdout
    assert "broken" in done.stderr and "Traceback" not in done.stderr


def test_an_error_in_the_verb_of_a_plugin_names_its_line(tmp_path):
    plugin = tmp_path / "plugins" / "greeting"
    plugin.mkdir(parents=True)
    (plugin / "__init__.py").write_text(
        "import click\nfrom sparsemap import hookimpl\n"
        "@click.command()\n@click.option('--word')\ndef greet(word):\n"
        "    if word is None:\n        raise click.UsageError('say a word')\n    int(word)\n"
        "@hookimpl\ndef register_commands(cli):\n    cli.add_command(greet)\n"
    )
    env = {**os.environ, "SPARSEMAP_PLUGIN_DIRS": str(tmp_path / "plugins")}
    command = ["-m", "sparsemap", "greet"]
    done = forking.run([*command, "--word", "hi"], env=env)
    assert done.returncode == 2
    assert "greeting/__init__.py, line 8: command 'greet' raised ValueError: invalid literal" in done.stderr
    assert "Traceback" not in done.stderr
    meant = forking.run(command, env=env)
    assert meant.returncode == 2 and "Error: say a word" in meant.stderr


def test_a_closed_pipe_is_no_error():
    shell = f"{sys.executable} -m sparsemap list workload | head -n 1"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True)
    assert done.stdout and done.stderr == ""


def test_help_does_not_load_the_pieces():
    code = "import sys; from sparsemap.cli.main import cli; cli(['search', '--help'], standalone_mode=False); "
    code += "sys.exit(any(name in sys.modules for name in ('rich', 'concurrent', 'sparsemap_plugins')))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == 0


def test_the_group_can_hold_other_verbs():
    group = Verbs("other")
    group.add_command(click.Command("one", callback=lambda: click.echo("1")))
    assert CliRunner().invoke(group, ["one"]).output == "1\n"


def test_the_folder_of_a_plugin_is_checked_with_its_types(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["new-plugin", "mine", "--kind", "format"])
    assert done.exit_code == 0, done.output
    done = CliRunner().invoke(cli, ["check", "mine"])
    assert (done.exit_code, done.stdout) == (0, "mine: fine\nmine/mine/mine.toml: fine\n"), done.output


def test_the_workload_of_a_design_is_looked_up_beside_it(design, tmp_path, monkeypatch):
    table = tomllib.loads(Path(design).read_text("utf-8"))
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "own.toml").write_text(toml.dumps({"kind": "workload", "name": "own", **table["workload"]}), "utf-8")
    (folder / "design.toml").write_text(toml.dumps(table | {"workload": "own.toml"}), "utf-8")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["show", "elsewhere/design.toml", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["valid"]


# ------------------------------------------------------------------------------------------------ paths, and what they miss


LEVELS = 'levels = [{ name = "DRAM", class = "dram"%s }, { name = "PE", class = "regfile", capacity = "%s"%s }]\n'
CHIP = 'kind = "hardware"\nname = "fast"\n'


def test_a_path_does_wherever_a_name_does_and_a_missing_one_is_answered_with_the_nearest():
    Path("fast.toml").write_text(CHIP + LEVELS % ("", "1 KB", ""))
    found = run("list", "hardware", "fast.toml").stdout
    assert found.startswith("hardware fast   (type hardware)") and "from    fast.toml\n" in found
    assert "no such file; did you mean 'fast.toml'?" in run("list", "hardware", "fst.toml", code=2).stderr
    for words in (("list", "hardware"), ("search", "mm1")):
        told = run(*words, "fast.tml", code=2).stderr
        assert told == "no hardware 'fast.tml', and no such file; did you mean 'fast.toml'?\n"


def test_check_tells_mistakes_of_levels_beside_those_of_other_keys():
    text = 'clock = 1200\ncompute = { gateskip = "yes" }\nconstraints = ["area <= 2", "XX.capacity => 64 KB"]\n'
    Path("chip.toml").write_text(CHIP + text + LEVELS % (', bandwith = "1 GB/s"', "1 GHz", ", fanout = 4.5"))
    told = run("check", "chip.toml", code=1).stderr.splitlines()
    assert [line.partition(": ")[2].partition(": ")[0] for line in told] == [
        "clock", "compute.gateskip", "levels[0].bandwith", "levels[1].fanout", "levels[1].capacity",
        "constraints", "constraints",
    ]  # fmt: skip
    assert "no quantity 'area'; did you mean 'area_mm2'?" in told[-2] and told[-1].endswith("; write >= or <=")


def test_a_key_of_choices_that_is_misspelt_is_told_with_its_place():
    Path("chip.toml").write_text(CHIP + LEVELS % ("", "1 KB", ", fanout = { choice = [4, 8] }"))
    told = run("check", "chip.toml", code=1).stderr
    assert told == "chip.toml: levels.PE.fanout: has the key 'choice'; did you mean 'choices'?\n"


def test_check_says_that_a_name_is_taken(caplog):
    Path("mine.toml").write_text('kind = "format"\nname = "bitmask"\ncompressed = true\nbits = "length"\n')
    run("check", "mine.toml")
    record, _ = caplog.records  # it has no codec either
    assert "in a plugin it stops every command: format 'bitmask' is defined twice" in record.getMessage()


@pytest.mark.parametrize("key", ["bypass", "decodes", "double_buffered"])
def test_check_finds_names_of_tensors_that_no_workload_beside_the_chip_has(key, caplog):
    """A name that a search would refuse is a mistake beside workloads, and a warning where none is checked."""
    levels = (
        f'{{ name = "DRAM", class = "dram" }}, {{ name = "GLB", class = "sram", capacity = "64 KB", {key} = ["W"] }}'
    )
    Path("chip.toml").write_text(
        f'kind = "hardware"\nname = "chip"\nlevels = [{levels}]\ncompute = {{ name = "MAC" }}\n'
    )
    for name, weights in (("one", "Q"), ("other", "W")):
        Path(f"{name}.toml").write_text(
            f'kind = "workload"\nname = "{name}"\neinsum = "Z[m] = P[m, k] * {weights}[k]"\ndims = {{ m = 8, k = 8 }}\n'
            f"density = {{ P = 0.5, {weights} = 0.5 }}\n"
        )
    said = run("check", "chip.toml", "one.toml", code=1).stderr
    assert f"chip.toml: levels[1].{key}[0]: no tensor 'W'; known: P, Q, Z" in said
    assert "chip.toml: fine" in run("check", "chip.toml", "one.toml", "other.toml").stdout
    run("check", "chip.toml")
    assert f"levels[1].{key}: 'W' is no role (P, Q, R, S, Z)" in caplog.text


@pytest.mark.parametrize(
    ("words", "right"),
    [
        ("search vgg16", "sparsemap run vgg16 --hardware HARDWARE"),
        ("search vgg16 mobile", "sparsemap run vgg16 --hardware mobile"),
        ("search study.toml mobile", "sparsemap run study.toml"),
        ("run mm3 --hardware cloud", "sparsemap search mm3 cloud"),
        ("run mm3", "sparsemap search mm3 HARDWARE"),
        ("run vgg16 mobile", "sparsemap run vgg16 --hardware mobile"),
        ("list mm3", "sparsemap list workload mm3"),
    ],
)
def test_a_verb_for_another_kind_of_piece_names_the_right_command(words, right):
    Path("study.toml").write_text('kind = "study"\nname = "s"\n')
    assert run(*words.split(), code=2).stderr.endswith(f": {right}\n")


def test_a_study_is_checked_down_to_the_spaces_of_its_cells(tmp_path):
    text = 'kind = "study"\nname = "bad"\nworkloads = ["mm1"]\nhardware = ["edge"]\nbudget = 10\nout = "o"\n'
    (tmp_path / "bad.toml").write_text(text + '[space]\nextends = "full"\nsegments = ["orders", "tiling"]\n')
    done = CliRunner().invoke(cli, ["check", str(tmp_path / "bad.toml")])
    assert done.exit_code == 1 and "bad.toml: space.formats: no segment 'formats'; known: orders, tiling" in done.output


def test_lines_of_files_that_are_no_specs_stay_there(tmp_path):
    (tmp_path / "passwd").write_text("root:x:0:0:root\n")
    (tmp_path / "layer.toml").write_text(f'kind = "workload"\nname = "one"\nextends = "{tmp_path}/passwd"\n')
    done = CliRunner().invoke(cli, ["check", str(tmp_path / "layer.toml")])
    assert done.exit_code == 1 and "is not TOML" in done.output and "root:x" not in done.output
