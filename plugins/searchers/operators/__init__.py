"""Operators for searchers: initialisations, selections, crossovers and mutations."""
