"""The cost of every level of intensity at every pixel, and the mean level given the labels of the neighbours."""

import numpy as np

from treefield.kernels.simd.jit import inline_helper, kernel

NO_NEIGHBOUR = -1  # the label around an image
NEGLIGIBLE = np.float32(16)  # exp(-16) is about the least that float32 can add to 1


@kernel
def squared_costs(means, confidence, most, levels, half, costs):
    """The cost min(confidence * (mean - level)**2, most) of each level: one pass over `costs`.

    Parameters
    ----------
    means, confidence, most : float32 [pixel]
    levels : float32 [level]
    half : float32
        0.5 where `costs` are integers, which rounds to the nearest one, otherwise 0.
    costs : uint16 or float32 [pixel][level]
        Results.
    """
    for p in range(len(means)):
        for k in range(len(levels)):
            difference = means[p] - levels[k]
            costs[p, k] = min(confidence[p] * difference * difference, most[p]) + half


@kernel
def average_levels(x, table, means, confidence, most, levels, heat, costs, averages):
    """Average the levels near each pixel's label, weighted by exp(-cost * heat), given the labels of its neighbours.

    The cost of a level is that of `squared_costs` and its pairwise costs. Costs one exponential per level that counts.

    Parameters
    ----------
    x : integers [plane + 2][row + 2][column + 2]
        Labels, with a border of the labels of neighbours, NO_NEIGHBOUR where there are none.
    table : float32 [level][level]
        Pairwise costs times `heat`, symmetric.
    means, confidence, most : float32 [plane][row][column]
    levels : float32 [level]
    costs : float32 [2 * reach + 1]
        Workspace; `reach` levels to each side of the label count.
    averages : float32 [plane][row][column]
        Results.
    """
    planes, rows, columns = averages.shape
    reach = len(costs) // 2
    for p in range(planes):
        for i in range(rows):
            for j in range(columns):
                label = x[p + 1, i + 1, j + 1]
                first, last = max(0, label - reach), min(len(levels) - 1, label + reach)
                count = last + 1 - first
                for k in range(count):
                    difference = means[p, i, j] - levels[first + k]
                    costs[k] = heat * min(confidence[p, i, j] * difference * difference, most[p, i, j])
                _add_edge(table, x[p, i + 1, j + 1], first, count, costs)
                _add_edge(table, x[p + 2, i + 1, j + 1], first, count, costs)
                _add_edge(table, x[p + 1, i, j + 1], first, count, costs)
                _add_edge(table, x[p + 1, i + 2, j + 1], first, count, costs)
                _add_edge(table, x[p + 1, i + 1, j], first, count, costs)
                _add_edge(table, x[p + 1, i + 1, j + 2], first, count, costs)
                least = costs[0]
                for k in range(1, count):
                    least = min(least, costs[k])
                total = weighted = np.float32(0)
                for k in range(count):
                    excess = costs[k] - least
                    if excess < NEGLIGIBLE:
                        weight = np.exp(-excess)
                        total += weight
                        weighted += weight * levels[first + k]
                averages[p, i, j] = weighted / total


@inline_helper
def _add_edge(table, neighbour, first, count, costs):
    """Add the costs of an edge; nothing where there is no neighbour. The table is symmetric."""
    if neighbour != NO_NEIGHBOUR:
        for k in range(count):
            costs[k] += table[neighbour, first + k]
