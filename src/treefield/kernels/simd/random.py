"""Random numbers without state: number `i` of the stream `seed` is a hash of the two (splitmix64).

The numbers do not depend on the order in which threads draw them.
"""

import numpy as np

from treefield.kernels.simd.jit import inline_helper
from treefield.kernels.simd.lanes import broadcast, cast, lane_numbers, minimum, reinterpret

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


@inline_helper
def bits64(seed, i):
    """64 random bits."""
    z = np.uint64(seed) + (np.uint64(i) + np.uint64(1)) * _STEP
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


@inline_helper
def uniform(seed, i):
    """A float64 in [0, 1)."""
    return np.float64(bits64(seed, i) >> np.uint64(11)) * 2.0**-53


@inline_helper
def below(n, seed, i):
    """An integer in 0..n-1, for n below 2**31."""
    return np.int64(((bits64(seed, i) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@inline_helper
def lane_bits(key, i):
    """32 random bits in each of eight lanes: numbers `i` to `i` + 7 of the stream `key`, 64 random bits.

    A permutation of 32 bits (triple32, by Chris Wellons) that half of the key shifts and the other half changes in
    its middle; cheaper in lanes than `bits64`. Give every few thousand numbers another key.
    """
    z = broadcast(np.uint32(i)) + cast(lane_numbers(), np.uint32) + broadcast(np.uint32(key))
    z = (z ^ (z >> broadcast(np.uint32(17)))) * broadcast(np.uint32(0xED5AD4BB))
    z = (z ^ (z >> broadcast(np.uint32(11)))) + broadcast(np.uint32(np.uint64(key) >> np.uint64(32)))
    z = z * broadcast(np.uint32(0xAC4C1B51))
    z = (z ^ (z >> broadcast(np.uint32(15)))) * broadcast(np.uint32(0x31848BAB))
    return z ^ (z >> broadcast(np.uint32(14)))


@inline_helper
def lane_uniform(key, i):
    """A float32 between 0 and 1, neither of them, in each of eight lanes; fine near 0, in steps of 2**-24 near 1."""
    number = cast(reinterpret(lane_bits(key, i) >> broadcast(np.uint32(1)), np.int32), np.float32)
    return minimum(
        number * broadcast(np.float32(2.0**-31)) + broadcast(np.float32(2.0**-32)), broadcast(np.float32(1 - 2.0**-24))
    )
