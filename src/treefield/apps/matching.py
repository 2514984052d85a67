"""What it costs to match a pixel of the left image with one of the right.

A cost volume holds, at [row, column, label], the cost of disparity min_disparity + label: of matching that column of
the left image with column - disparity of the right one. Images are (M, N, C) with 255 steps of grey; costs are summed
over the channels and truncated. A match outside the image costs what the others do on average: it is neither likely nor
unlikely.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

COSTS = ("census", "birchfield-tomasi", "absolute", "squared")

_CENSUS_REACH = 2  # pixels: a window of 5 x 5
_TRUNCATION = {"birchfield-tomasi": 12.0, "absolute": 20.0, "squared": 400.0}  # per channel
_LARGEST_FACTOR = 1e30
_GREY = np.array([0.299, 0.587, 0.114])


def matching_costs(left: np.ndarray, right: np.ndarray, cost: str, disparities: range) -> np.ndarray:
    """The cost of every disparity at every pixel; of whole numbers where all are."""
    if cost == "census":
        here, there = census(left), census(right)
        most = float((2 * _CENSUS_REACH + 1) ** 2 - 1)
        return _volume(lambda a, b: np.bitwise_count(here[a] ^ there[b]), left.shape, disparities, most, np.uint8)
    most = _TRUNCATION[cost] * left.shape[2]
    if cost == "birchfield-tomasi":
        spans = half_sample_span(left), half_sample_span(right)

        def difference(a: tuple, b: tuple) -> np.ndarray:
            """Birchfield and Tomasi's: how far a value lies outside what the other image has around its match."""
            forth = beyond(left[a], *(end[b] for end in spans[1]))
            back = beyond(right[b], *(end[a] for end in spans[0]))
            return np.minimum(forth, back).sum(axis=-1)

    elif cost == "absolute":

        def difference(a: tuple, b: tuple) -> np.ndarray:
            return np.abs(left[a] - right[b]).sum(axis=-1)

    else:

        def difference(a: tuple, b: tuple) -> np.ndarray:
            return ((left[a] - right[b]) ** 2).sum(axis=-1)

    whole = cost != "birchfield-tomasi" and all(np.array_equal(image, np.round(image)) for image in (left, right))
    dtype = (np.uint8 if most < 2**8 else np.uint16) if whole else np.float32
    return _volume(difference, left.shape, disparities, most, dtype)


def _volume(
    difference: Callable[[tuple, tuple], np.ndarray],
    shape: tuple[int, ...],
    disparities: range,
    most: float,
    dtype: type,
) -> np.ndarray:
    """`difference(a, b)` of the parts of the two images that lie on each other, disparity by disparity, truncated; the
    mean of it where they do not."""
    rows, columns = shape[:2]
    volume: np.ndarray = np.empty((rows, columns, len(disparities)), dtype)
    outside, total, count = np.ones((columns, len(disparities)), bool), 0.0, 0
    for label, d in enumerate(disparities):
        first, last = max(d, 0), columns + min(d, 0)  # the columns whose match is inside
        if first < last:
            cost = np.minimum(difference(np.s_[:, first:last], np.s_[:, first - d : last - d]), most)
            volume[:, first:last, label] = cost
            outside[first:last, label] = False
            total, count = total + float(cost.sum(dtype=np.float64)), count + cost.size
    mean = total / max(1, count)
    volume[:, outside] = mean if dtype == np.float32 else round(mean)
    return volume


def census(image: np.ndarray) -> np.ndarray:
    """One bit per pixel of a window of 5 x 5: whether it is darker than the one in the middle. What is compared is then
    the pictures' structure, whatever their exposure."""
    grey = image @ _GREY if image.shape[2] == 3 else image.mean(axis=2)
    reach, (rows, columns) = _CENSUS_REACH, grey.shape
    padded = np.pad(grey, reach, mode="edge")
    bits = np.zeros(grey.shape, np.uint32)
    for i in range(2 * reach + 1):
        for j in range(2 * reach + 1):
            if (i, j) != (reach, reach):
                bits = 2 * bits + (padded[i : i + rows, j : j + columns] < grey)
    return bits


def half_sample_span(image: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The least and the greatest of each value and of those half-way to its neighbours on the row."""
    halves = (image[:, 1:] + image[:, :-1]) / 2
    low, high = image.copy(), image.copy()
    for part in (np.s_[:, 1:], np.s_[:, :-1]):
        low[part] = np.minimum(low[part], halves)
        high[part] = np.maximum(high[part], halves)
    return low, high


def beyond(value: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """How far values lie outside a span, 0 within."""
    return np.maximum(0, np.maximum(value - high, low - value))


def contrast_weights(image: np.ndarray, contrast: float, factor: float) -> list[np.ndarray]:
    """Weights for the edges of an image (M, N, C): `factor` where neighbours differ by less than `contrast` (root mean
    square over the channels), 1 elsewhere."""
    steps = [np.mean(np.diff(image, axis=axis) ** 2, axis=-1) for axis in (0, 1)]
    if factor > _LARGEST_FACTOR:
        raise ValueError(f"contrast_factor must be at most {_LARGEST_FACTOR:g}, got {factor:g}")
    return [np.where(step < contrast * contrast, factor, 1.0).astype(np.float32) for step in steps]
