"""The obvious slow versions of the applications: loops over pixels, straight from their docstrings.

As in `naive`, nothing here imports treefield. Images of a stereo pair are (M, N, C) arrays in grey levels.
"""

import math
from statistics import NormalDist

import numpy as np

import naive

TRUNCATION = {"birchfield-tomasi": 12, "absolute": 20, "squared": 400}  # per channel
CENSUS_BITS = 24
WINDOW = 7

# --- restored images ------------------------------------------------------------------------------------------------


def data_cost(difference, data, tau):
    """The cost of a pixel that differs by `difference` from the observed value."""
    return min(difference**2 if data == "squared" else difference, tau)


def smoothness_cost(difference, smoothness, weight, cutoff):
    """The cost of neighbours that differ by `difference`."""
    if smoothness == "potts":
        return weight * (difference != 0)
    return weight * (min(difference, cutoff) if smoothness == "linear" else min(difference**2, cutoff**2))


def restoration_energy(seen, restored, *, data, tau, smoothness, weight, cutoff, hole=None):
    """The energy of a restored grey image, in whose hole nothing was observed, in the image's own units."""
    costs = []
    for i in np.ndindex(*seen.shape):
        here = float(restored[i])
        if hole is None or not hole[i]:
            costs.append(data_cost(abs(here - float(seen[i])), data, tau))
        for j in naive.neighbours(seen.shape, i):
            if i < j:
                costs.append(smoothness_cost(abs(here - float(restored[j])), smoothness, weight, cutoff))
    return math.fsum(costs)


def filling_energy(image, filled, *, hole, smoothness, weight, cutoff):
    """The part of the energy of a filled grey image that depends on its hole: all edges that have an end there."""
    costs = []
    for i in np.ndindex(*image.shape):
        for j in naive.neighbours(image.shape, i):
            if i < j and (hole[i] or hole[j]):
                difference = abs(float(filled[i]) - float(filled[j]))
                costs.append(smoothness_cost(difference, smoothness, weight, cutoff))
    return math.fsum(costs)


def away_from_mean(image, hole):
    """How far the pixels of a grey image's hole are from the mean of their neighbours, at most."""
    away = [0.0]
    for i in np.argwhere(hole):
        around = [image[j] for j in naive.neighbours(image.shape, tuple(i))]
        away.append(abs(image[tuple(i)] - sum(around) / len(around)))
    return max(away)


# --- matching -------------------------------------------------------------------------------------------------------


def cost_volume(left, right, cost, disparities, whole):
    """[row, column, label]: the cost of matching a column of the left image with column - disparity of the right,
    outside it the mean cost, rounded if all are to be whole."""
    rows, columns, channels = left.shape
    most = CENSUS_BITS if cost == "census" else TRUNCATION[cost] * channels
    volume = np.full((rows, columns, len(disparities)), np.nan)
    for i, j in np.ndindex(rows, columns):
        for label, d in enumerate(disparities):
            if 0 <= j - d < columns:
                volume[i, j, label] = min(most, _MATCH[cost](left, right, i, j, j - d))
    inside = volume[~np.isnan(volume)].tolist()
    mean = sum(inside) / len(inside)
    return np.where(np.isnan(volume), round(mean) if whole else mean, volume)


def _census(left, right, i, j, k):
    here, there = census_bits(grey(left), i, j), census_bits(grey(right), i, k)
    return sum(a != b for a, b in zip(here, there, strict=True))


def grey(image):
    """The luminance of three colours, the mean of any other number of channels."""
    shares = (0.299, 0.587, 0.114) if image.shape[2] == 3 else [1 / image.shape[2]] * image.shape[2]
    return sum(share * image[..., channel].astype(np.float64) for channel, share in enumerate(shares))


def census_bits(image, i, j):
    """Which of the 24 pixels around one are darker than it; beyond the border, the border goes on."""
    rows, columns = image.shape
    around = [(i + a, j + b) for a in range(-2, 3) for b in range(-2, 3) if (a, b) != (0, 0)]
    return [image[min(max(a, 0), rows - 1), min(max(b, 0), columns - 1)] < image[i, j] for a, b in around]


def _birchfield_tomasi(left, right, i, j, k):
    total = 0.0
    for channel in range(left.shape[2]):
        here, there = half_samples(left[i, :, channel], j), half_samples(right[i, :, channel], k)
        total += min(_outside(here[0], there), _outside(there[0], here))
    return total


def half_samples(row, j):
    """A value, and those half-way to its neighbours on the row."""
    return [float(row[j])] + [(float(row[j]) + float(row[k])) / 2 for k in (j - 1, j + 1) if 0 <= k < len(row)]


def _outside(value, values):
    return max(0.0, value - max(values), min(values) - value)


def _absolute(left, right, i, j, k):
    return sum(abs(float(a) - float(b)) for a, b in zip(left[i, j], right[i, k], strict=True))


def _squared(left, right, i, j, k):
    return sum((float(a) - float(b)) ** 2 for a, b in zip(left[i, j], right[i, k], strict=True))


_MATCH = {"census": _census, "birchfield-tomasi": _birchfield_tomasi, "absolute": _absolute, "squared": _squared}


def contrast_weight(a, b, contrast, factor):
    """Of the edge between pixels of these colours."""
    squares = [(float(x) - float(y)) ** 2 for x, y in zip(a, b, strict=True)]
    return factor if sum(squares) / len(squares) < contrast**2 else 1.0


# --- after matching -------------------------------------------------------------------------------------------------


def consistent_pixels(left, right):
    """Where a pixel's match in the other image has the same disparity, or one that differs by 1."""
    known = np.zeros(left.shape, bool)
    for i, j in np.ndindex(*left.shape):
        match = j - left[i, j]
        known[i, j] = 0 <= match < left.shape[1] and abs(right[i, match] - left[i, j]) <= 1
    return known


def fill_background(disparity, known):
    """Unknown disparities from the nearest known ones of their row: the smaller of at most two."""
    filled = disparity.copy()
    for i, j in np.argwhere(~known):
        before = [k for k in range(j) if known[i, k]][-1:]
        after = [k for k in range(j + 1, disparity.shape[1]) if known[i, k]][:1]
        if before or after:
            filled[i, j] = min(disparity[i, k] for k in before + after)
    return filled


def refine_labels(x, volume):
    """Labels moved to the lowest point of a V through their own cost and those of their neighbours, each summed over a
    window in which every label is moved alike; beyond the border, pixels are mirrored."""
    labels = volume.shape[-1]
    refined = x.astype(np.float64)
    if labels < 3:
        return refined
    for i, j in np.ndindex(*x.shape):
        before, at, after = (_window_cost(x, volume, i, j, step) for step in (-1, 0, 1))
        if 0 < x[i, j] < labels - 1 and before >= at and after >= at and max(before, after) > at:
            refined[i, j] += (before - after) / (2 * (max(before, after) - at))
    return refined


def _window_cost(x, volume, i, j, step):
    reach, total = WINDOW // 2, []
    for a in range(i - reach, i + reach + 1):
        for b in range(j - reach, j + reach + 1):
            site = _mirrored(a, x.shape[0]), _mirrored(b, x.shape[1])
            label = min(max(x[site], 1), volume.shape[-1] - 2) + step
            total.append(float(volume[site][label]))
    return math.fsum(total) / len(total)


def _mirrored(k, n):
    """The pixel that stands for position k of a row of n: d c b a | a b c d | d c b a."""
    k %= 2 * n
    return k if k < n else 2 * n - 1 - k


# --- spins ----------------------------------------------------------------------------------------------------------


def ising_energy(spins, fields, couplings):
    """The sum of h s over the sites and of J s s over neighbours; couplings are one array per axis."""
    costs = [float(fields[i]) * int(spins[i]) for i in np.ndindex(*spins.shape)]
    for axis, coupling in enumerate(couplings):
        for i in np.ndindex(*coupling.shape):
            j = (*i[:axis], i[axis] + 1, *i[axis + 1 :])
            costs.append(float(coupling[i]) * int(spins[i]) * int(spins[j]))
    return math.fsum(costs)


def least_ising_energy(fields, couplings):
    """Over all spins."""
    sites = fields.size
    every = ((number >> np.arange(sites)) & 1 for number in range(2**sites))
    return min(ising_energy((2 * bits - 1).reshape(fields.shape), fields, couplings) for bits in every)


def psnr(image, clean):
    """Peak signal-to-noise ratio of an image of 0 to 255, in decibels."""
    return 10 * np.log10(255**2 / np.mean((image.astype(float) - clean) ** 2))


def patch_means(grey, sigma, reach=6, half=2, width=1.2):
    """Mean and effective number of the pixels with similar patches, pixel by pixel."""
    padded = np.pad(grey, reach + half, mode="symmetric")
    means, counts = np.empty(grey.shape), np.empty(grey.shape)
    for y, x in np.ndindex(grey.shape):
        weights, values = [], []
        own = padded[y + reach : y + reach + 2 * half + 1, x + reach : x + reach + 2 * half + 1]
        for down in range(2 * reach + 1):
            for across in range(2 * reach + 1):
                if not (0 <= y + down - reach < grey.shape[0] and 0 <= x + across - reach < grey.shape[1]):
                    continue
                other = padded[y + down : y + down + 2 * half + 1, x + across : x + across + 2 * half + 1]
                t = max(np.mean((own - other) ** 2) - 2 * sigma**2, 0) / (width * sigma) ** 2
                weights.append(1.0 if down == across == reach else max(1 - t, 0) ** 2)
                values.append(other[half, half])
        means[y, x] = np.average(values, weights=weights)
        counts[y, x] = np.sum(weights) ** 2 / np.sum(np.square(weights))
    return means, counts


def quantiles_of_noise(sigma):
    """Values that are distributed as Gaussian noise."""
    return sigma * np.array([NormalDist().inv_cdf(p) for p in (np.arange(20_000) + 0.5) / 20_000])


def undo_clipping(means, sigma, black=0, white=255):
    """The grey level, for each mean, at which clipped noise has that mean: by bisection, with quantiles."""
    noise = quantiles_of_noise(sigma)
    low, high = np.full(means.shape, float(black)), np.full(means.shape, float(white))
    for _ in range(14):
        middle = (low + high) / 2
        clipped = np.reshape([np.clip(value + noise, black, white).mean() for value in middle.flat], means.shape)
        low, high = np.where(clipped < means, middle, low), np.where(clipped < means, high, middle)
    return (low + high) / 2


def level_averages(unary, pairwise, x, levels, temperature, reach=6):
    """The mean of the levels near the label under exp(-cost / temperature), site by site."""
    table = pairwise.weight * pairwise.table(len(levels))
    means = np.empty(x.shape)
    for site in np.ndindex(x.shape):
        costs = unary[site].copy()
        for axis in range(x.ndim):
            for step in (-1, 1):
                other = tuple(c + step * (a == axis) for a, c in enumerate(site))
                if 0 <= other[axis] < x.shape[axis]:
                    costs += table[:, x[other]]
        near = np.abs(np.arange(len(levels)) - x[site]) <= reach
        weights = np.exp(-(costs - costs[near].min()) / temperature) * near
        means[site] = np.average(levels, weights=weights)
    return means
