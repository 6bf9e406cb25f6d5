"""How much of the source a user's first steps load: a module is imported when what it holds is asked for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

COUNT = """
import json, sys
from sparsemap.cli.main import cli
cli(sys.argv[1:], standalone_mode=False)
files = {module.__file__ for name, module in sys.modules.items() if name.split(".")[0] in ("sparsemap", "sparsemap_plugins")}
print("\\n" + json.dumps({"files": sorted(filter(None, files)), "numpy": "numpy" in sys.modules}))
"""


@pytest.mark.parametrize(
    ("arguments", "limit", "numpy"),
    [
        (["--help"], 3_780, False),
        (["search", "mm3", "cloud", "--budget", "300"], 18_880, True),
    ],
    ids=lambda value: " ".join(value[:3]) if isinstance(value, list) else "",
)
def test_what_is_loaded_has_few_lines(arguments, limit, numpy):
    done = subprocess.run(
        [sys.executable, "-c", COUNT, *arguments], capture_output=True, text=True, check=True, env={**os.environ}
    )
    found = json.loads(done.stdout.splitlines()[-1])
    texts = [file for file in found["files"] if file.endswith(".py")]  # not what is compiled
    lines = {file: len(Path(file).read_text("utf-8").splitlines()) for file in texts}
    largest = sorted(lines.items(), key=lambda item: -item[1])[:20]
    assert sum(lines.values()) <= limit, f"{sum(lines.values()):,} lines in {len(lines)} modules, such as {largest}"
    assert found["numpy"] == numpy
