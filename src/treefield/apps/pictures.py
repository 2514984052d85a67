"""Images as the applications take them: any dtype, grey or colour, 2-D or 3-D."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from treefield.validation import as_axis, as_real_array

_LARGEST = 1e100  # squares, and sums of them, are still finite
_EXACT = 2**53  # integers up to here are floats


def has_channels(shape: tuple[int, ...]) -> bool:
    """Whether an image of that shape, from a file, is taken as one of colours: the last axis of more than two is that
    of channels if it has 1 to 4; otherwise the image is a volume."""
    return len(shape) > 2 and 1 <= shape[-1] <= 4


def checked_image(image: Any, name: str, channel_axis: int | None, hole: Any = None) -> np.ndarray:
    """An image of two or three dimensions with its channels first, (C, M, N) or (C, P, M, N), or an error. In the hole,
    where there may be anything, it is 0."""
    array = as_real_array(image, name)
    if array.ndim == 3 and channel_axis is None and array.shape[-1] in (3, 4) and min(array.shape[:2]) > 4:
        warnings.warn(
            f"{name} of shape {array.shape} is taken as a volume; if these are colours, give channel_axis=-1",
            stacklevel=4,
        )
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
        array = np.where(checked_mask(hole, "mask", array.shape[1:]), array.dtype.type(0), array)
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            count = int(array.size - np.isfinite(array).sum())
            raise ValueError(f"{name} holds {count} values that are NaN or infinite; inpaint them, or replace them")
        if array.dtype.itemsize not in (4, 8):
            array = array.astype(np.float32 if array.dtype == np.float16 else np.float64)
    check_range(array.min(), array.max(), array.dtype, name)
    return array


def check_range(low: Any, high: Any, dtype: np.dtype, name: str) -> None:
    """Refuse an image whose values go from `low` to `high` if these are too large to reckon with."""
    most = _LARGEST if dtype.kind == "f" else _EXACT
    largest = max(-float(low), float(high))
    if largest > most:
        raise ValueError(f"{name} holds values up to {largest:g}, expected at most {most:g}; scale it")


def channels_back(array: np.ndarray, channel_axis: int | None, dtype: np.dtype) -> np.ndarray:
    """The opposite of `checked_image`."""
    array = array.astype(dtype, copy=False)
    return array[0] if channel_axis is None else np.ascontiguousarray(np.moveaxis(array, 0, channel_axis))


def checked_mask(mask: Any, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """A mask as booleans, of the image's shape without channels, or an error."""
    array = as_real_array(mask, name)
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}, but the image's is {shape}")
    return array.astype(bool)


class Scale(NamedTuple):
    """From the values of an image to steps of grey, 255 from black to white."""

    black: float
    unit: float

    def grey(self, values: np.ndarray) -> np.ndarray:
        """Values in steps of grey, float64."""
        return np.subtract(values, self.black, dtype=np.float64) / self.unit


def grey_scale(array: np.ndarray) -> Scale:
    """An image's scale: a step is 1 in 8 bits, 1/255 for floats between 0 and 1 and for booleans, otherwise 1/255 of
    the values' range."""
    if array.dtype == np.uint8:
        return Scale(0.0, 1.0)
    low, high = float(array.min()), float(array.max())
    if array.dtype == np.bool_ or (array.dtype.kind == "f" and low >= 0 and high <= 1):
        return Scale(0.0, 1 / 255)
    return Scale(low, (high - low) / 255 or 1.0)


def stack_channels(array: np.ndarray) -> tuple[np.ndarray, list[Any] | None]:
    """Channels one below the other along the first axis, and weights that keep them apart: one model of them all."""
    channels, rows = array.shape[:2]
    stacked = array.reshape(channels * rows, *array.shape[2:])
    if channels == 1:
        return stacked, None
    first = np.ones((channels * rows - 1, *array.shape[2:]), np.uint8)
    first[rows - 1 :: rows] = 0
    return stacked, [first] + [1] * (stacked.ndim - 1)


def psnr(image: np.ndarray, truth: np.ndarray) -> float:
    """Peak signal to noise of 8-bit images, in dB; inf if they are the same."""
    error = np.mean((image.astype(np.float64) - truth) ** 2)
    return float(10 * np.log10(255**2 / error)) if error else np.inf
