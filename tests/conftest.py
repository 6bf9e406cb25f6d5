"""Property tests have no deadline, since machines may be loaded; in CI they draw the same examples in every run, so that
a failure there can be repeated, elsewhere new ones."""

import os

import parsed_once  # noqa: F401
from hypothesis import settings

settings.register_profile("sparsemap", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("sparsemap")
