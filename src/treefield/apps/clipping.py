"""Gaussian noise that was cut off at black and white: how far it moves means, and how to undo that."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_POINTS = 1024  # of the table, between black and white
_MIN_SHARE, _MIN_PIXELS = 0.002, 4  # of pixels that are black, or white, if noise was clipped there
_FAR = 20.0  # deviations beyond the image's values, where nothing is clipped


def clipping_limits(sample: np.ndarray, sigma: float, black: float, white: float) -> tuple[float, float] | None:
    """The values at which the noise of an image was clipped, which are its extremes; None if it was not.

    Where it was clipped on one side only, the limit of the other side is far off. `sample` is a part of the image.
    """
    least = max(_MIN_PIXELS, _MIN_SHARE * sample.size)
    is_low, is_high = np.count_nonzero(sample <= black) >= least, np.count_nonzero(sample >= white) >= least
    if not is_low and not is_high:
        return None
    return black - (0 if is_low else _FAR * sigma), white + (0 if is_high else _FAR * sigma)


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
