"""The biharmonic filling of a hole: it continues the slopes of its surroundings, where a harmonic one is flat."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from scipy import sparse

_MAX_DIRECT = 100_000  # pixels: beyond, a factorisation takes more than 300 MB
_RELATIVE_ERROR = 1e-4
_MAX_ITERATIONS = 50


def biharmonic_fill(image: np.ndarray, hole: np.ndarray, start: np.ndarray) -> np.ndarray:
    """The values (C, pixels of the hole), float64, that fill the hole of an image with channels first.

    They minimise the sum of the squares of the image's Laplacian at the pixels of the hole and their neighbours. In a
    large hole they are an approximation that lies between `start`, values of the same shape, and the minimum.
    """
    from scipy import sparse
    from scipy.sparse.linalg import cg

    holes = np.flatnonzero(hole)
    centres = np.union1d(holes, _edges(holes, hole.shape)[1])
    rows, neighbours = _edges(centres, hole.shape)
    pixels = np.union1d(centres, neighbours)
    entries = sparse.coo_matrix((np.ones(len(rows)), (rows, np.searchsorted(pixels, neighbours))))
    diagonal = sparse.coo_matrix(
        (np.bincount(rows, minlength=len(centres)), (np.arange(len(centres)), np.searchsorted(pixels, centres))),
        (len(centres), len(pixels)),
    )
    entries.resize(diagonal.shape)
    laplacian = (diagonal - entries).tocsc()
    is_hole = hole.reshape(-1)[pixels]
    unknown, known = laplacian[:, is_hole], laplacian[:, ~is_hole]
    values = image.reshape(len(image), -1)[:, pixels[~is_hole]].astype(np.float64)
    mean = values.mean(axis=1, keepdims=True)  # the solvers' errors are relative to the values
    matrix, sums = (unknown.T @ unknown).tocsc(), -(unknown.T @ (known @ (values - mean).T))
    if len(holes) <= _MAX_DIRECT:
        return solve_symmetric(matrix, sums).T + mean
    jacobi = sparse.diags(1 / matrix.diagonal())
    options = {"rtol": _RELATIVE_ERROR, "maxiter": _MAX_ITERATIONS, "M": jacobi}
    filling = [cg(matrix, *column, **options)[0] for column in zip(sums.T, start - mean, strict=True)]
    return np.stack(filling) + mean


def solve_symmetric(matrix: sparse.csc_matrix, sums: np.ndarray) -> np.ndarray:
    """Solve a system whose matrix is symmetric and positive definite, for each column of `sums`."""
    from scipy.sparse.linalg import splu

    # an ordering and pivots for symmetric matrices: half the time and memory of the defaults
    factors = splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.001, options={"SymmetricMode": True})
    return factors.solve(sums)


def _edges(pixels: np.ndarray, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """For every neighbour of some pixels, numbered flat, the pixel's index in the list and the neighbour's number."""
    index, stride = np.arange(len(pixels)), 1
    rows, neighbours = [], []
    for n in reversed(shape):
        position = pixels // stride % n
        for step, inside in ((-1, position > 0), (1, position < n - 1)):
            rows.append(index[inside])
            neighbours.append(pixels[inside] + step * stride)
        stride *= n
    return np.concatenate(rows), np.concatenate(neighbours)
