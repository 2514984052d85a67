"""Random numbers that need no state: number `i` of the stream `seed` is a hash of the two (splitmix64), so that the
order in which they are drawn, and by which thread, does not matter."""

import numpy as np

from treefield.kernels.jit import inlined

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


@inlined
def bits64(seed, i):
    """64 random bits."""
    z = np.uint64(seed) + (np.uint64(i) + np.uint64(1)) * _STEP
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


@inlined
def uniform(seed, i):
    """A float64 in [0, 1)."""
    return np.float64(bits64(seed, i) >> np.uint64(11)) * 2.0**-53


@inlined
def below(n, seed, i):
    """An integer in 0..n-1, for n below 2**31."""
    return np.int64(((bits64(seed, i) >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))
