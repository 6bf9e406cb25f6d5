"""Property tests have no deadline, since machines may be loaded, and draw the same examples in every run; with
RANDOM_EXAMPLES=1 they draw new ones."""

import os

os.environ["SPARSEMAP_LOG_SECONDS"] = "0"  # no output depends on the clock
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # tests run side by side; before NumPy is there

from blank_charts import blank_charts  # noqa: F401
from browsers import browser  # noqa: F401
from hypothesis import settings
from quick import pytest_collection_finish  # noqa: F401

settings.register_profile("sparsemap", deadline=None, derandomize=not os.environ.get("RANDOM_EXAMPLES"))
settings.load_profile("sparsemap")
