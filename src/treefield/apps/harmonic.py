"""The harmonic filling of a hole: every pixel is the mean of its neighbours. The search of `inpaint` starts from it."""

from __future__ import annotations

import numpy as np

from treefield.apps.biharmonic import solve_symmetric

_MAX_DIRECT = 150_000  # pixels: beyond, a factorisation takes more than 130 MB
_RELATIVE_ERROR = 1e-3
_MAX_ITERATIONS = 2000


def harmonic_fill(image: np.ndarray, hole: np.ndarray, known: np.ndarray | None = None) -> np.ndarray:
    """A copy of an image with channels first, as float64, whose hole is filled harmonically.

    Pixels outside of the hole are known, or only those in the mask `known`; the others do not count as neighbours.
    """
    from scipy import sparse
    from scipy.sparse.linalg import cg

    known = ~hole if known is None else known
    filled = image.astype(np.float64)
    mean = filled[:, known].mean(axis=1)
    filled -= mean.reshape(-1, *(1 for _ in hole.shape))  # the solver's error is relative to the values
    size = int(hole.sum())
    number = np.full(hole.shape, -1)
    number[hole] = np.arange(size)
    exists, border = hole | known, np.where(known, filled, 0.0)
    degree, sums, pairs = np.zeros(size), np.zeros((len(image), size)), []
    for axis in range(hole.ndim):
        lower, upper = ([slice(None)] * axis + [part] for part in (slice(None, -1), slice(1, None)))
        for sites, neighbours in ((lower, upper), (upper, lower)):
            inside = hole[tuple(sites)] & exists[tuple(neighbours)]
            rows, columns = number[tuple(sites)][inside], number[tuple(neighbours)][inside]
            degree[rows] += 1
            sums[:, rows] += border[:, *neighbours][:, inside]
            pairs.append(np.stack([rows, columns])[:, columns >= 0])
    rows, columns = np.concatenate(pairs, axis=1)
    laplacian = sparse.diags(degree) - sparse.coo_matrix((np.ones(len(rows)), (rows, columns)), (size, size))
    if size <= _MAX_DIRECT:
        filled[:, hole] = solve_symmetric(laplacian.tocsc(), sums.T).T
    else:
        for channel, values in zip(filled, sums, strict=True):
            channel[hole] = cg(laplacian.tocsr(), values, rtol=_RELATIVE_ERROR, maxiter=_MAX_ITERATIONS)[0]
    return filled + mean.reshape(-1, *(1 for _ in hole.shape))
