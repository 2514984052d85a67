"""Gaussian noise that was cut off at black and white: how far it moves means, and how to undo that."""

from __future__ import annotations

import numpy as np

_POINTS = 1024  # of the table, between black and white


def undo_clipping(means: np.ndarray, sigma: float, black: float, white: float) -> np.ndarray:
    """The values whose means would be these, if noise of deviation sigma were added and the sums clipped.

    Noise around black can only add: its mean after clipping is 0.4 sigma. Means outside of those possible become black
    or white.

    Parameters
    ----------
    means : float32 array
    sigma, black, white : float
        In the units of the means.

    Examples
    --------
    >>> import numpy as np
    >>> from treefield.apps.clipping import undo_clipping
    >>> noisy = np.random.default_rng(0).normal(20.0, 20, 10_000).clip(0, 255)
    >>> mean = noisy.mean(dtype=np.float32, keepdims=True)
    >>> float(mean.round()[0]), float(undo_clipping(mean, 20, 0, 255).round()[0])
    (22.0, 20.0)
    """
    values = np.linspace(black, white, _POINTS)
    return np.interp(means, clipped_means(values, sigma, black, white), values).astype(np.float32)


def clipped_means(values: np.ndarray, sigma: float, black: float, white: float) -> np.ndarray:
    """The means of values to which noise of deviation sigma was added, and which were clipped then."""
    above_black, above_white = (_mean_positive_part((values - limit) / sigma) for limit in (black, white))
    return black + sigma * (above_black - above_white)


def _mean_positive_part(means: np.ndarray) -> np.ndarray:
    """The mean of max(0, z), z being normal with deviation 1."""
    from scipy.special import ndtr

    return means * ndtr(means) + np.exp(-means * means / 2) / np.sqrt(2 * np.pi)
