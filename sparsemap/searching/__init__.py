"""Running a searcher: the driver with its budget, the archive of what it found, the front, the result and its files.

Public: `driver` (Search, Budget), `run` (search, search_into), `archive`, `front`, `result`, `start` (designs to start
from); `journal`, `identity` (which search a result is of) and `folder` (whether it has ended) let a stopped search go on.
"""
