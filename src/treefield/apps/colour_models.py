"""The cost of each label at each pixel, from Gaussian models of colour: clusters of k-means, or colours of seeds."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from treefield.apps.blocks import over_blocks

_MAX_SAMPLE = 20_000  # pixels that a model is fitted to
_MAX_GAUSSIANS = 5  # per label, if its seeds have several colours
_PIXELS_PER_GAUSSIAN = 20  # at least
_MIN_VARIANCE = (2 / 255) ** 2
_BLOCK = 2**15  # pixels: their colours fit into the cache, and BLAS starts no threads
MAX_COST = 20.0  # nats: less probable than exp(-20) counts as impossible


class Colours:
    """The colours of an image (M, N, C) or (P, M, N, C) as (n, C) float64 numbers from 0 to 1.

    They are computed where they are needed, from the image in its own dtype.
    """

    def __init__(self, image: np.ndarray) -> None:
        self._flat = image.reshape(-1, image.shape[-1])
        self.shape = self._flat.shape
        self._low, high = (np.float64(end) for end in (image.min(), image.max()))
        self._range = (high - self._low) or 1.0

    def __len__(self) -> int:
        return len(self._flat)

    def __getitem__(self, pixels: slice | np.ndarray) -> np.ndarray:
        """The colours of some pixels."""
        return self.normalise(self._flat[pixels])

    def normalise(self, values: np.ndarray) -> np.ndarray:
        """Values of the image as numbers from 0 to 1."""
        scaled = values.astype(np.float64)
        scaled -= self._low
        scaled /= self._range
        return scaled


def kmeans_centres(colours: Colours | np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """At most `k` cluster centres of (n, C) colours, from dark to bright; fewer if there are fewer colours."""
    from scipy.cluster.vq import kmeans2

    sample = colours[_sample(len(colours), rng)]
    k = min(k, len(np.unique(sample, axis=0)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a cluster that becomes empty keeps its centre
        centres, _ = kmeans2(sample, k, minit="++", iter=30, seed=rng)  # SciPy before 1.15 does not know rng=
    return centres[np.argsort(centres.sum(axis=1), kind="stable")]


def costs_from_centres(colours: Colours | np.ndarray, centres: np.ndarray, threads: int | None = None) -> np.ndarray:
    """Costs (n, k) in nats: squared distances from the centres, relative to the variance within the clusters."""

    def distances(block: slice) -> np.ndarray:
        channels = np.ascontiguousarray(colours[block].T)
        return np.stack([_squared_norm(channels - centre[:, None]) for centre in centres])

    nearest = np.empty(len(colours))

    def fill(block: slice) -> None:
        nearest[block] = distances(block).min(axis=0)

    over_blocks(fill, len(colours), _BLOCK, threads)
    variance = max(nearest.mean() / colours.shape[1], _MIN_VARIANCE)
    return _relative_costs(lambda block: distances(block) / (2 * variance), len(colours), len(centres), threads)


def costs_from_seeds(
    colours: Colours | np.ndarray,
    seeds: Sequence[np.ndarray],
    rng: np.random.Generator,
    threads: int | None = None,
) -> np.ndarray:
    """Costs (n, labels) in nats: the negative log probability under the best Gaussian of each label.

    `seeds` holds, for each label, the numbers of the pixels whose colours its Gaussians are fitted to.
    """
    models = [_fit_gaussians(colours[seed[_sample(len(seed), rng)]], rng) for seed in seeds]

    def costs(block: slice) -> np.ndarray:
        own = np.ascontiguousarray(colours[block].T)
        return np.stack([np.min([gaussian.costs(own) for gaussian in model], axis=0) for model in models])

    return _relative_costs(costs, len(colours), len(models), threads)


def costs_from_probabilities(probabilities: np.ndarray, threads: int | None = None) -> np.ndarray:
    """Costs (n, classes) in nats from the probabilities (..., classes) of each class."""
    flat, least = probabilities.reshape(-1, probabilities.shape[-1]), np.finfo(np.float64).tiny
    return _relative_costs(
        lambda block: -np.log(np.maximum(flat[block].T.astype(np.float64), least)), *flat.shape, threads
    )


class _Gaussian(NamedTuple):
    """A Gaussian and its share of a label's colours; `whitening` times its transpose is the inverse covariance."""

    mean: np.ndarray
    whitening: np.ndarray
    log_determinant: float  # of the covariance
    log_share: float

    def costs(self, channels: np.ndarray) -> np.ndarray:
        """The negative log probability of (C, n) colours."""
        mahalanobis = _squared_norm(self.whitening.T @ (channels - self.mean[:, None]))
        return (mahalanobis + self.log_determinant) / 2 - self.log_share


def _fit_gaussians(sample: np.ndarray, rng: np.random.Generator) -> list[_Gaussian]:
    """The Gaussians of (m, C) colours."""
    centres = kmeans_centres(sample, min(_MAX_GAUSSIANS, max(1, len(sample) // _PIXELS_PER_GAUSSIAN)), rng)
    nearest = np.stack([((sample - centre) ** 2).sum(axis=1) for centre in centres], axis=1).argmin(axis=1)
    gaussians = []
    for cluster in range(len(centres)):
        members = sample[nearest == cluster]
        if len(members) == 0:
            continue
        mean = members.mean(axis=0)
        deviation = members - mean
        covariance = deviation.T @ deviation / len(members) + _MIN_VARIANCE * np.eye(sample.shape[1])
        log_determinant, log_share = np.linalg.slogdet(covariance)[1], np.log(len(members) / len(sample))
        whitening = np.linalg.cholesky(np.linalg.inv(covariance))
        gaussians.append(_Gaussian(mean, whitening, log_determinant, log_share))
    return gaussians


def _squared_norm(difference: np.ndarray) -> np.ndarray:
    """The sum of squares along the first axis."""
    difference *= difference
    return difference.sum(axis=0)


def _sample(size: int, rng: np.random.Generator) -> np.ndarray:
    """The indices of a sample of at most `_MAX_SAMPLE`."""
    return np.arange(size) if size <= _MAX_SAMPLE else rng.choice(size, _MAX_SAMPLE, replace=False)


def _relative_costs(costs: Callable[[slice], np.ndarray], pixels: int, labels: int, threads: int | None) -> np.ndarray:
    """Costs above the best label's, truncated, so that no single pixel outweighs all its neighbours.

    `costs(block)` returns those of a block of pixels, (labels, m).
    """
    relative = np.empty((pixels, labels), np.float32)

    def fill(block: slice) -> None:
        own = costs(block)
        own -= own.min(axis=0)
        relative[block] = np.minimum(own, MAX_COST, out=own).T

    over_blocks(fill, pixels, _BLOCK, threads)
    return relative
