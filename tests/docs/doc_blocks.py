"""Code blocks of Markdown files: which files they give, which commands they run, and what those should print.

- A block below a line that is only a path in backticks (a colon may follow) is that file.
- A bash block runs line by line; a text block right below it is what it prints. Only `sparsemap`, `python` and `pytest`
  run; the commands in `SHOWN` are for the reader.
- A text block whose lines begin with `$ ` is a session: commands, each with what it prints.
- A python block without a path is a script, a toml block without a path a fragment of a spec.

In what is printed, a line `...` stands for any lines, and times are not compared. Searches are compared loosely: the
same words in the same order, and an energy-delay product that is no worse than five percent above the printed one.
"""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import attrs
import forking

COMMANDS = {
    "sparsemap": ["-m", "sparsemap"],
    "python": [],
    "pytest": ["-m", "pytest", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", "."],
}
SHOWN = ("pip", "python3", "git", "ruff", "mypy", ".ci/run", ".venv/bin/")
"""Commands that a reader runs and a test does not: they install, or check the repository itself."""
SEARCHES = re.compile(r"^sparsemap (search|run|compare)\b|^sparsemap explain \w+$|\bsearch\(", re.M)
"""What prints the design of a search, or of the folder that one wrote."""


@attrs.frozen
class Block:
    """One fenced block; `line` is that of its fence, `path` the file it gives or ""."""

    file: str
    line: int
    language: str
    text: str
    path: str = ""
    output: str | None = None
    """The text block right below a bash or python block."""

    @property
    def place(self) -> str:
        return f"{self.file}, line {self.line}"


@attrs.frozen
class Section:
    """The blocks below one heading; they run in one folder, in order."""

    file: str
    title: str
    blocks: tuple[Block, ...]

    @property
    def runs(self) -> bool:
        return any(block.path or commands_of(block) or block.language in ("python", "toml") for block in self.blocks)


def sections(path: Path, heading: str = "## ") -> list[Section]:
    """The sections of a Markdown file; what stands above the first heading is one too. `"# "`: the page as a whole."""
    found: list[tuple[str, list[Block]]] = [("", [])]
    lines = path.read_text("utf-8").splitlines()
    before, number, adjacent = "", 0, False
    while number < len(lines):
        line = lines[number]
        if not line.startswith("```"):
            if line.startswith(heading):
                found.append((line[len(heading) :].strip(), []))
            if line.strip():
                before, adjacent = line.strip(), False
            number += 1
            continue
        end = lines.index("```", number + 1)
        block = Block(path.name, number + 1, line[3:].strip() or "text", "\n".join(lines[number + 1 : end]) + "\n")
        match = re.fullmatch(r"`([\w./-]+)`:?", before)
        blocks = found[-1][1]
        if match and block.language != "bash":
            block = attrs.evolve(block, path=match[1])
        elif block.language == "text" and adjacent and blocks and blocks[-1].language in ("bash", "python"):
            blocks[-1] = attrs.evolve(blocks[-1], output=block.text)
            block = attrs.evolve(block, language="output")
        if block.language != "output":
            blocks.append(block)
        before, adjacent, number = "", True, end + 1
    return [Section(path.name, title, tuple(blocks)) for title, blocks in found]


def commands_of(block: Block) -> list[tuple[str, str | None]]:
    """Commands of a bash block or a session with what each prints; None where the document does not say."""
    if block.language == "bash":
        lines = [line for line in block.text.replace("\\\n", " ").splitlines() if shlex.split(line, comments=True)]
        lines = [line for line in lines if not line.startswith(SHOWN)]
        outputs = [None] * (len(lines) - 1) + [block.output]
        return list(zip(lines, outputs, strict=True)) if lines else []
    if block.language == "text" and block.text.startswith("$ "):
        parts = re.split(r"^\$ (.*)\n", block.text, flags=re.M)[1:]
        return list(zip(parts[::2], parts[1::2], strict=True))
    return []


def run_section(section: Section, folder: Path) -> None:
    """Writes and runs all blocks of a section in `folder`; AssertionError with the place of the first that fails."""
    for block in section.blocks:
        if block.path:
            target = folder / block.path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, "utf-8")
        elif block.language == "python":
            _run(["-c", block.text], {}, folder, block, block.text, block.output)
        elif block.language == "toml":
            tomllib.loads(block.text)
        for command, output in commands_of(block):
            settings, words = _split(command, block)
            wanted = re.search(r"exits with (\d+)", command)
            _run(words, settings, folder, block, command, output, int(wanted[1]) if wanted else 0)


def _split(command: str, block: Block) -> tuple[dict[str, str], list[str]]:
    """Variables set for the command, and what follows `python`."""
    words = shlex.split(command, comments=True)
    settings = {}
    while re.fullmatch(r"\w+=.*", words[0]):
        name, _, value = words.pop(0).partition("=")
        settings[name] = value
    assert words[0] in COMMANDS, f"{block.place}: '{words[0]}' is neither run nor known as shown only"
    return settings, [*COMMANDS[words[0]], *words[1:]]


def _run(
    words: list[str],
    settings: dict[str, str],
    folder: Path,
    block: Block,
    shown: str,
    output: str | None,
    code: int = 0,
) -> None:
    """Runs a command; AssertionError if it exits with another code or prints something else."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("SPARSEMAP_", "PYTEST_"))}
    clean["SPARSEMAP_LOG_SECONDS"] = "0"  # lines of progress depend on the clock
    env = {**clean, "COLUMNS": "100", "NO_COLOR": "1", **settings}
    done = forking.run(words, folder, env, together=True)
    printed = done.stdout
    assert done.returncode == code, f"{block.place}: exits with {done.returncode}, expected {code}\n{shown}\n{printed}"
    if output is not None:
        problem = difference(output, printed, loose=bool(SEARCHES.search(shown)))
        assert not problem, f"{block.place}: {problem}\n{shown}\n--- in the document\n{output}--- printed\n{printed}"


# ----------------------------------------------------------------------------------------------------- what is printed


def difference(expected: str, printed: str, loose: bool) -> str:
    """What differs, "" if nothing does."""
    if loose:
        return _worse(expected, printed) or _unlike(list(_skeleton(expected)), list(_skeleton(printed)), gaps=True)
    return _unlike(_lines(expected), _lines(printed), gaps=False)


def _lines(text: str) -> list[str]:
    lines = [re.sub(r"\b\d[\d.,]* (ms|s|min)\b|\b\d+\.\d+s\b", "<time>", line.rstrip()) for line in text.splitlines()]
    return [line for line in lines if line]


def _unlike(expected: list[str], printed: list[str], gaps: bool) -> str:
    """The first line that is missing or that nobody expects; `...` and, with `gaps`, any place may hold more lines."""
    at, skip = 0, gaps
    for line in expected:
        if line.strip() == "...":
            skip = True
            continue
        found = next((i for i in range(at, len(printed)) if printed[i] == line), None) if skip else at
        if found is None or found >= len(printed) or printed[found] != line:
            return f"the line {line!r} is not printed" if skip else f"the line {line!r} is not printed there"
        at, skip = found + 1, gaps
    return f"the line {printed[at]!r} is not in the document" if at < len(printed) and not skip else ""


def _skeleton(text: str) -> Iterator[str]:
    """Lines by their first word; loops and formats depend on the design, so they are left out."""
    for line in _lines(text):
        words = re.findall(r"[A-Za-z][\w.-]*|\.{3}", line)
        if words and words[0] not in ("for", "par-for") and (not line.startswith(" ") or line.strip() == "..."):
            yield words[0]


def _worse(expected: str, printed: str) -> str:
    """Energy-delay products in order of appearance: none may be worse than the document says."""
    pattern = r"\d\.\d+e[+-]?\d+"
    for promised, found in zip(re.findall(pattern, expected), re.findall(pattern, printed), strict=False):
        if float(found) > 1.05 * float(promised):
            return f"{found} is worse than the {promised} in the document"
    return ""
