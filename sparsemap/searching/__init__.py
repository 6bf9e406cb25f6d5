"""Running a searcher: the driver with its budget, the archive of what it found, the front, the result and its files.

Public: `driver` (Search, Budget, search), `front`, `result`; `journal` and `folder` let a stopped search go on.
"""
