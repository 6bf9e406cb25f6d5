"""Running a searcher: the driver with its budget, the archive of designs, the front, the result and the files.

Public: `driver` (Search, Budget), `run` (search), `folder` (search_into, and whether a search has ended), `archive`,
`front`, `result`, `start` (starting designs); `journal` and `identity` (the search behind a result) let a stopped
search go on."""
