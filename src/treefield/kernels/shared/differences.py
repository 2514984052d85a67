"""Sites where two labellings differ, and their connected components, for grids and graphs."""

import numpy as np

from treefield.kernels.simd.jit import inline_helper, kernel
from treefield.kernels.simd.lanes import LANES, load, lowest_set_bit, mask_to_int
from treefield.kernels.simd.random import bits64


@inline_helper
def difference_bits(x, y, i, count):
    """Bit k is set where x and y differ at site i + k, for the next eight sites, or `count` if fewer."""
    if count >= LANES:
        return mask_to_int(load(x, i) != load(y, i))
    bits = np.int64(0)
    for k in range(count):
        if x[i + k] != y[i + k]:
            bits |= np.int64(1) << k
    return bits


@inline_helper
def add_change(before, after, owner, forbidden_cost, finite, forbidden):
    """Add to component `owner` the change of a cost from `before` to `after`."""
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
        left = difference_bits(x, y, block, len(x) - block)
        while left != 0:
            i = block + lowest_set_bit(left)
            left &= left - 1
            x[i] = y[i] if taken[numbers[i]] else x[i]


@kernel
def hash_components(x, y, labels, numbers, before, after):
    """Hash the labels that each component holds in x (to `before`) and in y (to `after`), which start at 0.

    The same labels on the same sites give the same hash, others hardly ever.
    """
    for i in range(len(x)):
        if numbers[i] >= 0:
            before[numbers[i]] ^= bits64(0, i * labels + x[i])
            after[numbers[i]] ^= bits64(0, i * labels + y[i])
