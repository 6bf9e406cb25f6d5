"""Running a searcher: the driver with its budget, the archive of what it found, the front, the result and its files.

Public: `driver` (Search, Budget, search), `archive`, `front`, `result`, `start` (designs to start from); `journal`,
`folder` and `identity` (which search a result is of) let a stopped search go on.
"""
