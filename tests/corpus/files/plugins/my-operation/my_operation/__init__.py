"""Upsampling, as networks that segment images have it."""
from pathlib import Path

import attrs
from sparsemap import Operation, hookimpl


@attrs.frozen(kw_only=True)
class MyOperation(Operation):
    """Every value of an image several times, in rows and in columns."""

    type_name = "my-operation"
    factor: int = attrs.field(default=2, validator=attrs.validators.ge(1))

    def shape(self, inputs):
        if len(inputs) != 1 or len(inputs[0]) != 3:
            raise ValueError("expected one image: channels x height x width")
        channels, height, width = inputs[0]
        return (channels, height * self.factor, width * self.factor)


@hookimpl
def register_operations():
    return [MyOperation]


@hookimpl
def register_specs():
    return [Path(__file__).parent]
