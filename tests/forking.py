"""Commands in processes of their own that start in milliseconds: forked from a server that has imported everything.

A test's command sees what it would see in a fresh interpreter: its own folder, environment, modules and exit. Run as a
script this file is the server; it takes one job a line, as JSON, and answers with the exit code.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import select
import subprocess
import sys
import tempfile
import threading
import types
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

TIMEOUT = 300


def run(
    words: Sequence[object], folder: Path | None = None, env: Mapping[str, str] = os.environ, together: bool = False
) -> subprocess.CompletedProcess[str]:
    """What `python WORDS` prints and its exit code, run in `folder` with `env`; `together`: both streams in `stdout`."""
    with tempfile.TemporaryDirectory() as temporary:
        streams = [Path(temporary) / name for name in ("stdout", "stdout" if together else "stderr")]
        job = {"words": [*map(str, words)], "folder": str(folder or Path.cwd()), "env": dict(env),
               "streams": [*map(str, streams)]}  # fmt: skip
        code = _ask(job)
        printed = [path.read_text("utf-8", "replace") for path in streams]
    return subprocess.CompletedProcess(job["words"], code, *printed[: 2 - together])


def _ask(job: dict[str, Any]) -> int:
    server = _server()
    assert server.stdin and server.stdout
    server.stdin.write(json.dumps(job) + "\n")
    server.stdin.flush()
    if not select.select([server.stdout], [], [], TIMEOUT)[0]:
        _server.cache_clear()  # its answer would be taken for that to the next job
        server.kill()
        raise AssertionError(f"{job['words']} did not end within {TIMEOUT} s")
    return int(server.stdout.readline())


@cache
def _server() -> subprocess.Popen[str]:
    env = {key: value for key, value in os.environ.items() if not key.startswith("SPARSEMAP_")} | {
        "SPARSEMAP_LOG_SECONDS": "0"
    }
    env["PYTHONIOENCODING"] = "utf-8"
    server = subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8", env=env,
        cwd=Path(__file__).parent,
    )  # fmt: skip
    atexit.register(server.communicate)  # ends it, and waits for its end
    return server


def _serve() -> dict[str, Any] | None:
    """Forks a child per job; returns in the child, with its job, and at the end of all jobs, with None."""
    for line in iter(sys.stdin.readline, ""):
        child = os.fork()
        if not child:
            return json.loads(line)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    return None


def _become(job: dict[str, Any]) -> None:
    """Takes on the streams, folder and environment of a job and runs it as `python` would."""
    for stream, path in enumerate((os.devnull, *job["streams"])):
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        os.dup2(file, stream)
        os.close(file)
    os.chdir(job["folder"])
    os.environ.clear()
    os.environ.update(job["env"])
    first, *rest = job["words"]
    sys.path[0] = "" if first == "-c" else job["folder"] if first == "-m" else str(Path(first).parent)
    sys.argv = ["-c", *rest[1:]] if first == "-c" else rest if first == "-m" else job["words"]
    if first == "-m":
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.modules["__main__"] = main = types.ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), vars(main))
    else:
        runpy.run_path(first, run_name="__main__")


def _run(job: dict[str, Any]) -> None:
    """Ends the process with what Python would do at its end, but for taking every module apart, which takes 0.2 s."""
    code: Any = None
    try:
        _become(job)
    except SystemExit as end:
        code = end.code
        if not isinstance(code, int | None):
            raise
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code or 0)


if __name__ == "__main__":
    plugins = sorted((Path(__file__).parents[1] / "plugins").glob("*/commands.py"))
    verbs = [f"sparsemap.cli.{name}" for name in ("main", "study", "show", "pieces", "output")]
    verbs += [f"sparsemap_plugins.{path.parent.name}.commands" for path in plugins]
    searches = (
        "sparsemap.problem.load",
        "sparsemap.searching.run",
        "sparsemap.searching.journal",
        "sparsemap.study.study",
    )
    for name in ("quick", *verbs, *searches, "matplotlib.figure", "onnx"):
        with suppress(ImportError):
            import_module(name)
    registry = import_module("sparsemap.pieces.loading").load()
    for kind in registry.kinds():  # imports the plugins
        registry.types(kind)
    gc.freeze()  # so that no child writes to the pages of what is imported
    if given := _serve():
        _run(given)
