"""Specs from others are data: they run no code, keep nothing busy, and make nothing be written where it should not be."""

import csv
import json
import os
import pickle
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from calls import at_most
from click.testing import CliRunner

from sparsemap import SearchError, SparseMapError, SpecError, load_problem, search
from sparsemap.cli.main import cli
from sparsemap.pieces.loading import load
from sparsemap.pieces.study_spec import Study
from sparsemap.problem.network import nodes_of
from sparsemap.searching.folder import search_into
from sparsemap.spec import toml_text
from sparsemap.spec.expressions import Expression
from sparsemap.study.cells import cells_of, folder_of


@pytest.fixture(scope="module")
def registry():
    return load()


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A home with a working directory in it, and files that must not change."""
    (tmp_path / "precious.txt").write_text("mine")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def files(folder):
    """All files below a folder with their contents."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


STUDY = {"name": "s", "workloads": ["mm1"], "hardware": ["cloud"], "searchers": ["random"], "budget": 200}


def run_study(**keys):
    toml_text.write("study.toml", {"kind": "study", **STUDY, **keys})
    return CliRunner().invoke(cli, ["run", "study.toml", "--quiet"])


# ------------------------------------------------------------------------------------------------- where results may go


@pytest.mark.parametrize(
    "out", ["..", "../elsewhere", "a/../../elsewhere", "/tmp/elsewhere", "~", "~/elsewhere", ".", ""]
)
def test_a_study_cannot_choose_a_folder_outside_the_working_directory(out, folder):
    before = files(folder)
    done = run_study(out=out)
    assert done.exit_code == 2, (done.stdout, done.exception)
    if out.startswith("~"):
        assert not (folder / "elsewhere").exists()
    assert "is not below the working directory; give --out" in done.stderr or "give --out DIR" in done.stderr
    assert {**files(folder), "work/study.toml": b""} == {**before, "work/study.toml": b""}


def test_nor_by_a_link(folder):
    Path("link").symlink_to(folder)
    assert "is not below the working directory" in run_study(out="link/elsewhere").stderr
    assert not (folder / "elsewhere").exists()


@pytest.mark.parametrize("name", ["table.md.txt", "code.py", ".git"])
def test_nor_a_folder_that_holds_something_else(name):
    Path("src").mkdir()
    Path("src", name).write_text("mine")
    Path("src/table.csv").write_text("mine")
    done = run_study(out="src")
    assert done.exit_code == 2 and f"holds '{name}', which is not of a study" in done.stderr
    assert Path("src/table.csv").read_text() == "mine"


def test_a_folder_of_its_own_is_used_again():
    assert run_study(out="results").exit_code == 0
    Path("results/.table.csv.0123abcd.tmp").write_text("torn")
    Path("results/mm9--cloud--random--seed0").mkdir()
    Path("results/mm9--cloud--random--seed0/.result.json.0123abcd.tmp").write_text("torn")
    assert run_study(out="results", budget=300).exit_code == 0
    assert json.loads(Path("results/mm1--cloud--random--seed0/result.json").read_text())["evaluations"] == 300


def test_whoever_gives_the_folder_may_choose_any(tmp_path):
    study = Study(**{key: tuple(value) if isinstance(value, list) else value for key, value in STUDY.items()})
    assert folder_of(study, "/tmp/x") == Path("/tmp/x").resolve()
    with pytest.raises(SearchError, match="does not say where"):
        folder_of(study)


EVIL_NAMES = [
    "../../precious.txt",
    "/etc/passwd",
    "..",
    ".",
    "a/b",
    "con:",
    "x" * 300,
    "\x1b]0;x",
    "-rf",
    "$(touch x)",
    "a\nb",
]


@pytest.mark.parametrize("name", EVIL_NAMES)
def test_names_of_cells_stay_in_the_folder_of_the_study(name, tmp_path):
    study = Study(name="s", workloads=(name, "mm1"), hardware=(name + ".toml",), searchers=("random", name))
    out = tmp_path / "out"
    for cell in cells_of(study, out):
        place = Path(cell.folder)
        assert place.parent == out and place.resolve().parent == out.resolve()
        assert place.name.isprintable() and len(place.name) <= 255 and not place.name.startswith((".", "-"))


@pytest.mark.parametrize("name", EVIL_NAMES)
def test_names_of_pieces_are_no_file_names(name, folder, registry):
    workload = {"name": name, "einsum": "Z[m,n]=P[m,k]*Q[k,n]", "dims": {"m": 8, "k": 8, "n": 8},
                "density": {"P": 0.5, "Q": 0.5}}  # fmt: skip
    before = files(folder)
    try:
        problem = load_problem(workload, {"extends": "cloud", "name": name}, registry=registry)
    except SpecError:
        return
    result = search_into("out", problem, 300, 0, "random")
    for exporter in registry.names("exporter"):
        try:
            for path in registry.build("exporter", exporter).write(result, problem, Path("exported")):
                assert Path("exported").resolve() in path.resolve().parents
        except SparseMapError:
            continue
    after = {name: text for name, text in files(folder).items() if not name.startswith(("work/out/", "work/exported/"))}
    assert after == before


@pytest.mark.parametrize("key", ["out", "path", "file", "folder", "journal", "plugin_dirs", "module", "import"])
def test_specs_have_no_keys_for_files_or_modules(key, registry):
    for kind in ("workload", "hardware", "searcher", "objective", "space", "exporter"):
        name = registry.names(kind)[0]
        with pytest.raises(SpecError, match=f"{key}|unknown"):
            registry.build(kind, {"extends": name, key: "os"} if kind != "exporter" else {"type": name, key: "os"})


# ------------------------------------------------------------------------------------------------------ no code from TOML


@pytest.mark.parametrize(
    "text", ["os.system", "os:system", "subprocess.Popen", "builtins.exec", "plugins/evil.py", "../evil"]
)
@pytest.mark.parametrize("kind", ["workload", "searcher", "memory-level", "objective", "format", "density"])
def test_a_type_is_a_name_that_a_plugin_has_registered(text, kind, registry):
    with pytest.raises(SpecError, match=r"type: no "):
        registry.build(kind, {"type": text, "name": "x"})


def test_a_folder_of_plugins_beside_a_spec_is_not_loaded():
    Path("evil").mkdir()
    Path("evil/__init__.py").write_text("import pathlib; pathlib.Path('ran').touch()")
    Path("evil/layer.toml").write_text('kind = "workload"\nname = "x"\nextends = "mm1"\n')
    assert load_problem("evil/layer.toml", "cloud").workload.dims
    assert not Path("ran").exists()


@pytest.mark.parametrize("device", ["/dev/zero", "pipe", "large.toml"])
def test_devices_pipes_and_huge_files_are_refused_wherever_a_path_is_read(device, folder):
    if device == "/dev/zero" and not Path(device).exists():
        pytest.skip("a device that never ends")
    os.mkfifo("pipe")
    with open("large.toml", "wb") as file:
        file.truncate(1 << 40)  # takes no place on the disk
    why = "expected at most" if device == "large.toml" else "is a device or pipe, expected a file"
    path = f"./{device}" if "/" not in device else device
    toml_text.write("design.toml", {"kind": "design", "workload": path, "hardware": "edge", "mapping": {}})
    toml_text.write("study.toml", {"kind": "study", "name": "s", "workloads": ["mm1"], "hardware": [path], "out": "o"})
    verbs = (["show", "design.toml"], ["show", path], ["run", "study.toml"], ["run", path], ["check", path])
    for verb in (*verbs, ["search", path, "edge"], ["import-problem", path]):
        done = CliRunner().invoke(cli, verb)
        assert done.exit_code in (1, 2) and why in done.output, (verb, done.output, done.exception)


@pytest.mark.parametrize("odd", ["\u202e", "\u200b", "\u2066", "\u200f", "\ufeff", "\u00ad", "\U000e0041", "\x9b"])
def test_names_hold_nothing_that_is_not_seen_or_turns_a_text(folder, odd):
    """Of workloads, layers of networks, hardware and levels alike; letters of all scripts are fine."""
    levels = [{"name": "DRAM", "class": "dram"}, {"name": "PE", "class": "regfile", "capacity": "1 KB"}]
    layer = {"name": "a", "type": "linear", "k": 8, "n": 8}

    def tables(name):
        yield {"kind": "workload", "extends": "mm1", "name": name}
        yield {"kind": "network", "name": "n", "layers": [{**layer, "name": name}]}
        yield {"kind": "hardware", "name": name, "levels": levels}
        yield {"kind": "hardware", "name": "h", "levels": [levels[0], {**levels[1], "name": name}]}

    for name, code in ((f"a{odd}b", 1), ("größe-\u0627\u0644\u0639\u0631\u0628-日本語", 0)):
        for table in tables(name):
            Path("named.toml").write_text(toml_text.dumps(table))
            done = CliRunner().invoke(cli, ["check", "named.toml"])
            assert done.exit_code == code, done.output
            assert odd not in done.output and ("holds the control character" in done.output) == bool(code)


def test_what_a_spec_says_cannot_steer_the_terminal(folder):
    table = {"kind": "workload", "name": "\x1b]0;title\x07", "extends": "mm1"}
    Path("odd.toml").write_text(toml_text.dumps(table))
    os.rename("odd.toml", "odd\x1b[31m.toml")
    done = CliRunner().invoke(cli, ["search", "odd\x1b[31m.toml", "edge", "--budget", "50"])
    assert done.exit_code == 2
    assert "\x1b" not in done.output and "holds the control character" in done.output


def test_data_files_are_not_unpickled():
    class Evil:
        def __reduce__(self):
            return (os.mkdir, ("ran",))

    np.save("x.npy", np.array([Evil()], dtype=object), allow_pickle=True)
    Path("y.npy").write_bytes(pickle.dumps(Evil()))
    for name in ("x.npy", "y.npy"):
        workload = {"name": "x", "einsum": "Z[m,n]=P[m,k]*Q[k,n]", "dims": {"m": 8, "k": 8, "n": 8},
                    "density": {"P": {"type": "data", "file": name}, "Q": 0.5}}  # fmt: skip
        with pytest.raises(SpecError, match="cannot be read"):
            assert load_problem(workload, "cloud").loops and load_problem(workload, "cloud").levels
            search(load_problem(workload, "cloud"), 10)
    assert not Path("ran").exists()


# ---------------------------------------------------------------------------------------------------------- expressions

ATTACKS = [
    "x.__class__",
    "().__class__.__bases__[0].__subclasses__()",
    "__import__('os').system('touch ran')",
    "open('ran', 'w')",
    "eval('1')",
    "exec('1')",
    "globals()",
    "getattr(x, 'real')",
    "(lambda: 1)()",
    "[y for y in (1, 2)]",
    "{1: 2}",
    "{1, 2}",
    "f'{x}'",
    "'a' * 10",
    "b'a'",
    "(y := 1)",
    "x if x else x",
    "not x",
    "x and x",
    "x[0]",
    "x @ x",
    "x << 1000000",
    "~x",
    "1j",
    "...",
    "None",
    "True",
    "ceil.__call__(1)",
    "ceil(x=1)",
    "ceil(*(1,))",
    "where(**{})",
    "np.ceil(x)",
    "sqrt",
    "x; x",
    "x\n=1",
    "await x",
    "yield x",
    "import os",
    "x # comment",
]


@pytest.mark.parametrize("text", ATTACKS)
def test_expressions_reach_no_attributes_imports_or_builtins(text):
    with pytest.raises(ValueError):
        Expression.parse(text, ["x"])
    assert not Path("ran").exists()


BOMBS = [
    "9**9**9**9**9**9**9**9",
    "(" * 490 + "x" + ")" * 490,
    "-" * 990 + "x",
    "x" + "**9" * 330,
    "9" * 999,
    "2 ** " * 190 + "2",
    "+".join(["x"] * 499),
    "minimum(" + ",".join(["x"] * 300) + ")",
    "ceil(" * 150 + "x" + ")" * 150,
    "x < " * 200 + "x",
    "1e308 * " * 100 + "1e308",
    "lambda a=" * 100 + "1",
    "[" * 400 + "]" * 400,
    "0x" + "f" * 900,
    "x if x else " * 70 + "x",
    "a" * 10**7,
    "1" + "+1" * 10**6,
]


@pytest.mark.parametrize("text", BOMBS, ids=range(len(BOMBS)))
def test_expressions_take_neither_long_nor_much(text):
    import tracemalloc

    tracemalloc.start()
    with at_most(50_000), suppress(ValueError):
        value = Expression.parse(text, ["x"])({"x": np.ones(1000)})
        assert value.shape == (1000,) and value.dtype == np.float64
    memory = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert memory < 50e6


# ---------------------------------------------------------------------------------------------- specs that are too much

TOO_MUCH = {
    "nested tables": "a" + ".a" * 5000 + " = 1\n",
    "nested lists": "a = " + "[" * 50_000,
    "a number of a million digits": "a = " + "9" * 1_000_000,
    "an einsum of a megabyte": 'einsum = "' + "Z[" + "m," * 500_000 + '"',
    "ten thousand levels": "".join('[[levels]]\nclass = "sram"\n' for _ in range(10_000)),
}


@pytest.mark.parametrize("text", TOO_MUCH.values(), ids=TOO_MUCH)
@pytest.mark.parametrize("kind", ["workload", "hardware"])
def test_specs_that_are_too_much_are_refused_soon(text, kind, registry):
    Path("x.toml").write_text(f'kind = "{kind}"\nname = "x"\n{text}')
    with at_most(2_000_000), pytest.raises(SpecError):
        registry.resolve(kind, "x.toml")


def test_extending_in_circles_and_long_chains_ends():
    Path("chain").mkdir()
    for number in range(300):
        Path(f"chain/{number}.toml").write_text(
            f'kind = "workload"\nname = "w{number}"\nextends = "w{(number + 1) % 300}"\n'
        )
    with pytest.raises(SpecError, match="goes in a circle"):
        load(specs=["chain"]).get("workload", "w0")
    Path("chain/299.toml").write_text('kind = "workload"\nname = "w299"\nextends = "mm1"\n')
    assert load(specs=["chain"]).get("workload", "w0").dims == load().get("workload", "mm1").dims


@pytest.mark.parametrize(
    ("kind", "table"),
    [
        ("space", {"extends": "paper", "formats": {"slots": 2**31}}),
        ("space", {"extends": "paper", "formats": {"candidates": ["bitmask"] * 1000}}),
        ("space", {"extends": "paper", "tiling": {"padding": "smooth", "largest_factor": 10**9}}),
        ("workload", {"extends": "mm1", "dims": {f"d{number}": 1 for number in range(10_000)}}),
        ("hardware", {"extends": "cloud", "levels": [{"name": f"L{number}"} for number in range(1000)]}),
    ],
)
def test_counts_have_bounds(kind, table, registry):
    with at_most(5_000_000), pytest.raises(SparseMapError):
        problem = load_problem(**{"workload": "mm1", "hardware": "cloud", kind: table}, registry=registry)
        assert len(problem.space)


@pytest.mark.parametrize("name", ["a\nb", "a\tb", "a\u2028b", "a\n"])
def test_names_of_specs_and_of_layers_are_on_one_line(name, registry):
    layer = {"name": name, "type": "linear", "k": 16, "n": 4}
    with pytest.raises(SpecError, match="name: holds a tab or a line break, expected a name on one line"):
        registry.build("workload", {**layer, "m": 4})
    network = registry.build("network", {"name": "x", "input": [16], "layers": [layer]})
    with pytest.raises(SpecError, match=r"layers\[0\].name: holds a tab or a line break"):
        nodes_of(network, registry)
    network = registry.build("network", {"name": "x", "layers": [{"name": name, "workload": "mm1"}]})
    with pytest.raises(SpecError, match=r"layers\[0\].*holds a tab or a line break"):
        nodes_of(network, registry)


def test_tables_of_a_network_cannot_be_broken_by_the_names_of_layers():
    names = ["=cmd|calc", "<script>alert(1)</script>", "@SUM(1+1)"]
    layers = [{"name": name, "type": "linear", "k": 16, "n": 16 + n} for n, name in enumerate(names)]
    toml_text.write("net.toml", {"kind": "network", "name": "net", "layers": layers})
    done = CliRunner().invoke(
        cli, ["run", "net.toml", "--hardware", "cloud", "--searcher", "random", "--budget", "300", "--out", "out"]
    )
    assert done.exit_code == 0, done.output
    with open("out/layers.csv", newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not [cell for cell in cells if cell[:1] in "=@" and cell]
    assert "'=cmd|calc" in cells
    text = Path("out/layers.md").read_text()
    assert "<script" not in text and "=cmd\\|calc" in text


def test_what_goes_wrong_while_a_model_is_read_names_the_model_and_no_line_of_code(monkeypatch):
    def fails(*given):
        raise ValueError("cannot reshape array of size 0")

    Path("odd.onnx").write_bytes(b"x")
    monkeypatch.setattr("sparsemap_plugins.importing.model_import.import_model", fails)
    done = CliRunner().invoke(cli, ["import", "odd.onnx"])
    assert done.exit_code == 2
    assert done.stderr.startswith("odd.onnx: cannot be imported") and "cannot reshape" in done.stderr
    assert ".py" not in done.stderr
