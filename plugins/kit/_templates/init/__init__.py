"""An initialisation, `plugin-name`."""

from pathlib import Path

import attrs

from sparsemap import Init, Scored, hookimpl


@attrs.frozen(kw_only=True)
class PluginName(Init):
    """The best of several times as many guesses as there are places."""

    type_name = "plugin-name"
    rounds: int = attrs.field(default=4, validator=attrs.validators.ge(1))
    """Guesses per place."""

    def fill(self, size, context):
        """Yields genomes and receives them scored; returns the first population."""
        found = []
        for _ in range(self.rounds):
            guesses = context.space.guess(size, context.rng)
            found.append((yield context.space.repair(guesses, context.rng)))
        return Scored.join(found).best(size)


@hookimpl
def register_operators():
    return [PluginName]


@hookimpl
def register_specs():
    return [Path(__file__).parent]
