"""How well colours suit each of several labels: Gaussian models, from k-means or from seeds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

_SAMPLE = 20_000  # pixels that a model is made from
_COMPONENTS = 5  # Gaussians per label, where seeds show more than one colour
_LEAST_VARIANCE = (2 / 255) ** 2
_FEWEST = 20  # pixels per Gaussian
MOST = 20.0  # nats: that much less probable is as good as impossible


def kmeans(colours: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """At most `k` centres of (n, C) colours, from dark to bright; fewer if there are fewer colours."""
    from scipy.cluster.vq import kmeans2

    sample = _sample(colours, rng)
    centres = sample[:1]
    distance = ((sample - rng.choice(sample)) ** 2).sum(axis=1)
    centres = sample[[distance.argmax()]] if distance.max() > 0 else centres
    distance = ((sample - centres[0]) ** 2).sum(axis=1)
    for _ in range(k - 1):  # far from those there are, as k-means++ draws them
        if distance.max() == 0:
            break
        centres = np.concatenate([centres, sample[[rng.choice(len(sample), p=distance / distance.sum())]]])
        distance = np.minimum(distance, ((sample - centres[-1]) ** 2).sum(axis=1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of clusters that lose all their colours: they keep their centre
        centres, _ = kmeans2(sample, centres, minit="matrix", iter=30)
    return centres[np.argsort(centres.sum(axis=1), kind="stable")]


def around_centres(colours: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Costs (n, k) in nats: squared distances from the centres, by the variance there is within the clusters."""
    distance = np.stack([((colours - centre) ** 2).sum(axis=1) for centre in centres], axis=1)
    variance = max(distance.min(axis=1).mean() / colours.shape[1], _LEAST_VARIANCE)
    return _relative(distance / (2 * variance))


def from_seeds(colours: np.ndarray, seeds: Sequence[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """Costs (n, labels) in nats: minus the log probability under the best of each label's Gaussians, which come from
    the colours of its seeds."""
    return _relative(np.stack([_label_cost(colours, seed, rng) for seed in seeds], axis=1))


def _label_cost(colours: np.ndarray, seed: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    sample = _sample(seed, rng)
    centres = kmeans(sample, min(_COMPONENTS, max(1, len(sample) // _FEWEST)), rng)
    nearest = np.stack([((sample - centre) ** 2).sum(axis=1) for centre in centres], axis=1).argmin(axis=1)
    costs = []
    for number in range(len(centres)):
        own = sample[nearest == number]
        if len(own) == 0:
            continue
        spread = own - own.mean(axis=0)
        covariance = spread.T @ spread / len(own) + _LEAST_VARIANCE * np.eye(colours.shape[1])
        away = colours - own.mean(axis=0)
        mahalanobis = np.einsum("ij,jk,ik->i", away, np.linalg.inv(covariance), away)
        costs.append((mahalanobis + np.linalg.slogdet(covariance)[1]) / 2 - np.log(len(own) / len(sample)))
    return np.min(costs, axis=0)


def _sample(colours: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return colours if len(colours) <= _SAMPLE else colours[rng.choice(len(colours), _SAMPLE, replace=False)]


def _relative(costs: np.ndarray) -> np.ndarray:
    """Costs above those of the best label, truncated: one pixel is no proof."""
    return np.minimum(costs - costs.min(axis=1, keepdims=True), MOST).astype(np.float32)
