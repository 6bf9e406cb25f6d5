"""Classical search methods for comparison. Searchers needing another package import the package when the search starts."""
