"""Running a searcher: the driver with its budget, the archive of what it found, the front, the result and its files.

Public: `driver` (Search, Budget), `run` (search), `folder` (search_into, and whether it has ended), `archive`, `front`, `result`,
`start` (designs to start from); `journal` and `identity` (which search a result is of) let a stopped search go on.
"""
