"""A first population of the best of several guesses."""
from pathlib import Path

import attrs
from sparsemap import Init, Scored, hookimpl


@attrs.frozen(kw_only=True)
class MyInit(Init):
    type_name = "my-init"
    rounds: int = attrs.field(default=4, validator=attrs.validators.ge(1))
    """Guesses per place."""

    def fill(self, size, context):
        found = []
        for _ in range(self.rounds):
            guesses = context.space.guess(size, context.rng)
            found.append((yield context.space.repair(guesses, context.rng)))
        return Scored.join(found).best(size)


@hookimpl
def register_operators():
    return [MyInit]


@hookimpl
def register_specs():
    return [Path(__file__).parent]
