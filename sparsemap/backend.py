"""Array libraries that can evaluate designs: NumPy, and PyTorch, CuPy and JAX, whose arrays may live on an accelerator.

Code that runs on all of them takes its operations from a `Backend`, by custom called `xp`: it has the names of NumPy
(`xp.where`, `xp.zeros` ..) and a few operations more where the libraries differ. With NumPy they are NumPy's own
functions, so that nothing is slower. Numbers are float64 and int64 everywhere, and sums are made in one order, so that
the results of all backends are the same bit for bit unless a library rounds elementary operations differently.
"""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from .errors import EvaluationError, install, unknown

NAMES = ("numpy", "torch", "cupy", "jax")
HOST_BLOCK, DEVICE_BLOCK = 4096, 1 << 19
"""Designs per block: on a CPU what stays in cache, on an accelerator what hides the cost of starting its kernels."""


class Backend:
    """The operations of one library on one device. Names that are not here are those of the library's module.

    Where a function changes an array in place if the library can, the result is to be used, not the argument.
    """

    in_order = False
    """Whether `bincount` adds the weights of a bin in their order."""
    word: Any = np.int64
    """Type of bit sets."""

    def __init__(self, name: str, module: Any, device: str, block: int) -> None:
        self.name, self.module, self.device, self.block = name, module, device, block
        self._constants: dict[Any, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = getattr(self.module, name)
        setattr(self, name, value)
        return value

    def __repr__(self) -> str:
        return f"{self.name}:{self.device}" if self.device else self.name

    # -- between host and device

    def asarray(self, array: Any) -> Any:
        """An array of the library from one of NumPy, or from one of its own."""
        return self.module.asarray(array)

    def to_host(self, array: Any) -> np.ndarray:
        return np.asarray(array)

    def constant(self, array: np.ndarray) -> Any:
        """A small NumPy array on the device; equal ones are sent once."""
        key = (array.tobytes(), array.shape, array.dtype.str)
        found = self._constants.get(key)
        if found is None:
            if len(self._constants) > 1000:
                self._constants.clear()
            found = self._constants[key] = self.asarray(array)
        return found

    # -- what the libraries do differently

    def astype(self, array: Any, dtype: Any) -> Any:
        return array.astype(dtype)

    def copy(self, array: Any) -> Any:
        return array.copy()

    def put(self, array: Any, index: Any, values: Any) -> Any:
        """The array with `values` at an index, at which every element is named once; in place if possible."""
        array[index] = values
        return array

    def take(self, table: Any, index: Any) -> Any:
        """`table[index]` for an index of any type of integers."""
        return table[index]

    def product(self, array: Any) -> Any:
        """Product over the first axis."""
        return array.prod(axis=0)

    def seen(self, array: Any) -> Any:
        """Whether any element up to and including this one along the first axis is true."""
        return self.module.cumsum(array, axis=0, dtype=self.int16) > 0

    def first(self, array: Any) -> Any:
        """Index of the first true element along the first axis."""
        return array.argmax(axis=0)


class NumpyBackend(Backend):
    """NumPy, without anything between it and the caller."""

    in_order = True
    word = np.uint64

    def __init__(self) -> None:
        super().__init__("numpy", np, "", HOST_BLOCK)
        self.asarray: Callable[..., Any] = np.asarray
        self.take: Callable[..., Any] = operator.getitem
        self.product: Callable[..., Any] = np.multiply.reduce  # over the first axis unless told otherwise
        self.seen: Callable[..., Any] = np.logical_or.accumulate

    def constant(self, array: np.ndarray) -> Any:
        return array

    def to_host(self, array: Any) -> np.ndarray:
        return array


class CupyBackend(Backend):
    def to_host(self, array: Any) -> np.ndarray:
        return self.module.asnumpy(array)


class JaxBackend(Backend):
    """Arrays of JAX do not change: what other libraries do in place makes new arrays here."""

    def put(self, array: Any, index: Any, values: Any) -> Any:
        return array.at[index].set(values)


class TorchBackend(Backend):
    """PyTorch with the names and rules of NumPy, as far as they are used: float64 unless told otherwise."""

    def __init__(self, torch: Any, device: str) -> None:
        on_host = torch.device(device).type == "cpu"
        super().__init__("torch", torch, device, HOST_BLOCK * 4 if on_host else DEVICE_BLOCK)
        self.in_order, self.word = on_host, torch.int64
        for name in ("zeros", "ones"):
            setattr(self, name, self._maker(getattr(torch, name)))

    def _maker(self, make: Callable[..., Any]) -> Callable[..., Any]:
        def made(shape: Any, dtype: Any = self.module.float64) -> Any:
            return make(shape, dtype=dtype, device=self.device)

        return made

    def asarray(self, array: Any) -> Any:
        if isinstance(array, np.ndarray):
            array = np.ascontiguousarray(array)
            if not array.flags.writeable:
                array = array.copy()
        return self.module.as_tensor(array, device=self.device)

    def to_host(self, array: Any) -> np.ndarray:
        return array.cpu().numpy()

    def arange(self, *args: Any) -> Any:
        return self.module.arange(*args, device=self.device)

    def full(self, shape: Any, value: Any, dtype: Any = None) -> Any:
        shape = (shape,) if isinstance(shape, int) else shape
        return self.module.full(shape, value, dtype=dtype or self.module.float64, device=self.device)

    def astype(self, array: Any, dtype: Any) -> Any:
        return array.to(dtype)

    def copy(self, array: Any) -> Any:
        return array.clone()

    def take(self, table: Any, index: Any) -> Any:
        return table[index.long()]

    def take_along_axis(self, array: Any, index: Any, axis: int) -> Any:
        return self.module.take_along_dim(array, index.long(), axis)

    def flip(self, array: Any, axis: int) -> Any:
        return self.module.flip(array, (axis,))

    def maximum(self, a: Any, b: Any) -> Any:
        if not self.module.is_tensor(a):
            a, b = b, a
        return self.module.maximum(a, b) if self.module.is_tensor(b) else self.module.clamp(a, min=b)

    def minimum(self, a: Any, b: Any) -> Any:
        if not self.module.is_tensor(a):
            a, b = b, a
        return self.module.minimum(a, b) if self.module.is_tensor(b) else self.module.clamp(a, max=b)

    def divide(self, a: Any, b: Any) -> Any:
        """PyTorch multiplies by reciprocals where one operand is a number, which rounds twice."""
        a, b = (x if self.module.is_tensor(x) else self.constant(np.array(x)) for x in (a, b))
        return self.module.divide(a, b)

    def clip(self, array: Any, low: Any, high: Any) -> Any:
        return self.module.clamp(array, low, high)

    def nonzero(self, array: Any) -> Any:
        return self.module.nonzero(array, as_tuple=True)

    def flatnonzero(self, array: Any) -> Any:
        return self.module.nonzero(array, as_tuple=True)[0]

    def where(self, condition: Any, a: Any, b: Any) -> Any:
        if isinstance(a, float) and isinstance(b, float):
            a = self.module.tensor(a, dtype=self.module.float64, device=self.device)
        return self.module.where(condition, a, b)

    def bincount(self, cells: Any, weights: Any, count: int) -> Any:
        return self.module.bincount(cells, weights, count)

    def first(self, array: Any) -> Any:
        return array.to(self.module.int8).argmax(0)


NUMPY = NumpyBackend()


@cache
def backend(name: str | Backend = "numpy") -> Backend:
    """A backend by name: `numpy`, `torch`, `cupy`, `jax`, with a device after a colon, as in `torch:cuda:1`.

    Without a device, an accelerator is used if the library sees one. `EvaluationError` if the name is unknown or the
    library is not installed.
    """
    if isinstance(name, Backend):
        return name
    library, _, device = name.partition(":")
    if library not in NAMES:
        raise EvaluationError(unknown("backend", library, list(NAMES)))
    if library == "numpy":
        if device:
            raise EvaluationError(f"backend 'numpy' has no device '{device}'")
        return NUMPY
    make = {"torch": _torch, "cupy": _cupy, "jax": _jax}[library]
    try:
        return make(importlib.import_module(library), device)
    except ImportError as error:
        raise EvaluationError(
            f"backend '{library}' needs {library}, which cannot be imported ({error}): {install(library)}"
        ) from None


def backend_of(array: Any) -> Backend:
    """The backend whose array this is."""
    if isinstance(array, np.ndarray):
        return NUMPY
    library = type(array).__module__.partition(".")[0]
    if library == "torch":
        return backend(f"torch:{array.device}")
    if library == "cupy":
        return backend(f"cupy:{array.device.id}")
    if library in ("jax", "jaxlib"):
        return backend("jax")
    raise EvaluationError(f"no backend for arrays of type {type(array).__module__}.{type(array).__name__}")


def _torch(torch: Any, device: str) -> Backend:
    if not device:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        array = torch.zeros(1, dtype=torch.float64, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        text = str(error).splitlines()[0]
        raise EvaluationError(f"backend 'torch' cannot use device '{device}': {text}") from None
    return TorchBackend(torch, str(array.device))


def _cupy(cupy: Any, device: str) -> Backend:
    try:
        cupy.cuda.Device(int(device or 0)).use()
    except (ValueError, RuntimeError) as error:
        raise EvaluationError(f"backend 'cupy' cannot use device '{device or 0}': {error}") from None
    return CupyBackend("cupy", cupy, device or "0", DEVICE_BLOCK)


def _jax(jax: Any, device: str) -> Backend:
    jax.config.update("jax_enable_x64", True)
    if device:
        raise EvaluationError("backend 'jax' takes its device from JAX_PLATFORMS, not from the name")
    on_host = jax.default_backend() == "cpu"
    return JaxBackend("jax", importlib.import_module("jax.numpy"), "", HOST_BLOCK * 4 if on_host else DEVICE_BLOCK)
