"""Estimates of the noise in an image, from which `denoise` derives its defaults."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from treefield.apps.clipping import clipped_moments

GREY_LEVELS = 256  # bins of the histograms below

# Gaussian noise is everywhere: the least variance of high frequencies in any window is its own
_HIGH_PASS = np.array([[1, -2, 1], [-2, 4, -2], [1, -2, 1]]) / 6  # of white noise, keeps the variance
_WINDOWS = ((9, 0.01, 0.691), (15, 0.03, 0.834))  # side, quantile, and the latter's deviation for white noise of 1
_MAX_CLIPPED = 0.1  # share of a window's pixels that are black or white
_MIN_WINDOWS = 0.05  # share of the windows that must have fewer; otherwise all count,
_CLIPPED_TO_SIGMA = 1.71  # and the noise of black and white pixels has lost half of its range
_MAX_ALL_CLIPPED = 0.9  # share of an image's pixels: noise moves half of the black or of the white ones
_MAX_HIGH = 2.0  # times the variance of a window, which noise spreads over all frequencies: more is a pattern
# Windows of 15 x 15 pixels that show nothing but noise: their variance, for white noise of 1, has this deviation
_WINDOW_DEVIATION = 0.178
_MIN_PURE = 0.25  # share of the windows within two deviations that makes their mean the better estimate
_PURE = 1.5  # deviations above the variance up to which windows count, and the mean that the rest of a normal
_PURE_MEAN = -0.139  # distribution has, in deviations
_MEDIAN_OF_ABSOLUTE = 0.6745  # of normal noise of 1
_REFINEMENTS, _TINY = 6, 1e-12
_FEW_CLIPPED, _MIN_FEW_CLIPPED = 0.15, 0.15  # share of a window's pixels, and of all windows that must have less
_MIN_SIGMA = 1.5  # grey levels: less is the image itself
_MIN_SIDE = 64  # pixels of an image that has windows without edges

# impulses: pixels that no neighbour resembles
_DEVIATION_TO_SIGMA = 1.4826 * 1.1  # for Gaussian noise, from the median deviation from the median of 3 x 3 pixels
_MIN_BETWEEN, _MAX_BETWEEN = 0.25, 0.6  # share of the pixels between black and white, if these alone count
_MIN_IMPULSE = 40.0  # grey levels beyond 3 sigma: further from the median than texture is
_SIMILAR = 20.0  # grey levels beyond 1 sigma: a neighbour within supports a pixel
SUPPORTING = 5.0  # grey levels beyond 1 sigma: a neighbour within may be of the same stroke
# Fewer are dots, stars and specks, and belong to the image: shares of one value and of all, and their number.
_MIN_OF_ONE_VALUE, _MIN_OF_ALL, _MIN_PIXELS = 0.002, 0.02, 10
_FEW_LEVELS = range(4, 17)  # of a picture in which dots one level away are no impulses
_REPEATS = 24  # rows and columns within which the pixels of a pattern, such as dots or a halftone, repeat
_MIN_APART = 3  # of them: closer ones share neighbours
_MAX_REPEATED, _MAX_BY_CHANCE = 0.15, 4  # share and number of impulses that have another one at the same distance
_MAX_SAMPLE = 2**20  # pixels
_MIN_SHARE, _MAX_SHARE = 1e-4, 0.5  # of pixels that are impulses
_UNIFORM_SHARE = 0.1  # of the impulses: may have any value
MIN_OUTLIER_COST = 0.5  # nats
_MIN_SUPPORT = 3  # similar neighbours: fewer may be impulses that touch


class Noise(NamedTuple):
    """The noise of an image.

    Attributes
    ----------
    sigma : float
        The standard deviation of Gaussian noise, in grey levels; 0 if there is none.
    impulses : (256,) array
        The share of pixels that are impulses (salt and pepper) of each grey level; all 0 if there are none.
    """

    sigma: float
    impulses: np.ndarray

    @property
    def has_impulses(self) -> bool:
        """Whether some pixels have nothing to do with the image."""
        return bool(self.impulses.any())

    @property
    def is_none(self) -> bool:
        """Whether there is no noise at all."""
        return self.sigma == 0 and not self.has_impulses

    def __str__(self) -> str:
        parts = [f"Gaussian noise of sigma {self.sigma:.3g} grey levels"] if self.sigma else []
        if self.has_impulses:
            parts.append(f"{self.impulses.sum():.1%} impulses")
        return " and ".join(parts) or "no noise"


def estimate_noise(grey: np.ndarray, hole: np.ndarray | None = None) -> Noise:
    """Estimate the Gaussian noise and the impulses of an image.

    Impulses are pixels far from the median around them that no neighbour resembles: black text on white paper has none.
    Many of them at one distance from each other are a pattern, and none. They are replaced by the median before the
    Gaussian noise is estimated, from the variance of high frequencies in the smoothest windows.

    Parameters
    ----------
    grey : (C, M, N) or (C, P, M, N) array
        The image in grey levels. Only the centre of a large image is used.
    hole : (M, N) or (P, M, N) boolean array, optional
        The pixels to ignore.
    """
    from scipy import ndimage

    centre = central_box(grey.shape[1:])
    part = np.ascontiguousarray(grey[:, *centre], np.float64)
    median = ndimage.median_filter(part, size=(1, *(3 for _ in centre)), mode="reflect")
    known = np.ones(part.shape, bool)
    if hole is not None:
        known &= ~ndimage.binary_dilation(hole[centre])
    if not known.any():
        return Noise(0.0, np.zeros(GREY_LEVELS))
    deviation = part - median
    distance = np.abs(deviation)
    # among black and white pixels, whose noise is clipped, there are none that show how strong it is
    between = known & (part > 0) & (part < GREY_LEVELS - 1)
    share = between.sum() / known.sum()
    typical = distance[between if _MIN_BETWEEN < share < _MAX_BETWEEN else known]
    rough = _DEVIATION_TO_SIGMA * float(np.median(typical))
    limit = _MIN_IMPULSE + 3 * rough
    suspects = known & (distance > limit) & ~_is_next_level(part, median)
    impulses = _impulse_shares(part, known * deviation, suspects, limit, _SIMILAR + rough) * part.size / known.sum()
    ends = impulses[nearest_level(np.array([part.min(), part.max()]))]  # other values may be those of few levels
    are_few = ends.max() < _MIN_OF_ONE_VALUE and impulses.sum() < _MIN_OF_ALL
    if are_few or impulses.sum() * known.sum() < _MIN_PIXELS:
        impulses = np.zeros(GREY_LEVELS)
    else:
        part = np.where(suspects, median, part)
    variances = [_gaussian_variance(channel, mask) for channel, mask in zip(part, known, strict=True)]
    sigma = math.sqrt(sum(variances) / len(variances))
    return Noise(sigma if sigma >= _MIN_SIGMA else 0.0, impulses)


def _is_next_level(grey: np.ndarray, median: np.ndarray) -> np.ndarray:
    """Which pixels differ by one level from the median in a picture of few levels, in which smooth shades are dots."""
    levels = np.unique(grey)
    if len(levels) not in _FEW_LEVELS:
        return np.zeros(grey.shape, bool)
    return np.abs(np.searchsorted(levels, grey) - np.searchsorted(levels, median)) <= 1


def _impulse_shares(
    grey: np.ndarray, deviation: np.ndarray, suspects: np.ndarray, limit: float, similar: float
) -> np.ndarray:
    """The share of pixels that are impulses of each grey level, from the suspects that no neighbour resembles.

    Suspects deviate from the median by more than `limit`. A neighbour that deviates to the same side by half of that is
    part of the same stroke, even where its grey level differs. Where a share p of the pixels are bright impulses,
    (1 - p)**8 of these have no bright neighbour.
    """
    shares, masks = np.zeros(GREY_LEVELS), []
    is_unlike = count_similar(grey, similar) == 0
    for sign in (-1, 1):
        of_sign = suspects & (sign * deviation > 0)
        strokes = np.where(sign * deviation > limit / 2, 0.0, np.nan)
        alone = of_sign & is_unlike & (count_similar(strokes, 0.0) == 0)
        lonely, seen = (
            np.bincount(nearest_level(grey[k]), minlength=GREY_LEVELS) / grey.size for k in (alone, of_sign)
        )
        share = 0.0
        for _ in range(20):
            factor = 1 / (1 - min(share, 0.3)) ** 8
            share = lonely.sum() * factor
        shares += np.minimum(np.minimum(lonely * factor, 0.3), seen)
        masks.append(alone)
    return np.zeros(GREY_LEVELS) if _is_pattern(masks) else shares


def _is_pattern(masks: Sequence[np.ndarray]) -> bool:
    """Whether many pixels of some masks have another one of their mask at the same distance.

    Impulses are independent of each other: at every distance, at most a share of p * (1 - p)**8 <= 0.04 of them have
    another one that stands alone as well.
    """
    from scipy import fft

    shape = masks[0].shape[-2:]
    reach = [min(_REPEATS, n - 1) for n in shape]
    size = [fft.next_fast_len(n + k, real=True) for n, k in zip(shape, reach, strict=True)]
    pairs = np.zeros(size)
    for plane in np.concatenate(masks).reshape(-1, *shape):
        spectrum = fft.rfft2(plane.astype(np.float64), size)
        pairs += fft.irfft2(spectrum * spectrum.conj(), size)
    down, across = np.ix_(*(np.arange(-k, k + 1) for k in reach))
    near = np.where(np.maximum(abs(down), abs(across)) < _MIN_APART, 0, pairs[down, across])
    count = sum(np.count_nonzero(mask) for mask in masks)
    return bool(near.max() > _MAX_REPEATED * count + _MAX_BY_CHANCE)


def count_similar(grey: np.ndarray, similar: float) -> np.ndarray:
    """How many of the eight neighbours of each pixel, in its plane, differ from it by at most `similar`: int8."""
    return _count_neighbours(grey, np.ones(grey.shape, bool), similar)


def count_support(grey: np.ndarray, similar: float) -> np.ndarray:
    """The same, of neighbours that have at least three similar ones themselves: impulses that touch have few."""
    return _count_neighbours(grey, count_similar(grey, similar) >= _MIN_SUPPORT, similar)


def _count_neighbours(grey: np.ndarray, counted: np.ndarray, similar: float) -> np.ndarray:
    """How many neighbours of each pixel are counted and similar to it."""
    sides = [(0, 0)] * (grey.ndim - 2) + [(1, 1), (1, 1)]
    padded = np.pad(np.where(counted, grey, np.inf), sides, constant_values=np.inf)
    rows, columns = grey.shape[-2:]
    count = np.zeros(grey.shape, np.int8)
    for down in range(3):
        for across in range(3):
            if (down, across) != (1, 1):
                count += np.abs(padded[..., down : down + rows, across : across + columns] - grey) <= similar
    return count


def _gaussian_variance(grey: np.ndarray, known: np.ndarray) -> float:
    """The variance of the Gaussian noise of one channel.

    Texture that fills the image looks like noise, but its strength varies: what the estimates of two window sizes
    differ by is taken off.
    """
    from scipy import ndimage

    planes = grey.reshape(-1, *grey.shape[-2:])
    high = np.stack([ndimage.convolve(plane, _HIGH_PASS, mode="reflect") for plane in planes]).reshape(grey.shape)
    clipped = ((grey <= 0) | (grey >= GREY_LEVELS - 1)).astype(np.float64)
    estimates = []
    for side, quantile, deviation in _WINDOWS:
        size = (*(1 for _ in grey.shape[:-2]), side, side)
        variance = ndimage.uniform_filter(high * high, size, mode="reflect")
        means = ndimage.uniform_filter(grey, size, mode="reflect")
        whole = ndimage.uniform_filter(grey * grey, size, mode="reflect") - means * means
        irregular = known & (variance <= _MAX_HIGH * whole + 1)
        usable = irregular & (ndimage.uniform_filter(clipped, size, mode="reflect") < _MAX_CLIPPED)
        factor = 1 / deviation
        is_clipped = bool(usable.sum() < _MIN_WINDOWS * irregular.sum())
        if is_clipped:
            usable, factor = irregular, _CLIPPED_TO_SIGMA / deviation
        if not usable.any() or (is_clipped and clipped[known].mean() > _MAX_ALL_CLIPPED):
            return 0.0
        estimates.append(max(0.0, float(np.quantile(variance[usable], quantile))) * factor**2)
    small, large = estimates
    if is_clipped or min(grey.shape[-2:]) < _MIN_SIDE:  # large windows would contain edges
        return small
    estimate = max(0.0, small - max(0.0, large - small))
    counted = known & (ndimage.uniform_filter(clipped, size, mode="reflect") < _FEW_CLIPPED)
    if counted.mean() < _MIN_FEW_CLIPPED:
        return estimate
    return _refined_variance(estimate, variance[counted], means[counted], np.abs(high[counted]))


def _refined_variance(estimate: float, variances: np.ndarray, means: np.ndarray, high: np.ndarray) -> float:
    """The variance in the windows that show nothing but noise, if they are many; otherwise the estimate.

    The estimate comes from few windows, so that it varies from one part of an image to another; that of many does not.
    It is computed from the share of high frequencies below about their median: edges are among the others. Noise that
    was clipped at black and white counts as if it were not. `variances` and `means` are those of the windows, and
    `high` the absolute high frequencies in their centres.
    """
    from scipy.special import ndtri

    deviation, refined = _WINDOW_DEVIATION, estimate
    for number in range(_REFINEMENTS):
        kept = _kept_share(means, refined)
        excess = variances / kept / max(refined, _TINY) - 1
        if number == 0 and np.mean(np.abs(excess) < 2 * deviation) < _MIN_PURE:
            break
        is_pure = excess < _PURE * deviation
        # high frequencies of integers are multiples of 1/6: no value is at the limit itself
        limit = (math.floor(6 * _MEDIAN_OF_ABSOLUTE * math.sqrt(refined)) + 0.5) / 6
        share = np.mean(high[is_pure] < limit * np.sqrt(kept[is_pure])) if is_pure.any() else 0.0
        if not 0 < share < 1:
            break
        refined = float(limit / ndtri((1 + share) / 2)) ** 2 / (1 + _PURE_MEAN * deviation)
    return refined


def _kept_share(means: np.ndarray, variance: float) -> np.ndarray:
    """The share of the noise's variance that clipping leaves where the mean is this."""
    sigma, levels = max(1.0, math.sqrt(variance)), np.arange(float(GREY_LEVELS))
    moments = clipped_moments(levels, sigma, 0.0, levels[-1])
    return np.interp(means, moments.mean, moments.variance) / sigma**2


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
    return np.maximum(MIN_OUTLIER_COST, np.log((1 - share) / (np.sqrt(2 * np.pi) * sigma * probability)))


def support_costs(impulses: np.ndarray) -> np.ndarray:
    """The nats that supporting neighbours add to the cost of an outlier: [grey level][their number, 0 to 8].

    If the pixel is an impulse, each neighbour is one of the same value with the probability of such an impulse; if it
    belongs to the image, every number of similar neighbours is as likely. Up to three count as none.
    """
    numbers = np.arange(9)
    share = np.clip(impulses, _MIN_SHARE, _MAX_SHARE)[:, None]
    ways = np.array([math.comb(8, number) for number in numbers])
    nats = np.maximum(0.0, -np.log(9 * ways * share**numbers * (1 - share) ** (8 - numbers)))
    return np.where(numbers <= _MIN_SUPPORT, 0.0, nats)
