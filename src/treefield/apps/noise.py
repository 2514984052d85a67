"""Estimates of the noise in an image, from which `denoise` derives its defaults."""

from __future__ import annotations

import numpy as np

GREY_LEVELS = 256  # bins of the histograms below

_DEVIATION_TO_SIGMA = 1.4826 * 1.1  # for Gaussian noise, from the median deviation from the median of 3 x 3 pixels
_MIN_SIGMA = 3.0  # grey levels: less is texture
_MIN_IMPULSE = 40.0  # grey levels beyond 3 sigma: further from the median than texture is
_MAX_SAMPLE = 2**20  # pixels
_MIN_SHARE, _MAX_SHARE = 1e-4, 0.5  # of pixels that are impulses
_UNIFORM_SHARE = 0.1  # of the impulses: may have any value
_MIN_OUTLIER_COST = 0.5  # nats


def estimate_noise(grey: np.ndarray, hole: np.ndarray | None = None) -> tuple[float, np.ndarray]:
    """Estimate the standard deviation of an image's noise, and the share of pixels that are impulses of each value.

    An impulse is a pixel that has nothing to do with the image, such as salt and pepper. Both estimates come from the
    deviations of the pixels from the median around them.

    Parameters
    ----------
    grey : (C, M, N) or (C, P, M, N) array
        The image in grey levels. Only the centre of a large image is used.
    hole : (M, N) or (P, M, N) boolean array, optional
        The pixels to ignore.

    Returns
    -------
    sigma : float
        In grey levels.
    impulses : (256,) array
        The share of pixels that are impulses of each grey level.
    """
    from scipy import ndimage

    centre = central_box(grey.shape[1:])
    part = grey[:, *centre]
    deviation = np.abs(part - ndimage.median_filter(part, size=(1, *(3 for _ in centre)), mode="reflect"))
    if hole is not None:
        known = ~ndimage.binary_dilation(hole[centre])
        deviation, part = deviation[:, known], part[:, known]
    if not part.size:
        return _MIN_SIGMA, np.zeros(GREY_LEVELS)
    sigma = max(_DEVIATION_TO_SIGMA * float(np.median(deviation)), _MIN_SIGMA)
    impulses = part[deviation > _MIN_IMPULSE + 3 * sigma]
    return sigma, np.bincount(nearest_level(impulses), minlength=GREY_LEVELS) / part.size


def central_box(shape: tuple[int, ...]) -> tuple[slice, ...]:
    """The box at the centre of an image whose noise is estimated."""
    side = round(_MAX_SAMPLE ** (1 / len(shape)))
    return tuple(slice(max(0, (n - side) // 2), min(n, (n + side) // 2 + 1)) for n in shape)


def nearest_level(grey: np.ndarray) -> np.ndarray:
    """Round values in grey levels to integers from 0 to 255."""
    return np.clip(np.round(grey), 0, GREY_LEVELS - 1).astype(np.intp)


def outlier_costs(sigma: float, impulses: np.ndarray) -> np.ndarray:
    """The cost in nats from which on a pixel of each grey level is more likely an impulse than Gaussian noise."""
    share = min(max(float(impulses.sum()), _MIN_SHARE), _MAX_SHARE)
    probability = (1 - _UNIFORM_SHARE) * impulses + _UNIFORM_SHARE * share / GREY_LEVELS
    probability = np.maximum(probability, _MIN_SHARE / GREY_LEVELS)
    return np.maximum(_MIN_OUTLIER_COST, np.log((1 - share) / (np.sqrt(2 * np.pi) * sigma * probability)))
