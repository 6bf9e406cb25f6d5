"""References between files: files of a project's folder, and parts of a spec relative to its folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..errors import SpecError, listed
from ..pieces.registry import is_path


def project_files(folder: str | os.PathLike[str]) -> dict[str, str]:
    """Files of a project's folder by part: `workload` and `hardware`, and `space` and `design` if present."""
    parts = ("workload", "hardware", "space", "design")
    found = {part: str(file) for part in parts if (file := Path(folder) / f"{part}.toml").is_file()}
    if absent := [f"{part}.toml" for part in parts[:2] if part not in found]:
        expected = "a project's folder holds workload.toml and hardware.toml, and may hold space.toml and design.toml"
        raise SpecError.at(str(folder), "", f"has no {listed(absent)}; {expected}")
    return found


def located(key: str, value: Any, base: Path) -> Any:
    """Value of a spec's part with paths resolved: relative to the spec's folder, or else to the working directory.

    A slash in an objective is a division, not a path."""
    if not isinstance(value, str) or not (value.endswith(".toml") if key == "objective" else is_path(value)):
        return value
    try:
        beside = base / Path(value).expanduser()
        return str(beside.resolve() if beside.exists() else Path(value).expanduser())
    except (OSError, RuntimeError):  # too long for a name, or a home that nobody has: reported when it is read
        return value
