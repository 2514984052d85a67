"""Images as arrays of any real dtype, grey or colour, 2-D or 3-D: checked, and with their channels first."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from treefield.apps.keywords import ChannelAxis
from treefield.validation import as_axis, as_real_array

_MAX_FLOAT = 1e100  # squares, and sums of them, stay finite
_MAX_INTEGER = 2**53  # float64 holds all integers up to here


def has_channels(shape: tuple[int, ...]) -> bool:
    """Whether an image of this shape, read from a file, has channels: a last axis of 1 to 4 after two or three others.

    Otherwise an image of three dimensions is a volume.
    """
    return len(shape) > 2 and 1 <= shape[-1] <= 4


def resolve_channel_axis(shape: tuple[int, ...], name: str, channel_axis: ChannelAxis) -> int | None:
    """The axis of the channels from 0 on, None if there is none; or an error.

    "auto" is None, but raises for an image of shape (M, N, 3) or (M, N, 4): as a volume it would be a very thin one.
    """
    if channel_axis == "auto":
        if len(shape) == 3 and shape[-1] in (3, 4) and min(shape[:2]) > 4:
            raise ValueError(
                f"{name} has shape {shape}: if these are colours, give channel_axis=-1; if it is a volume, "
                "channel_axis=None"
            )
        channel_axis = None
    wanted = 2 if channel_axis is None else 3
    if len(shape) not in (wanted, wanted + 1):
        channels = "" if channel_axis is None else " and an axis for its channels"
        raise ValueError(f"{name} has shape {shape}, expected two or three dimensions{channels}")
    return None if channel_axis is None else as_axis(channel_axis, len(shape), "channel_axis") % len(shape)


def as_channels_first(
    image: ArrayLike, name: str, channel_axis: ChannelAxis, hole: ArrayLike | None = None
) -> np.ndarray:
    """`image` as an array (C, M, N) or (C, P, M, N), with C = 1 for a grey image; or an error.

    Pixels in the hole may hold anything and become 0.
    """
    array = as_real_array(image, name)
    axis = resolve_channel_axis(array.shape, name, channel_axis)
    array = array[None] if axis is None else np.moveaxis(array, axis, 0)
    if array.size == 0:
        raise ValueError(f"{name} is empty: its shape is {np.shape(image)}")
    if hole is not None:
        is_hole = as_mask(hole, "mask", array.shape[1:])
        array = np.where(is_hole, array.dtype.type(0), array)
        check_not_masked(image, name, is_hole, axis)
    else:
        check_not_masked(image, name)
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            count = int(array.size - np.isfinite(array).sum())
            raise ValueError(f"{name} holds {count} values that are NaN or infinite; inpaint them, or replace them")
        if array.dtype.itemsize not in (4, 8):
            array = array.astype(np.float32 if array.dtype == np.float16 else np.float64)
    check_value_range(array.min(), array.max(), array.dtype, name)
    return array


def check_not_masked(image: object, name: str, hole: np.ndarray | None = None, axis: int | None = None) -> None:
    """Raise if an image is a masked array with masked values outside of the hole, which would count as observed.

    `axis` is that of the channels, which the hole does not have.
    """
    if not isinstance(image, np.ma.MaskedArray):
        return
    masked = np.ma.getmaskarray(image)
    if hole is not None:
        masked = masked & ~(hole if axis is None else np.expand_dims(hole, axis))
    if masked.any():
        known = "" if hole is None else " outside of the mask"
        raise ValueError(
            f"{name} is a masked array with {masked.sum()} masked values{known}; fill them with "
            "inpaint(image, mask, denoise=True), or give image.filled(value)"
        )


def from_channels_first(array: np.ndarray, channel_axis: ChannelAxis, dtype: np.dtype) -> np.ndarray:
    """The inverse of `as_channels_first`."""
    array = array.astype(dtype, copy=False)
    if channel_axis is None or channel_axis == "auto":
        return array[0]
    return np.ascontiguousarray(np.moveaxis(array, 0, channel_axis))


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
