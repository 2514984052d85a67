"""The cost of matching a pixel of the left image with one of the right.

A cost volume holds, at [row, column, label], the cost of disparity min_disparity + label, that is of matching that
column of the left image with column - disparity of the right one. Images are (M, N, C) arrays in grey levels, 255 from
black to white; costs are summed over the channels and truncated. A match outside of the image has the mean cost of all
others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import numpy as np

from treefield.apps.blocks import over_blocks
from treefield.apps.keywords import MatchingCost
from treefield.validation import all_integral

COSTS = get_args(MatchingCost)

_CENSUS_RADIUS = 2  # pixels: a window of 5 x 5
_TRUNCATION = {"birchfield-tomasi": 12.0, "absolute": 20.0, "squared": 400.0}  # grey levels per channel
_MAX_FACTOR = 1e30
_LUMINANCE = np.array([0.299, 0.587, 0.114])
_BLOCK = 2**21  # bytes of costs that are written at a time

Box = tuple[slice, slice]
Difference = Callable[[Box, Box], np.ndarray]


def cost_dtype(left: np.ndarray, right: np.ndarray, cost: str) -> np.dtype:
    """The dtype of the costs: of integers if all costs are integers."""
    if cost == "census":
        return np.dtype(np.uint8)
    if cost == "birchfield-tomasi" or not (all_integral(left) and all_integral(right)):
        return np.dtype(np.float32)
    return np.dtype(np.uint8 if _TRUNCATION[cost] * left.shape[2] < 2**8 else np.uint16)


def matching_costs(
    left: np.ndarray, right: np.ndarray, cost: str, disparities: range, threads: int | None = None
) -> np.ndarray:
    """The cost of every disparity at every pixel, of the dtype `cost_dtype`."""
    difference = _census_difference(left, right) if cost == "census" else _value_difference(left, right, cost)
    return _volume(difference, left.shape, disparities, cost_dtype(left, right, cost), threads)


def _census_difference(left: np.ndarray, right: np.ndarray) -> Difference:
    """The number of different bits."""
    left_bits, right_bits = census(left), census(right)
    return lambda a, b: np.bitwise_count(left_bits[a] ^ right_bits[b])


def _value_difference(left: np.ndarray, right: np.ndarray, cost: str) -> Difference:
    """The truncated difference of values."""
    most = _TRUNCATION[cost] * left.shape[2]
    if cost == "birchfield-tomasi":
        ranges = half_sample_range(left), half_sample_range(right)

        def difference(a: Box, b: Box) -> np.ndarray:
            """Birchfield and Tomasi: how far a value is outside of the range around its match in the other image."""
            from_left = distance_to_range(left[a], *(end[b] for end in ranges[1]))
            from_right = distance_to_range(right[b], *(end[a] for end in ranges[0]))
            return np.minimum(from_left, from_right).sum(axis=-1)

    elif cost == "absolute":

        def difference(a: Box, b: Box) -> np.ndarray:
            return np.abs(left[a] - right[b]).sum(axis=-1)

    else:

        def difference(a: Box, b: Box) -> np.ndarray:
            return ((left[a] - right[b]) ** 2).sum(axis=-1)

    return lambda a, b: np.minimum(difference(a, b), most)


def _volume(
    difference: Difference, shape: tuple[int, ...], disparities: range, dtype: np.dtype, threads: int | None
) -> np.ndarray:
    """Costs `difference(a, b)` of the overlapping parts a and b of the images, for each disparity.

    Pixels without a match have the mean cost. Blocks of rows are filled in parallel; one fits into the cache, which
    matters because the costs of one disparity lie far apart.
    """
    rows, columns = shape[:2]
    volume: np.ndarray = np.empty((rows, columns, len(disparities)), dtype)
    overlaps = [(max(d, 0), columns + min(d, 0)) for d in disparities]  # columns whose match is inside of the image
    height = max(1, _BLOCK // (columns * len(disparities) * dtype.itemsize))

    def fill(block: slice) -> float:
        """Fill a block of rows; returns the sum of its costs."""
        total = 0.0
        for label, (d, (first, last)) in enumerate(zip(disparities, overlaps, strict=True)):
            if first < last:
                cost = difference((block, slice(first, last)), (block, slice(first - d, last - d)))
                volume[block, first:last, label] = cost
                total += float(cost.sum(dtype=np.uint32 if cost.dtype.kind == "u" else np.float64))
        return total

    total = sum(over_blocks(fill, rows, height, threads))
    count = rows * sum(max(0, last - first) for first, last in overlaps)
    mean = total / max(1, count)
    for label, (first, last) in enumerate(overlaps):
        for outside in (slice(0, first), slice(max(first, last), columns)):
            volume[:, outside, label] = mean if dtype.kind == "f" else round(mean)
    return volume


def census(image: np.ndarray) -> np.ndarray:
    """For each pixel, one bit per neighbour in a window of 5 x 5: whether the neighbour is darker.

    The bits describe the structure of the image and do not depend on exposure.
    """
    grey = image @ _LUMINANCE if image.shape[2] == 3 else image.mean(axis=2)
    radius, (rows, columns) = _CENSUS_RADIUS, grey.shape
    padded = np.pad(grey, radius, mode="edge")
    bits = np.zeros(grey.shape, np.uint32)
    for i in range(2 * radius + 1):
        for j in range(2 * radius + 1):
            if (i, j) != (radius, radius):
                bits = 2 * bits + (padded[i : i + rows, j : j + columns] < grey)
    return bits


def half_sample_range(image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The minimum and maximum of each value and the two values half-way to its neighbours on the row."""
    halves = (image[:, 1:] + image[:, :-1]) / 2
    low, high = image.copy(), image.copy()
    for part in (np.s_[:, 1:], np.s_[:, :-1]):
        low[part] = np.minimum(low[part], halves)
        high[part] = np.maximum(high[part], halves)
    return low, high


def distance_to_range(value: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The distance of values from a range, 0 inside of it."""
    return np.maximum(0, np.maximum(value - high, low - value))


def contrast_weights(image: np.ndarray, contrast: float, factor: float) -> list[np.ndarray]:
    """Edge weights for an image (M, N, C): `factor` where neighbours differ by less than `contrast`, else 1.

    The difference is the root mean square over the channels.
    """
    steps = [np.mean(np.diff(image, axis=axis) ** 2, axis=-1) for axis in (0, 1)]
    if factor > _MAX_FACTOR:
        raise ValueError(f"contrast_factor must be at most {_MAX_FACTOR:g}, got {factor:g}")
    return [np.where(step < contrast * contrast, factor, 1.0).astype(np.float32) for step in steps]
