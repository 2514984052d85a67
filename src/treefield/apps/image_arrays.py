"""Images as arrays of any real dtype, grey or colour, 2-D or 3-D: checked, and with their channels first."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from treefield.apps.grey_levels import warn_caller
from treefield.validation import as_axis, as_real_array

_MAX_FLOAT = 1e100  # squares, and sums of them, stay finite
_MAX_INTEGER = 2**53  # float64 holds all integers up to here


def has_channels(shape: tuple[int, ...]) -> bool:
    """Whether an image of this shape, read from a file, has channels: a last axis of 1 to 4 after two or three others.

    Otherwise an image of three dimensions is a volume.
    """
    return len(shape) > 2 and 1 <= shape[-1] <= 4


def as_channels_first(
    image: ArrayLike, name: str, channel_axis: int | None, hole: ArrayLike | None = None
) -> np.ndarray:
    """`image` as an array (C, M, N) or (C, P, M, N), with C = 1 for a grey image; or an error.

    Pixels in the hole may hold anything and become 0.
    """
    array = as_real_array(image, name)
    if array.ndim == 3 and channel_axis is None and array.shape[-1] in (3, 4) and min(array.shape[:2]) > 4:
        warn_caller(f"{name} of shape {array.shape} is taken as a volume; if these are colours, give channel_axis=-1")
    wanted = 2 if channel_axis is None else 3
    if array.ndim not in (wanted, wanted + 1):
        channels = "" if channel_axis is None else " and an axis for its channels"
        raise ValueError(f"{name} has shape {array.shape}, expected two or three dimensions{channels}")
    if channel_axis is not None:
        channel_axis = as_axis(channel_axis, array.ndim, "channel_axis")
    array = array[None] if channel_axis is None else np.moveaxis(array, channel_axis, 0)
    if array.size == 0:
        raise ValueError(f"{name} is empty: its shape is {np.shape(image)}")
    if hole is not None:
        array = np.where(as_mask(hole, "mask", array.shape[1:]), array.dtype.type(0), array)
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            count = int(array.size - np.isfinite(array).sum())
            raise ValueError(f"{name} holds {count} values that are NaN or infinite; inpaint them, or replace them")
        if array.dtype.itemsize not in (4, 8):
            array = array.astype(np.float32 if array.dtype == np.float16 else np.float64)
    check_value_range(array.min(), array.max(), array.dtype, name)
    return array


def from_channels_first(array: np.ndarray, channel_axis: int | None, dtype: np.dtype) -> np.ndarray:
    """The inverse of `as_channels_first`."""
    array = array.astype(dtype, copy=False)
    return array[0] if channel_axis is None else np.ascontiguousarray(np.moveaxis(array, 0, channel_axis))


def check_value_range(low: np.generic, high: np.generic, dtype: np.dtype, name: str) -> None:
    """Raise if an image whose values go from `low` to `high` cannot be computed with in float64."""
    most = _MAX_FLOAT if dtype.kind == "f" else _MAX_INTEGER
    largest = max(-float(low), float(high))
    if largest > most:
        raise ValueError(f"{name} holds values up to {largest:g}, expected at most {most:g}; scale it")


def as_mask(mask: ArrayLike, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """`mask` as a boolean array of the image's shape without channels, or an error."""
    array = as_real_array(mask, name)
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}, but the image's is {shape}")
    return array.astype(bool)


def stack_channels(array: np.ndarray) -> tuple[np.ndarray, list[np.ndarray | int] | None]:
    """Stack the channels along the first axis, as one grid; return also the edge weights that separate them.

    The weights are None for a single channel.
    """
    channels, rows = array.shape[:2]
    stacked = array.reshape(channels * rows, *array.shape[2:])
    if channels == 1:
        return stacked, None
    first = np.ones((channels * rows - 1, *array.shape[2:]), np.uint8)
    first[rows - 1 :: rows] = 0
    return stacked, [first, *([1] * (stacked.ndim - 1))]
