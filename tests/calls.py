"""Counts calls where a test would otherwise take the time: a loaded machine makes as many as an idle one."""

import sys
from contextlib import contextmanager


@contextmanager
def at_most(limit):
    """Fails if the block makes more calls of functions, in Python or C, than this, whether it raises or not."""
    calls = 0

    def count(frame, event, arg):
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(before)
        assert calls <= limit, f"{calls:,} calls, expected at most {limit:,}"
