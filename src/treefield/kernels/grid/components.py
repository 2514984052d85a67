"""Two labellings differ on a set of sites: its connected components, and what each of them changes."""

import numpy as np

from treefield.kernels.grid.energy import edge_numbers, fetch, fetch_weights
from treefield.kernels.rules.rule import edge_cost
from treefield.kernels.shared.differences import add_change, difference_bits
from treefield.kernels.shared.union_find import join
from treefield.kernels.simd.jit import inline_helper, kernel
from treefield.kernels.simd.lanes import (
    LANES,
    broadcast,
    lane,
    lowest_set_bit,
    mask_to_int,
    minimum,
    reduce_sum,
    store,
)


@inline_helper
def rows_before(shape, strides, row):
    """How far back the site before is along the last axis but one, and along the one before that; 0 at the border."""
    dimensions = len(shape)
    above = strides[dimensions - 2] if row % shape[dimensions - 2] > 0 else 0
    behind = strides[0] if dimensions == 3 and row >= shape[1] else 0
    return above, behind


@kernel
def join_components(x, y, shape, strides, parents):
    """Join the sites where flat labellings differ to trees, one per connected component; returns how many there are.

    Each tree is rooted at its lowest site; `parents` is -1 at sites that do not differ. About O(1) per site.
    """
    count = 0
    width = shape[len(shape) - 1]
    for start in range(0, len(x), width):
        above, behind = rows_before(shape, strides, start // width)
        last, root = -2, -1  # the last site that differs, and its root
        for block in range(start, start + width, LANES):
            left = difference_bits(x, y, block, start + width - block)
            if start + width - block >= LANES:
                store(parents, block, broadcast(np.int32(-1)))
            else:
                for i in range(block, start + width):
                    parents[i] = -1
            while left != 0:
                i = block + lowest_set_bit(left)
                left &= left - 1
                follows_last = last == i - 1
                if not follows_last:
                    root = -1
                # where the sites before both are joined already, so are these
                if above > 0 and parents[i - above] >= 0 and not (follows_last and parents[i - above - 1] >= 0):
                    root, fewer = join(parents, root, i - above)
                    count -= fewer
                if behind > 0 and parents[i - behind] >= 0 and not (follows_last and parents[i - behind - 1] >= 0):
                    root, fewer = join(parents, root, i - behind)
                    count -= fewer
                if root < 0:
                    root = i
                    count += 1
                parents[i] = root
                last = i
    return count


@kernel
def unary_changes(x, y, unary, labels, numbers, forbidden_cost, finite, forbidden):
    """Number the components in the order of their lowest sites, and add up the changes of their unary costs.

    The change from x to y of each component is added to its `finite` and `forbidden`.

    On entry `numbers` are the parents, at most the sites themselves, that `join_components` found.
    """
    count = 0
    for block in range(0, len(x), LANES):
        left = difference_bits(x, y, block, len(x) - block)
        while left != 0:
            i = block + lowest_set_bit(left)
            left &= left - 1
            parent = numbers[i]
            owner = count if parent == i else numbers[parent]
            count += parent == i
            numbers[i] = owner
            before, after = unary[i * labels + x[i]], unary[i * labels + y[i]]
            add_change(np.float64(before), np.float64(after), owner, forbidden_cost, finite, forbidden)


@kernel
def pairwise_changes(x, y, labels, grid, kind, numbers, forbidden_cost, finite, forbidden, work, weights):
    """The same for the pairwise costs: an edge belongs to the component of whichever end differs.

    `work` (int32) and `weights` (as the grid's) are space for eight values.
    """
    number = 0
    for axis in range(len(grid.shape)):
        stride = grid.strides[axis]
        run = (grid.shape[axis] - 1) * stride  # edges whose first sites follow each other
        for start in range(0, len(x), run + stride):
            for i in range(start, start + run, LANES):
                count = start + run - i
                first = fetch(numbers, i, count, -1, work)
                second = fetch(numbers, i + stride, count, -1, work)
                owners = first + second - minimum(first, second)
                left = mask_to_int(broadcast(np.int32(0)) <= owners)
                if left == 0:
                    continue
                weight = fetch_weights(grid, axis, number + i - start, count, weights)
                edges = edge_numbers(number + i - start, count)
                a, b = fetch(x, i, count, 0, work), fetch(x, i + stride, count, 0, work)
                before = edge_cost(kind, weight, edges, a, b, labels)
                a, b = fetch(y, i, count, 0, work), fetch(y, i + stride, count, 0, work)
                after = edge_cost(kind, weight, edges, a, b, labels)
                owner = lane(owners, lowest_set_bit(left))
                infinite = mask_to_int(broadcast(forbidden_cost) <= before) | mask_to_int(
                    broadcast(forbidden_cost) <= after
                )
                if left == 255 and infinite == 0 and mask_to_int(owners == broadcast(owner)) == 255:
                    finite[owner] += reduce_sum(after - before)
                    continue
                while left != 0:
                    k = lowest_set_bit(left)
                    add_change(lane(before, k), lane(after, k), lane(owners, k), forbidden_cost, finite, forbidden)
                    left &= left - 1
            number += run
