"""The energies of the paper's section 5."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from treefield.models.grid import GridMRF
from treefield.models.pairwise import Potts, Table

STEREO_WEIGHT = 20.0
DENOISING_WEIGHT, DENOISING_CUTOFF = 25.0, 100


def ising_field(size: int = 500, strength: float = 1.0, seed: int = 0, dtype: DTypeLike = np.float32) -> GridMRF:
    """Section 5.1: fields U(-1, 1), couplings U(-strength, strength)."""
    rng = np.random.default_rng(seed)
    fields = rng.uniform(-1, 1, (size, size))
    shapes = (size - 1, size), (size, size - 1)
    couplings = [rng.uniform(-strength, strength, shape).astype(dtype) for shape in shapes]
    return GridMRF(np.stack([-fields, fields], axis=-1).astype(dtype), Table([[1, -1], [-1, 1]]), weights=couplings)


def stereo_field(left: np.ndarray, right: np.ndarray, labels: int) -> GridMRF:
    """Section 5.2: |I_l - I_r| on rounded luminance, Potts 20."""
    return GridMRF(stereo_costs(luminance(left), luminance(right), labels), Potts(STEREO_WEIGHT))


def stereo_costs(left: np.ndarray, right: np.ndarray, labels: int) -> np.ndarray:
    """|I_l - I_r| of grey images, the column clamped at the left border; float32, label axis last."""
    column = np.arange(left.shape[1])
    shifted = [right[:, np.maximum(column - d, 0)] for d in range(labels)]
    return np.abs(left[:, :, None] - np.stack(shifted, axis=-1)).astype(np.float32)


def luminance(image: np.ndarray) -> np.ndarray:
    """Grey values, rounded."""
    return np.round(image[..., :3] @ np.array([0.299, 0.587, 0.114])) if image.ndim == 3 else image.astype(np.float64)


def denoising_field(grey: np.ndarray) -> GridMRF:
    """Section 5.3: 256 labels, |x - y| up to 100, Potts 25."""
    levels = np.arange(256, dtype=np.float32)
    unary = np.minimum(np.abs(grey.astype(np.float32)[..., None] - levels), DENOISING_CUTOFF)
    return GridMRF(unary, Potts(DENOISING_WEIGHT))
