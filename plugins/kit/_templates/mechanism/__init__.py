"""A skip/gate mechanism, `plugin-name`."""

from pathlib import Path

import attrs

from sparsemap import Filter, Mechanism, hookimpl


@attrs.frozen(kw_only=True)
class PluginName(Mechanism):
    """Skips accesses of the second operand where the first is empty, as far as the unit can look ahead."""

    type_name = "plugin-name"
    window: int = attrs.field(default=4, validator=attrs.validators.ge(1))
    """Positions that the unit sees in a cycle."""

    def filters(self, place):
        return [Filter("Q", ("P",), "skip")]

    def needs_metadata(self, place):
        return True

    def eliminated(self, place, filter, empty):
        """One in 1 + e + ... + e^(window - 1) positions costs a cycle, if positions are empty with probability e."""
        return 1 - 1 / sum(empty**i for i in range(self.window))


@hookimpl
def register_mechanisms():
    return [PluginName]


@hookimpl
def register_specs():
    return [Path(__file__).parent]
