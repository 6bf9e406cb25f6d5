"""Property tests have no deadline, since machines may be loaded, and draw the same examples in every run; with
RANDOM_EXAMPLES=1 they draw new ones."""

import os

import parsed_once  # noqa: F401
from browsers import browser  # noqa: F401
from hypothesis import settings

settings.register_profile("sparsemap", deadline=None, derandomize=not os.environ.get("RANDOM_EXAMPLES"))
settings.load_profile("sparsemap")
