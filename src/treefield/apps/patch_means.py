"""Means over pixels with similar surroundings: the evidence that a noisy image holds about each of its pixels."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from treefield.validation import as_thread_count

_REACH = 6  # pixels to each side in which similar patches are sought
_WIDTH = 1.2  # of the weights, in sigma: how much patches may differ beyond their noise
_ROWS = 32  # of a band: its arrays stay in the cache, and bands run in threads


def patch_means(grey: np.ndarray, sigma: float, threads: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Average each pixel of an image (..., M, N) in grey levels with the pixels whose surroundings are similar.

    Returns
    -------
    means : float32 array of the image's shape
    counts : float32 array of the image's shape
        How many independent pixels a mean is worth, at least 1: (sum of weights)**2 / sum of squared weights.

    Examples
    --------
    >>> import numpy as np
    >>> from treefield.apps.patch_means import patch_means
    >>> means, counts = patch_means(np.random.default_rng(0).normal(100, 10, (40, 40)), 10)
    >>> bool(means.std() < 2), bool(counts.min() > 20)
    (True, True)
    """
    means = np.empty(grey.shape, np.float32)
    counts = np.empty(grey.shape, np.float32)
    with ThreadPoolExecutor(as_thread_count(threads), thread_name_prefix="treefield") as pool:
        for plane in np.ndindex(grey.shape[:-2]):
            padded = _padded(grey[plane])
            bands = range(0, grey.shape[-2], _ROWS)
            list(pool.map(lambda first: _average_band(padded, first, sigma, means[plane], counts[plane]), bands))  # noqa: B023
    return means, counts


def _padded(plane: np.ndarray) -> np.ndarray:
    """The plane with a border that mirrors it, repeatedly where it is smaller than the border."""
    from treefield.kernels.images.similar_patches import HALF

    return np.pad(plane.astype(np.float32), _REACH + HALF, mode="symmetric")


def _average_band(padded: np.ndarray, first: int, sigma: float, means: np.ndarray, counts: np.ndarray) -> None:
    from treefield.kernels.images.similar_patches import HALF, average_similar

    rows = slice(first, min(first + _ROWS, len(means)))
    shape = means[rows].shape
    squares = np.empty((shape[0] + 2 * HALF, shape[1] + 2 * HALF), np.float32)
    weights, squared_weights, band = np.empty((3, *shape), np.float32)
    variance, scale = np.float32(sigma**2), np.float32(1 / (_WIDTH * sigma) ** 2)
    average_similar(
        padded, first, _REACH, variance, scale, squares, np.empty_like(squares[0]), weights, squared_weights, band
    )
    means[rows] = band
    counts[rows] = weights * weights / squared_weights
