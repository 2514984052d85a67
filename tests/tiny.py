"""Effort and pictures so small that the whole pipeline runs in seconds."""

import numpy as np

from treefield_reproduce.datasets import Datasets, NoisyImage, StereoPair
from treefield_reproduce.runner import Effort, Runner

TINY = Effort("tiny", 12, 8, 2, 0.05, 0.01, 3, (32, 64), (2, 4))


def tiny_datasets():
    """A square nearer than the rest, and a step with noise."""
    rng = np.random.default_rng(0)
    right = rng.integers(0, 256, (16, 20, 3), dtype=np.uint8)
    truth = np.full((16, 20), 1.0)
    truth[4:12, 6:14] = 3.0
    columns = np.maximum(np.arange(20) - truth.astype(int), 0)
    left = np.take_along_axis(right, columns[..., None], axis=1)
    pair = StereoPair("Tsukuba", left, right, truth, 5)
    clean = np.where(np.arange(12) < 6, 60, 180).astype(np.uint8) * np.ones((10, 1), np.uint8)
    noisy = np.clip(clean + rng.normal(0, 20, clean.shape), 0, 255).astype(np.uint8)
    return Datasets([pair], NoisyImage("Penguin", noisy, clean), "The pictures are tiny.")


def tiny_runner(**options):
    return Runner(TINY, tiny_datasets(), **options)
