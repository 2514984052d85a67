"""Means over pixels with similar surroundings (non-local means)."""

import numpy as np

from treefield.kernels.simd.jit import kernel

HALF = 2  # a patch has 2 * HALF + 1 pixels along each side


@kernel
def average_similar(padded, inside, first, reach, variance, scale, squares, columns, weights, squared_weights, means):
    """Average each pixel with those up to `reach` pixels away whose patches are similar to its own.

    The weight of another pixel is (1 - t)**2 for t < 1 and 0 otherwise, with t = scale * max(d - 2 * variance, 0) and d
    the mean squared difference of the two patches. Costs (2 * reach + 1)**2 times about 20 operations per pixel.

    Parameters
    ----------
    padded : float32 [row][column]
        The image, padded by `reach` + HALF on each side.
    inside : four int
        The first and the last row + 1, the first and the last column + 1 of the pixels that are averaged.
    first : int
        The row of the image that is the first of the results.
    squares : float32 [row + 2 * HALF][column + 2 * HALF]
        Workspace.
    columns : float32 [column + 2 * HALF]
        Workspace.
    weights, squared_weights, means : float32 [row][column]
        Results: the sum of the weights, of their squares, and the mean.
    """
    rows, width = means.shape
    top, bottom, left, right = inside
    wide = width + 2 * HALF
    one, zero = np.float32(1), np.float32(0)
    share, doubled = np.float32(1 / (2 * HALF + 1) ** 2), np.float32(2) * variance
    for y in range(rows):
        for x in range(width):
            weights[y, x] = one
            squared_weights[y, x] = one
            means[y, x] = padded[first + y + reach + HALF, x + reach + HALF]
    for down in range(-reach, reach + 1):
        for across in range(-reach, reach + 1):
            if down == 0 and across == 0:
                continue
            for y in range(rows + 2 * HALF):
                own, other = first + y + reach, first + y + reach + down
                for x in range(wide):
                    difference = padded[own, x + reach] - padded[other, x + reach + across]
                    squares[y, x] = difference * difference
            for x in range(wide):
                columns[x] = zero
            for y in range(2 * HALF):
                for x in range(wide):
                    columns[x] += squares[y, x]
            for y in range(rows):
                for x in range(wide):
                    columns[x] += squares[y + 2 * HALF, x]
                row, column = first + y + reach + HALF + down, reach + HALF + across
                is_inside = top <= row < bottom
                for x in range(max(0, left - column), min(width, right - column) if is_inside else 0):
                    total = columns[x] + columns[x + 1] + columns[x + 2] + columns[x + 3] + columns[x + 4]
                    t = scale * max(total * share - doubled, zero)
                    weight = max(one - t, zero)
                    weight *= weight
                    weights[y, x] += weight
                    squared_weights[y, x] += weight * weight
                    means[y, x] += weight * padded[row, x + column]
                for x in range(wide):
                    columns[x] -= squares[y, x]
    for y in range(rows):
        for x in range(width):
            means[y, x] /= weights[y, x]
