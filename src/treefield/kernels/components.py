"""Two labellings differ on a set of sites: its connected components, and what each of them changes."""

import numpy as np

from treefield.kernels.grid import edge_numbers, fetch, fetch_weights
from treefield.kernels.jit import inline_helper, kernel
from treefield.kernels.lanes import (
    LANES,
    broadcast,
    lane,
    load,
    lowest_set_bit,
    mask_to_int,
    minimum,
    reduce_sum,
    store,
)
from treefield.kernels.random import bits64
from treefield.kernels.rules import edge_cost


@inline_helper
def join(parents, root, i):
    """Join the tree of site `i` to that of `root` (-1: none yet). Returns the lower of their roots, which becomes the
    root of both, and how many trees fewer there are."""
    while parents[i] != i:
        parents[i] = parents[parents[i]]
        i = parents[i]
    if root < 0 or root == i:
        return i, 0
    parents[max(root, i)] = min(root, i)
    return min(root, i), 1


@inline_helper
def number_roots(parents):
    """Number the trees in the order of their roots, which are their lowest sites: `parents`, -1 for sites in none,
    become these numbers. Returns how many there are."""
    count = 0
    for i in range(len(parents)):
        parent = parents[i]
        if parent >= 0:
            parents[i] = count if parent == i else parents[parent]
            count += parent == i
    return count


@inline_helper
def rows_before(shape, strides, row):
    """How far back the site before is along the last axis but one, and along the one before that; 0 at the border."""
    dimensions = len(shape)
    above = strides[dimensions - 2] if row % shape[dimensions - 2] > 0 else 0
    behind = strides[0] if dimensions == 3 and row >= shape[1] else 0
    return above, behind


@inline_helper
def differing(x, y, i, count):
    """The bits of those of the next eight sites, or `count` if fewer, where x and y differ."""
    if count >= LANES:
        return mask_to_int(load(x, i) != load(y, i))
    found = np.int64(0)
    for k in range(count):
        if x[i + k] != y[i + k]:
            found |= np.int64(1) << k
    return found


@kernel
def join_components(x, y, shape, strides, parents):
    """Join the sites where flat labellings differ to trees, one per connected component, rooted at its lowest site;
    -1 elsewhere. Returns how many there are. About O(1) per site.
    """
    count = 0
    width = shape[len(shape) - 1]
    for start in range(0, len(x), width):
        above, behind = rows_before(shape, strides, start // width)
        last, root = -2, -1  # the last site that differs, and its root
        for block in range(start, start + width, LANES):
            left = differing(x, y, block, start + width - block)
            if start + width - block >= LANES:
                store(parents, block, broadcast(np.int32(-1)))
            else:
                for i in range(block, start + width):
                    parents[i] = -1
            while left != 0:
                i = block + lowest_set_bit(left)
                left &= left - 1
                beside = last == i - 1
                if not beside:
                    root = -1
                # where the sites before both are joined already, so are these
                if above > 0 and parents[i - above] >= 0 and not (beside and parents[i - above - 1] >= 0):
                    root, fewer = join(parents, root, i - above)
                    count -= fewer
                if behind > 0 and parents[i - behind] >= 0 and not (beside and parents[i - behind - 1] >= 0):
                    root, fewer = join(parents, root, i - behind)
                    count -= fewer
                if root < 0:
                    root = i
                    count += 1
                parents[i] = root
                last = i
    return count


@inline_helper
def add_change(before, after, owner, big, finite, forbidden):
    """Add to a component what a cost changes when it goes from `before` to `after`."""
    if before < big and after < big:
        finite[owner] += after - before
        return
    if before < big:
        finite[owner] -= before
    else:
        forbidden[owner] -= 1
    if after < big:
        finite[owner] += after
    else:
        forbidden[owner] += 1


@kernel
def unary_changes(x, y, unary, labels, numbers, big, finite, forbidden):
    """Number the components in the order of their lowest sites, and add to each one's `finite` and `forbidden` what
    going from x to y changes in its unary costs.

    On entry `numbers` are the parents, at most the sites themselves, that `join_components` found.
    """
    count = 0
    for block in range(0, len(x), LANES):
        left = differing(x, y, block, len(x) - block)
        while left != 0:
            i = block + lowest_set_bit(left)
            left &= left - 1
            parent = numbers[i]
            owner = count if parent == i else numbers[parent]
            count += parent == i
            numbers[i] = owner
            before, after = unary[i * labels + x[i]], unary[i * labels + y[i]]
            add_change(np.float64(before), np.float64(after), owner, big, finite, forbidden)


@kernel
def pairwise_changes(x, y, labels, grid, kind, numbers, big, finite, forbidden, work, weights):
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
                infinite = mask_to_int(broadcast(big) <= before) | mask_to_int(broadcast(big) <= after)
                if left == 255 and infinite == 0 and mask_to_int(owners == broadcast(owner)) == 255:
                    finite[owner] += reduce_sum(after - before)
                    continue
                while left != 0:
                    k = lowest_set_bit(left)
                    add_change(lane(before, k), lane(after, k), lane(owners, k), big, finite, forbidden)
                    left &= left - 1
            number += run


@kernel
def take_components(x, y, numbers, taken):
    """Set x to y on the components that are taken."""
    for block in range(0, len(x), LANES):
        left = differing(x, y, block, len(x) - block)
        while left != 0:
            i = block + lowest_set_bit(left)
            left &= left - 1
            x[i] = y[i] if taken[numbers[i]] else x[i]


@kernel
def hash_components(x, y, labels, numbers, before, after):
    """A number for the labels that each component holds in x and in y: the same labels on the same sites give the same
    number, others hardly ever. `before` and `after` start at 0."""
    for i in range(len(x)):
        if numbers[i] >= 0:
            before[numbers[i]] ^= bits64(0, i * labels + x[i])
            after[numbers[i]] ^= bits64(0, i * labels + y[i])
