"""Skipping with a limited view: at most `window` positions per cycle."""
from pathlib import Path

import attrs
from sparsemap import Filter, Mechanism, hookimpl


@attrs.frozen(kw_only=True)
class MyMechanism(Mechanism):
    """Skips accesses of `target` where `leader` is empty, as far as the unit can see."""

    type_name = "my-mechanism"
    target: str
    leader: str
    window: int = attrs.field(default=4, validator=attrs.validators.ge(1))
    """Positions that the unit sees at a time."""

    def filters(self, place):
        return [Filter(self.target, (self.leader,), "skip")]

    def needs_metadata(self, place):
        return True

    def eliminated(self, place, filter, empty):
        return 1 - 1 / sum(empty**i for i in range(self.window))


@hookimpl
def register_mechanisms():
    return [MyMechanism]


@hookimpl
def register_specs():
    return [Path(__file__).parent]
