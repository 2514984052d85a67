"""Means over pixels with similar surroundings: the evidence that a noisy image holds about each of its pixels."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from treefield.validation import as_thread_count

_REACH = 6  # pixels to each side in which similar patches are sought
_HALF = 2  # pixels to each side of the centre of a patch, as in the kernel
BORDER = _REACH + _HALF  # pixels around an image, in its last two axes, that its means depend on
_WIDTH = 1.2  # of the weights, in sigma: how much patches may differ beyond their noise
BAND = 32  # rows: the arrays of a band stay in the cache, and bands run in threads


def patch_means(
    padded: np.ndarray, sigma: float, mirrored: Sequence[tuple[int, int]] = ((0, 0), (0, 0)), threads: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Average each pixel of an image in grey levels with the pixels whose surroundings are similar.

    Parameters
    ----------
    padded : (..., M + 16, N + 16) float32 array
        The image with BORDER pixels around it.
    sigma : float
        The standard deviation of its noise.
    mirrored : two pairs of int
        How many rows at the top and the bottom, and columns at the left and the right, mirror the image beyond its
        borders: they are compared as parts of patches, but not averaged, since their noise is that of other pixels.
    threads : int, optional
        By default all cores; the means do not depend on it.

    Returns
    -------
    means : (..., M, N) float32 array
    counts : (..., M, N) float32 array
        How many independent pixels a mean is worth, at least 1: (sum of weights)**2 / sum of squared weights.

    Examples
    --------
    >>> import numpy as np
    >>> from treefield.apps.patch_means import BORDER, patch_means
    >>> image = np.random.default_rng(0).normal(100, 10, (40, 40)).astype(np.float32)
    >>> padded = np.pad(image, BORDER, mode="symmetric")
    >>> means, counts = patch_means(padded, 10, [(BORDER, BORDER)] * 2)
    >>> bool(means.std() < 2), bool(counts.min() > 20)
    (True, True)
    """
    rows, columns = (n - 2 * BORDER for n in padded.shape[-2:])
    inside = [k for n, (low, high) in zip(padded.shape[-2:], mirrored, strict=True) for k in (low, n - high)]
    means, counts = np.empty((2, *padded.shape[:-2], rows, columns), np.float32)
    with ThreadPoolExecutor(as_thread_count(threads), thread_name_prefix="treefield") as pool:
        for plane in np.ndindex(padded.shape[:-2]):
            outputs = means[plane], counts[plane]
            bands = range(0, rows, BAND)
            list(pool.map(lambda first: _average_band(padded[plane], inside, first, sigma, *outputs), bands))  # noqa: B023
    return means, counts


def _average_band(
    padded: np.ndarray, inside: Sequence[int], first: int, sigma: float, means: np.ndarray, counts: np.ndarray
) -> None:
    from treefield.kernels.images.similar_patches import average_similar

    rows = slice(first, min(first + BAND, len(means)))
    shape = means[rows].shape
    squares = np.empty((shape[0] + 2 * _HALF, shape[1] + 2 * _HALF), np.float32)
    weights, squared_weights, band = np.empty((3, *shape), np.float32)
    variance, scale = np.float32(sigma**2), np.float32(1 / (_WIDTH * sigma) ** 2)
    workspace = squares, np.empty_like(squares[0])
    average_similar(padded, tuple(inside), first, _REACH, variance, scale, *workspace, weights, squared_weights, band)
    means[rows] = band
    counts[rows] = weights * weights / squared_weights
