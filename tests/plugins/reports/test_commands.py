"""Every command that a page or a text prints runs when it is pasted, with files and plugins of the user too."""

import re
import shlex
from html import unescape
from pathlib import Path

import pytest
from click.testing import CliRunner

from sparsemap import load_problem, search
from sparsemap.cli.main import cli
from sparsemap.searching import folder as folder_module

pytestmark = pytest.mark.usefixtures("blank_charts")

FILES = {
    "own/format.toml": 'kind = "format"\nname = "mine"\nextends = "bitmask"\n',
    "my layer.toml": 'kind = "workload"\nname = "mine"\ntype = "matmul"\nm = 16\nk = 16\nn = 16\n',
    "chip.toml": 'kind = "hardware"\nname = "small"\nextends = "edge"\nclock = "2 GHz"\n',
    "space.toml": 'kind = "space"\nname = "odd"\nextends = "full"\nformats.candidates = ["uncompressed", "mine"]\n',
    "net.toml": 'kind = "network"\nname = "two"\nlayers = [{ name = "a", type = "linear", k = 16, n = 16 }]\ninput = [16]\n',
    "study.toml": 'kind = "study"\nname = "few"\nworkloads = ["my layer.toml"]\nhardware = ["chip.toml", "edge"]\n'
    'networks = ["net.toml"]\nseeds = [0, 1]\nbudget = 20\n',
    "chips.toml": 'kind = "hardware"\nname = "some"\nextends = "edge"\n'
    'choices = { "levels.GLB.capacity" = ["64 KB", "128 KB"] }\n',
}
MADE = (
    "search 'my layer.toml' chip.toml --space space.toml --plugin-dir own --objective energy --budget 20 --out best",
    "run net.toml --hardware chip.toml --fuse --seed 3 --budget 20 --out net",
    "run net.toml --hardware edge --budget 20 --out other",
    "run study.toml --out st",
    "design net.toml chips.toml --area 900mm2 --budget 1 --layer-budget 20 --out 'a chip'",
)
TOLD = {
    "report best": MADE[0],
    "report net": MADE[1],
    "report st": MADE[3],
    "report st/net--chip--sparsemap--seed0/a": MADE[3],
    "report 'a chip'": MADE[4],
    "report net other --reference other": "report net other --reference other",
    "explain net": "explain net/plan/a.toml",
    "explain 'a chip'": "explain 'a chip/net/plan/a.toml'",
    "explain st": "explain st/my-layer--chip--sparsemap--seed0",
}
"""What prints a command, and the first that it prints."""


def run(command):
    done = CliRunner().invoke(cli, shlex.split(command))
    assert done.exit_code == 0, (command, done.output)
    return done.output


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pasted")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for command in MADE:
            run(command)
    return folder


def printed(command):
    """The commands in what a command prints and writes."""
    text = run(command)
    page = text.strip().splitlines()[-1]
    if page.endswith(".html"):
        text = unescape(re.sub(r"<svg.*?</svg>|<script.*?</script>", "", Path(page).read_text(), flags=re.S))
    return [found.strip() for found in re.findall(r"(?<![-\w/.])sparsemap ((?!\d)[^;`<\n]+)", text)]


@pytest.fixture(scope="module")
def pasted():
    """Commands that were printed and have run."""
    return set()


@pytest.mark.parametrize("command", TOLD)
def test_commands_that_are_printed_run(command, folder, pasted, monkeypatch):
    monkeypatch.chdir(folder)
    found = printed(command)
    assert found[0] == TOLD[command]
    for one in dict.fromkeys(found):
        if one not in pasted:
            run(one)
            pasted.add(one)


def test_a_result_of_a_program_tells_no_command(folder, monkeypatch):
    monkeypatch.chdir(folder)
    run("search mm1 edge --budget 20 --out program")
    search(load_problem("mm1", "edge"), budget=20).write("program")  # also in a folder that a command wrote
    assert printed("report program") == []


@pytest.mark.parametrize("stop", [1, 2])
def test_what_was_stopped_is_shown_as_far_as_it_has_come(folder, tmp_path, monkeypatch, stop):
    """Ctrl-C in the first layer of a network, and in the second."""
    layers = ", ".join(f'{{ name = "{name}", type = "linear", k = 16, n = {n} }}' for name, n in (("a", 16), ("b", 8)))
    (tmp_path / "net.toml").write_text(f'kind = "network"\nname = "two"\nlayers = [{layers}]\ninput = [16]\n')
    calls = []

    def completed(search, *args, **more):
        calls.append(search)
        if len(calls) == stop:
            raise KeyboardInterrupt
        return whole(search, *args, **more)

    whole = folder_module.completed
    monkeypatch.setattr(folder_module, "completed", completed)
    monkeypatch.chdir(tmp_path)
    stopped = CliRunner().invoke(cli, shlex.split("run net.toml --hardware edge --budget 20 --out part"))
    assert stopped.exit_code != 0 and Path("part/network.json").is_file(), stopped.output
    for command in ("report part", "explain part", "plot part --kind energy -o part.svg", f"report part {folder}/net"):
        done = CliRunner().invoke(cli, shlex.split(command))
        assert "raised" not in done.output and (
            done.exit_code == 0 or "has no design" in done.output or "no layer" in done.output
        )
        assert done.exit_code == 0 or stop == 1
