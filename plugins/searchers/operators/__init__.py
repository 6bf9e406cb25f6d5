"""Operators that searchers are composed of: initialisations, selections, crossovers and mutations."""
