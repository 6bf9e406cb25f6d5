"""Every command that a page or a text prints runs when it is pasted, with files and plugins of the user too."""

import re
import shlex
from html import unescape
from pathlib import Path

import pytest
from click.testing import CliRunner

from sparsemap import load_problem, search
from sparsemap.cli.main import cli

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


@pytest.mark.parametrize("command", TOLD)
def test_commands_that_are_printed_run(command, folder, monkeypatch):
    monkeypatch.chdir(folder)
    found = printed(command)
    assert found[0] == TOLD[command]
    for one in found:
        run(one)


def test_a_result_of_a_program_tells_no_command(folder, monkeypatch):
    monkeypatch.chdir(folder)
    run("search mm1 edge --budget 20 --out program")
    search(load_problem("mm1", "edge"), budget=20).write("program")  # also in a folder that a command wrote
    assert printed("report program") == []
