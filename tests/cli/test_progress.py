"""Progress in a log file: the state of the work at intervals, and nothing for a short command or a buffer."""

from __future__ import annotations

import io
import sys
import threading
from pathlib import Path

import pytest

from sparsemap.cli import progress


def test_a_log_file_gets_the_state_of_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "run.log"
    monkeypatch.setattr(sys, "stderr", log.open("w", encoding="utf-8"))
    monkeypatch.setenv(progress.LOG_SECONDS, "0.001")
    written = threading.Event()

    def more() -> str:
        written.set()
        return "2 running"

    with progress.bar(False, 9, more) as update:
        assert update is not None
        written.wait(60)
        update(3, 9, "cells   layer4")
        written.clear()
        written.wait(60)  # the line of the update is written, or the next one is begun
        written.clear()
        written.wait(60)
    first, *_, last = log.read_text("utf-8").splitlines()
    assert first.endswith("s   0 of 9   2 running") and last.endswith("s   3 of 9   cells   layer4   2 running")


def test_a_short_command_and_a_buffer_get_no_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "run.log"
    monkeypatch.setattr(sys, "stderr", log.open("w", encoding="utf-8"))
    with progress.bar(False, 9) as update:
        assert update is not None
        update(9, 9, "all")
    assert log.read_text("utf-8") == ""
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress.bar(False, 9) as update:
        assert update is None
    with progress.bar(True, 9) as update:
        assert update is None
