"""Classical search methods to compare with. Those that need another package import it when their search starts."""
