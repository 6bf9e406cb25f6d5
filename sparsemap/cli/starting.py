"""Files to start from: a workload, a hardware, and a study of the hardware beside another."""

from __future__ import annotations

from pathlib import Path

from ..file_formats import SPEC
from ..pieces import defaults
from ..pieces.registry import Registry, is_path
from ..problem.load import load_problem

STUDY = """\
format = "{format}"
kind = "study"
name = "my-study"
workloads = ["workload.toml"] # names of `sparsemap list workload`, or files
hardware = ["hardware.toml", "{other}"]
seeds = [0, 1] # two or more give intervals
budget = 500 # designs per search
out = "runs/my-study"

# Every combination of these values is searched; the key is the place of the value.
# [axes]
# "hardware.levels.{level}.capacity" = ["64 KB", "256 KB"]
# "workload.density.Q" = [0.1, 0.5]
"""


def starting_texts(registry: Registry, folder: Path, workload: str, hardware: str) -> dict[Path, str]:
    """Texts by file: copies of two pieces with their comments, and the study."""
    texts = dict[Path, str]()
    for kind, name in (("workload", workload), ("hardware", hardware)):
        registry.resolve(kind, name)
        file = Path(name if is_path(name) else registry.origin(kind, name).file)
        lines = file.read_text("utf-8").splitlines(keepends=True)
        end = next((at for at, line in enumerate(lines) if line.startswith("[")), len(lines))
        about = "#:schema", "kind =", "name =", "description =", "source ="
        head = [line for line in lines[:end] if not line.startswith(about)]
        own = f'format = "{SPEC.text}"\nkind = "{kind}"\nname = "my-{kind}"\n'
        texts[folder / f"{kind}.toml"] = "".join([own, *head, *lines[end:]])
    levels = [level.name for level in load_problem(workload, hardware, registry=registry).levels if level.index]
    other = next(name for name in reversed(defaults.START) if name != hardware)
    study = STUDY.format(format=SPEC.text, other=other, level=levels[0] if levels else "DRAM")
    texts[folder / "study.toml"] = study
    return texts
