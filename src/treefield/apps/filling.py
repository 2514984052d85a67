"""The model of `inpaint` if known pixels keep their values: its sites are the pixels of the holes.

The known pixels next to a hole are fixed: what they cost together with the hole is a unary cost.

A quadratic pairwise cost continues edges, but in smooth regions it fills a hole harmonically, which ignores the slopes
around it. The biharmonic filling continues slopes, and blurs edges. The answer is the mean of both, except in holes
that a continued edge divides.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from treefield.apps.biharmonic import biharmonic_fill
from treefield.apps.grey_levels import grey_scale
from treefield.apps.harmonic import harmonic_fill
from treefield.apps.hole_grid import HoleGrid, pack_holes
from treefield.apps.problem import TOL, Problem
from treefield.apps.restoration import INPAINT_CUTOFF, Costs, intensity_levels, nearest_index, smoothness_cost
from treefield.models.grid import GridMRF
from treefield.models.pairwise import Potts, TruncatedLinear, TruncatedQuadratic

_SHARE = 0.5  # of the biharmonic filling
_WHOLE = 0.75  # of a hole: a piece of at least this share is no part of a divided hole
_MANY, _TOL = 1000, 2e-2  # sites, and the gap at which their search may end
_SURROUNDINGS = 8  # pixels around a box of holes: the filling has values from there


def hole_problem(image: np.ndarray, hole: np.ndarray, levels: ArrayLike, costs: Costs) -> Problem[GridMRF]:
    """The problem of filling the holes of an image with channels first, whose other pixels do not change.

    The model's grid holds the boxes of the holes, packed, once for each channel along the first axis.
    """
    known = image[:, ~hole]
    scale = grey_scale(known)
    level_costs = costs.in_grey_levels(scale, "squared", INPAINT_CUTOFF)
    if not hole.any():
        one_site = np.zeros((*(1 for _ in hole.shape), len(intensity_levels(known, levels))), np.uint16)
        return Problem(GridMRF(one_site, Potts(1)), lambda x: image.copy(), is_solved=True)
    grid = pack_holes(hole)
    values = intensity_levels(_surroundings(image, hole, grid), levels)
    pairwise = smoothness_cost(level_costs, scale.to_levels(values))
    pixels = image.reshape(len(image), -1)[:, grid.pixels]
    sites = np.concatenate([grid.hole] * len(image))
    unary = _rim_costs(scale.to_levels(pixels), grid, pairwise, scale.to_levels(values))
    harmonic = harmonic_fill(pixels, grid.hole, grid.known)
    start = nearest_index(values, harmonic).reshape(sites.shape)
    smooth = None
    if costs.smoothness == "quadratic" and np.ndim(levels) == 0:
        in_image = np.argsort(grid.pixels[grid.hole])  # the order of the pixels in the image
        in_grid = np.argsort(in_image)
        smooth = biharmonic_fill(image, hole, harmonic[:, grid.hole][:, in_image])[:, in_grid]
        smooth = smooth.reshape(-1).clip(values[0], values[-1])

    def output(x: np.ndarray) -> np.ndarray:
        filling = values[x[sites]]
        if smooth is not None:
            blend = _SHARE * smooth + (1 - _SHARE) * filling
            divided = divided_sites(scale.to_levels(values)[x], sites, level_costs.cutoff)
            filling = np.where(divided, filling, blend if image.dtype.kind == "f" else np.round(blend))
        filled = image.copy()
        filled.reshape(len(image), -1)[:, grid.pixels[grid.hole]] = filling.astype(image.dtype).reshape(len(image), -1)
        return filled

    tol = TOL if np.count_nonzero(sites) < _MANY else _TOL
    return Problem(GridMRF(unary, pairwise, mask=sites), output, np.where(sites, start, 0), tol=tol)


def divided_sites(grey: np.ndarray, sites: np.ndarray, cutoff: float) -> np.ndarray:
    """Which of the sites of a grid belong to a hole that differences of at least `cutoff` cut into large pieces."""
    holes = _components(sites, [True] * sites.ndim)
    pieces = _components(sites, [np.abs(np.diff(grey, axis=axis)) < cutoff for axis in range(sites.ndim)])
    largest = np.zeros(holes.max() + 1, np.intp)
    np.maximum.at(largest, holes, np.bincount(pieces)[pieces])
    return (largest < _WHOLE * np.bincount(holes))[holes]


def _components(sites: np.ndarray, joined: Sequence[np.ndarray | bool]) -> np.ndarray:
    """The number of the connected component of each site, by the edges along each axis that join."""
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    count = int(np.count_nonzero(sites))
    number = np.zeros(sites.shape, np.intp)
    number[sites] = np.arange(count)
    ends = []
    for axis, edges in enumerate(joined):
        lower, upper = (np.delete(sites, k, axis) for k in (-1, 0))
        kept = lower & upper & edges
        ends.append([np.delete(number, k, axis)[kept] for k in (-1, 0)])
    first, second = (np.concatenate(part) for part in zip(*ends, strict=True))
    return connected_components(sparse.coo_matrix((np.ones(len(first)), (first, second)), (count, count)))[1]


def _surroundings(image: np.ndarray, hole: np.ndarray, grid: HoleGrid) -> np.ndarray:
    """The known values around the boxes of a grid."""
    parts = []
    for box in grid.boxes:
        around = tuple(slice(max(0, part.start - _SURROUNDINGS), part.stop + _SURROUNDINGS) for part in box)
        parts.append(image[:, *around][:, ~hole[around]].reshape(-1))
    return np.concatenate(parts)


def _rim_costs(
    grey: np.ndarray, grid: HoleGrid, pairwise: Potts | TruncatedLinear | TruncatedQuadratic, levels: np.ndarray
) -> np.ndarray:
    """The cost of every level at every site together with the known pixels around it, 0 where there is no site."""
    unary = np.zeros((*grey.shape, len(levels)), np.float32)
    for axis in range(grid.hole.ndim):
        lower, upper = ([slice(None)] * axis + [part] for part in (slice(None, -1), slice(1, None)))
        for sites, neighbours in ((lower, upper), (upper, lower)):
            rim = grid.hole[tuple(sites)] & grid.known[tuple(neighbours)]
            unary[:, *sites][:, rim] += _edge_costs(pairwise, grey[:, *neighbours][:, rim], levels)
    return unary.reshape(-1, *unary.shape[2:])


def _edge_costs(
    pairwise: Potts | TruncatedLinear | TruncatedQuadratic, known: np.ndarray, levels: np.ndarray
) -> np.ndarray:
    """The cost of every level next to a known value; both in grey levels."""
    if isinstance(pairwise, Potts):  # a value between the levels would differ from all of them
        return pairwise.weight * (nearest_index(levels, known)[..., None] != np.arange(len(levels)))
    difference = np.abs(known[..., None] - levels)
    distance = difference if isinstance(pairwise, TruncatedLinear) else difference * difference
    return pairwise.weight * np.minimum(distance, pairwise.cutoff)
