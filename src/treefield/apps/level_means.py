"""An estimate between the levels: the mean of each site's levels, given the labels of its neighbours."""

from __future__ import annotations

import numpy as np

from treefield.models.pairwise import Pairwise

_REACH = 6  # levels to each side of the label


def level_means(
    unary: np.ndarray, pairwise: Pairwise, x: np.ndarray, levels: np.ndarray, temperature: float
) -> np.ndarray:
    """The mean of `levels` under exp(-cost / temperature), float32, for a grid of sites without weights.

    The cost of a level is its unary cost and its pairwise costs with the labels `x` of the neighbours along the axes.
    Levels up to 6 from the label itself count. Memory: a few numbers for each site of a slice along the first axis.
    """
    table = (pairwise.weight * pairwise.table(len(levels)) / temperature).astype(np.float32)
    heat = np.float32(1 / temperature)
    means = np.empty(x.shape, np.float32)
    for row in range(len(x)):
        means[row] = _slice_means(unary[row] * heat, table, x, row, levels.astype(np.float32))
    return means


def _slice_means(unary: np.ndarray, table: np.ndarray, x: np.ndarray, row: int, levels: np.ndarray) -> np.ndarray:
    label = x[row]
    neighbours = [x[other] for other in (row - 1, row + 1) if 0 <= other < len(x)]
    costs, values = [], []
    for offset in range(-_REACH, _REACH + 1):
        level = label + offset
        outside = (level < 0) | (level >= len(levels))
        level = np.clip(level, 0, len(levels) - 1)
        cost = np.take_along_axis(unary, level[..., None], -1)[..., 0]
        for other in neighbours:
            cost = cost + table[level, other]
        for axis in range(label.ndim):
            before, after = (slice(None),) * axis + (slice(None, -1),), (slice(None),) * axis + (slice(1, None),)
            cost[after] += table[level[after], label[before]]
            cost[before] += table[level[before], label[after]]
        costs.append(np.where(outside, np.inf, cost))
        values.append(levels[level])
    weights = np.array(costs)
    weights = np.exp(weights.min(axis=0) - weights)
    return (weights * np.array(values)).sum(axis=0) / weights.sum(axis=0)
