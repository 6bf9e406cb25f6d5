"""Several objectives at once: `pareto:energy,delay`, and the search for their Pareto front."""
