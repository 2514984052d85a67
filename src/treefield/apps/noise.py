"""How much noise an image has: what the defaults of `denoise` are made from."""

from __future__ import annotations

import math

import numpy as np

_MEDIAN_TO_SIGMA = 1.4826 * 1.1  # of Gaussian noise, for its deviation from the median of 3 x 3
_LEAST_SIGMA = 3.0  # steps of grey: less is texture
_IMPULSE = 40.0  # steps of grey beyond 3 sigma: more than texture deviates from its median
_ENOUGH = 2**20  # pixels are looked at
_MOST_IMPULSES, _LEAST_IMPULSES = 0.5, 1e-4


def estimate_noise(grey: np.ndarray, hole: np.ndarray | None = None) -> tuple[float, float]:
    """The standard deviation of an image's noise, and the share of pixels that are something else altogether, both from
    how far pixels lie from the median around them. `grey` is in steps of 1/255 of the range, channels first; of a large
    image its middle is looked at, and nothing in the hole."""
    from scipy import ndimage

    most = round(_ENOUGH ** (1 / (grey.ndim - 1)))
    middle = tuple(slice(max(0, (n - most) // 2), (n + most) // 2 + 1) for n in grey.shape[1:])
    part = grey[:, *middle]
    deviation = np.abs(part - ndimage.median_filter(part, size=(1, *(3 for _ in middle)), mode="reflect"))
    if hole is not None:
        known = ~ndimage.binary_dilation(hole[middle])
        deviation = deviation[:, known] if known.any() else np.zeros(1)
    sigma = max(_MEDIAN_TO_SIGMA * float(np.median(deviation)), _LEAST_SIGMA)
    return sigma, float(np.mean(deviation > _IMPULSE + 3 * sigma))


def outlier_cost(sigma: float, impulses: float) -> float:
    """From where on, in nats, a pixel is sooner something else altogether, any of 256 values, than noise around its
    true value."""
    share = min(max(impulses, _LEAST_IMPULSES), _MOST_IMPULSES)
    return max(1.0, math.log((1 - share) / share * 256 / (math.sqrt(2 * math.pi) * sigma)))
