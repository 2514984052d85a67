"""Gaussian noise that was cut off at black and white: how far it moves means, and how to undo that."""

from __future__ import annotations

from typing import NamedTuple

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
    return np.interp(means, clipped_moments(values, sigma, black, white).mean, values).astype(np.float32)


class Moments(NamedTuple):
    """Means and variances of some random variables."""

    mean: np.ndarray
    variance: np.ndarray


def clipped_moments(values: np.ndarray, sigma: float, black: float, white: float) -> Moments:
    """The moments of values to which noise of deviation sigma was added, and which were clipped then."""
    from scipy.special import ndtr

    low, high = (black - values) / sigma, (white - values) / sigma
    density_low, density_high = (np.exp(-limit * limit / 2) / np.sqrt(2 * np.pi) for limit in (low, high))
    is_black, is_white = ndtr(low), ndtr(-high)  # probabilities
    mean = density_low - density_high + low * is_black + high * is_white
    square = 1 - is_black - is_white + low * density_low - high * density_high
    square += low * low * is_black + high * high * is_white
    return Moments(values + sigma * mean, sigma**2 * (square - mean * mean))
