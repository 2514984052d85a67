"""After matching: pixels that only one image of a stereo pair shows, and disparities between integers."""

from __future__ import annotations

import numpy as np

_WINDOW = 7  # pixels
_FINITE = 1e9  # replaces forbidden (infinite) costs in sums


def consistent_pixels(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Where the disparities of the left image agree, within 1, with those of the right at the matching pixel.

    Elsewhere the pixel is hidden in the other image, or its disparity is wrong.
    """
    rows, columns = np.indices(left.shape)
    match = columns - left
    inside = (match >= 0) & (match < left.shape[1])
    return inside & (np.abs(right[rows, np.where(inside, match, 0)] - left) <= 1)


def fill_background(disparity: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Replace unknown disparities by the smaller one of the nearest known ones to the left and right on their row.

    The smaller one, because hidden pixels belong to the background. A row without known disparities does not change.
    """
    columns = np.broadcast_to(np.arange(disparity.shape[1]), disparity.shape)
    before = np.maximum.accumulate(np.where(known, columns, -1), axis=1)
    after = np.minimum.accumulate(np.where(known, columns, disparity.shape[1])[:, ::-1], axis=1)[:, ::-1]
    rows = np.arange(len(disparity))[:, None]
    highest = np.iinfo(disparity.dtype).max if disparity.dtype.kind == "i" else np.inf
    from_left = np.where(before >= 0, disparity[rows, np.maximum(before, 0)], highest)
    from_right = np.where(
        after < disparity.shape[1], disparity[rows, np.minimum(after, disparity.shape[1] - 1)], highest
    )
    filled = np.where(known, disparity, np.minimum(from_left, from_right))
    return np.where(known.any(axis=1, keepdims=True), filled, disparity).astype(disparity.dtype)


def refine_labels(x: np.ndarray, volume: np.ndarray) -> np.ndarray:
    """Shift labels by up to a half, as float32, to the lowest point of a V through their cost and their neighbours'.

    The costs are summed over a window in which all labels are shifted alike. A label stays where it is if one of its
    neighbours costs less.
    """
    from scipy import ndimage

    labels = volume.shape[-1]
    if labels < 3:
        return x.astype(np.float32)
    middle = np.clip(x, 1, labels - 2)[..., None]
    planes = (np.take_along_axis(volume, middle + step, axis=-1)[..., 0].astype(np.float64) for step in (-1, 0, 1))
    before, at, after = (ndimage.uniform_filter(np.minimum(plane, _FINITE), _WINDOW) for plane in planes)
    steeper = np.maximum(before, after) - at
    is_valley = (x > 0) & (x < labels - 1) & (before >= at) & (after >= at) & (steeper > 0)
    shift = np.where(is_valley, (before - after) / (2 * np.where(is_valley, steeper, 1)), 0)
    return (x + shift).astype(np.float32)
