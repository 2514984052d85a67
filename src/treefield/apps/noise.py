"""How much noise an image has: what the defaults of `denoise` are made from."""

from __future__ import annotations

import numpy as np

STEPS = 256  # of grey: values are counted by the nearest

_MEDIAN_TO_SIGMA = 1.4826 * 1.1  # of Gaussian noise, for its deviation from the median of 3 x 3
_LEAST_SIGMA = 3.0  # steps of grey: less is texture
_IMPULSE = 40.0  # steps of grey beyond 3 sigma: more than texture deviates from its median
_ENOUGH = 2**20  # pixels are looked at
_FEWEST, _MOST = 1e-4, 0.5  # shares of pixels that may be impulses
_ANYWHERE = 0.1  # of the impulses may have any value, whatever the others have
_LEAST_COST = 0.5  # nats


def estimate_noise(grey: np.ndarray, hole: np.ndarray | None = None) -> tuple[float, np.ndarray]:
    """The standard deviation of an image's noise, and the share of pixels that are impulses (something else altogether)
    of each of 256 values: both from how far pixels lie from the median around them.

    `grey` is in steps of grey, channels first; of a large image its middle is looked at, and nothing in the hole.
    """
    from scipy import ndimage

    middle = middle_of(grey.shape[1:])
    part = grey[:, *middle]
    deviation = np.abs(part - ndimage.median_filter(part, size=(1, *(3 for _ in middle)), mode="reflect"))
    if hole is not None:
        known = ~ndimage.binary_dilation(hole[middle])
        deviation, part = deviation[:, known], part[:, known]
    if not part.size:
        return _LEAST_SIGMA, np.zeros(STEPS)
    sigma = max(_MEDIAN_TO_SIGMA * float(np.median(deviation)), _LEAST_SIGMA)
    impulses = part[deviation > _IMPULSE + 3 * sigma]
    return sigma, np.bincount(nearest_step(impulses), minlength=STEPS) / part.size


def middle_of(shape: tuple[int, ...]) -> tuple[slice, ...]:
    """The box of an image that is looked at."""
    most = round(_ENOUGH ** (1 / len(shape)))
    return tuple(slice(max(0, (n - most) // 2), min(n, (n + most) // 2 + 1)) for n in shape)


def nearest_step(grey: np.ndarray) -> np.ndarray:
    """Values in steps of grey as numbers from 0 to 255."""
    return np.clip(np.round(grey), 0, STEPS - 1).astype(np.intp)


def outlier_costs(sigma: float, impulses: np.ndarray) -> np.ndarray:
    """From where on, in nats, a pixel of each of 256 values is sooner an impulse than noise around its true value."""
    share = min(max(float(impulses.sum()), _FEWEST), _MOST)
    likely = (1 - _ANYWHERE) * impulses + _ANYWHERE * share / STEPS
    likely = np.maximum(likely, _FEWEST / STEPS)
    return np.maximum(_LEAST_COST, np.log((1 - share) / (np.sqrt(2 * np.pi) * sigma * likely)))
