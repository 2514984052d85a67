"""Connected components of the sites where two labellings differ: what grids and graphs share."""

import numpy as np

from treefield.kernels.simd.jit import inline_helper, kernel
from treefield.kernels.simd.lanes import LANES, load, lowest_set_bit, mask_to_int
from treefield.kernels.simd.random import bits64


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
def differing(x, y, i, count):
    """The bits of those of the next eight sites, or `count` if fewer, where x and y differ."""
    if count >= LANES:
        return mask_to_int(load(x, i) != load(y, i))
    found = np.int64(0)
    for k in range(count):
        if x[i + k] != y[i + k]:
            found |= np.int64(1) << k
    return found


@inline_helper
def add_change(before, after, owner, forbidden_cost, finite, forbidden):
    """Add to a component what a cost changes when it goes from `before` to `after`."""
    if before < forbidden_cost and after < forbidden_cost:
        finite[owner] += after - before
        return
    if before < forbidden_cost:
        finite[owner] -= before
    else:
        forbidden[owner] -= 1
    if after < forbidden_cost:
        finite[owner] += after
    else:
        forbidden[owner] += 1


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
