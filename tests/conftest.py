"""Property tests draw the same examples in every run of CI, so that a failure there can be repeated; new ones elsewhere."""

import os

from hypothesis import settings

settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")
