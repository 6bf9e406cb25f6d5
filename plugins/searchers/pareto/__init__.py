"""Several objectives at once: `pareto:energy,delay`, the search for their front, and the front as a plot."""
