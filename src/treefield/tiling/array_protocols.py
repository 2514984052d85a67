"""Arrays that are read and written box by box: NumPy arrays and memmaps, Zarr, HDF5 and Dask arrays."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Protocol, SupportsIndex, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

Box: TypeAlias = tuple[slice, ...]
Index: TypeAlias = tuple[slice | SupportsIndex, ...]
BoxCosts: TypeAlias = Callable[[Box], ArrayLike]  # the unary costs of a box, labels along the last axis
BlockCosts: TypeAlias = Callable[[np.ndarray], ArrayLike]  # those of a block of an image


@runtime_checkable
class ReadableArray(Protocol):
    """An array that can be sliced."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype: ...

    def __getitem__(self, box: Index, /) -> ArrayLike: ...


@runtime_checkable
class WritableArray(Protocol):
    """An array whose slices can be set."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype: ...

    def __setitem__(self, box: Index, values: np.ndarray, /) -> None: ...


@runtime_checkable
class LabelStore(ReadableArray, WritableArray, Protocol):
    """An array for a labelling."""


class ChunkedStore(LabelStore, Protocol):
    """An array of Zarr."""

    @property
    def chunks(self) -> tuple[int, ...]: ...


def as_readable(value: ReadableArray | ArrayLike) -> ReadableArray:
    """`value` if it can be sliced; lists and numbers as a NumPy array."""
    return value if isinstance(value, ReadableArray) else np.asarray(value)


def check_shape(array: ReadableArray, name: str, shape: tuple[int, ...]) -> None:
    """Raise unless an array of labels has the model's shape."""
    if tuple(array.shape) != shape:
        raise ValueError(f"{name} has shape {tuple(array.shape)}, but the model's is {shape}")


def dask_chunks(array: ReadableArray) -> tuple[tuple[int, ...], ...] | None:
    """The sizes of a Dask array's chunks along each axis; None for other arrays."""
    module = sys.modules.get("dask.array")  # not imported: then the array is none of Dask's
    return array.chunks if module is not None and isinstance(array, module.Array) else None
