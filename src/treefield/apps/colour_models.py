"""The cost of each label at each pixel, from Gaussian models of colour: clusters of k-means, or colours of seeds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

_MAX_SAMPLE = 20_000  # pixels that a model is fitted to
_MAX_GAUSSIANS = 5  # per label, if its seeds have several colours
_PIXELS_PER_GAUSSIAN = 20  # at least
_MIN_VARIANCE = (2 / 255) ** 2
MAX_COST = 20.0  # nats: less probable than exp(-20) counts as impossible


def kmeans_centres(colours: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """At most `k` cluster centres of (n, C) colours, from dark to bright; fewer if there are fewer colours."""
    from scipy.cluster.vq import kmeans2

    sample = _sample(colours, rng)
    k = min(k, len(np.unique(sample, axis=0)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a cluster that becomes empty keeps its centre
        centres, _ = kmeans2(sample, k, minit="++", iter=30, seed=rng)  # SciPy before 1.15 does not know rng=
    return centres[np.argsort(centres.sum(axis=1), kind="stable")]


def costs_from_centres(colours: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Costs (n, k) in nats: squared distances from the centres, relative to the variance within the clusters."""
    distance = np.stack([((colours - centre) ** 2).sum(axis=1) for centre in centres], axis=1)
    variance = max(distance.min(axis=1).mean() / colours.shape[1], _MIN_VARIANCE)
    return _relative_costs(distance / (2 * variance))


def costs_from_seeds(colours: np.ndarray, seeds: Sequence[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """Costs (n, labels) in nats: the negative log probability under the best Gaussian of each label.

    `seeds` holds, for each label, the (m, C) colours that its Gaussians are fitted to.
    """
    return _relative_costs(np.stack([_label_cost(colours, seed, rng) for seed in seeds], axis=1))


def costs_from_probabilities(probabilities: np.ndarray) -> np.ndarray:
    """Costs (n, classes) in nats from the probabilities (..., classes) of each class."""
    flat = probabilities.reshape(-1, probabilities.shape[-1])
    return _relative_costs(-np.log(np.maximum(flat, np.finfo(np.float64).tiny)))


def _label_cost(colours: np.ndarray, seed: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    sample = _sample(seed, rng)
    centres = kmeans_centres(sample, min(_MAX_GAUSSIANS, max(1, len(sample) // _PIXELS_PER_GAUSSIAN)), rng)
    nearest = np.stack([((sample - centre) ** 2).sum(axis=1) for centre in centres], axis=1).argmin(axis=1)
    costs = []
    for cluster in range(len(centres)):
        members = sample[nearest == cluster]
        if len(members) == 0:
            continue
        mean = members.mean(axis=0)
        deviation = members - mean
        covariance = deviation.T @ deviation / len(members) + _MIN_VARIANCE * np.eye(colours.shape[1])
        difference = colours - mean
        mahalanobis = np.einsum("ij,jk,ik->i", difference, np.linalg.inv(covariance), difference)
        costs.append((mahalanobis + np.linalg.slogdet(covariance)[1]) / 2 - np.log(len(members) / len(sample)))
    return np.min(costs, axis=0)


def _sample(colours: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return colours if len(colours) <= _MAX_SAMPLE else colours[rng.choice(len(colours), _MAX_SAMPLE, replace=False)]


def _relative_costs(costs: np.ndarray) -> np.ndarray:
    """Costs above the best label's, truncated, so that no single pixel outweighs all its neighbours."""
    return np.minimum(costs - costs.min(axis=1, keepdims=True), MAX_COST).astype(np.float32)
