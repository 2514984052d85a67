"""Random numbers without state: those of the published generators, within their ranges and evenly spread."""

import numba
import numpy as np
import pytest

from treefield.kernels.simd import random
from treefield.kernels.simd.lanes import LANES, store

M32, M64 = 2**32 - 1, 2**64 - 1
SEEDS = [0, 1, 12345, 2**63, M64]


def splitmix64(seed, i):
    z = (seed + (i + 1) * 0x9E3779B97F4A7C15) & M64
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & M64
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & M64
    return z ^ z >> 31


def keyed_triple32(key, i):
    z = (i + key) & M32
    z = ((z ^ z >> 17) * 0xED5AD4BB) & M32
    z = ((z ^ z >> 11) + (key >> 32)) & M32
    z = (z * 0xAC4C1B51) & M32
    z = ((z ^ z >> 15) * 0x31848BAB) & M32
    return z ^ z >> 14


@numba.njit
def bits64(seed, i):
    return random.bits64(seed, i)


@numba.njit
def uniforms(seed, out):
    for i in range(out.size):
        out[i] = random.uniform(seed, i)


@numba.njit
def integers(n, seed, out):
    for i in range(out.size):
        out[i] = random.below(n, seed, i)


@numba.njit
def lane_bits(key, first, out):
    store(out, 0, random.lane_bits(key, first))


@numba.njit
def lane_uniforms(key, out):
    for i in range(0, out.size, LANES):
        store(out, i, random.lane_uniform(key, i))


@pytest.mark.parametrize("seed", SEEDS)
def test_bits_are_those_of_splitmix64(seed):
    for i in (0, 1, 2, 1000, 2**31, 2**62):
        assert int(bits64(np.uint64(seed), i)) == splitmix64(seed, i)


def test_first_numbers_of_splitmix64_are_the_published_ones():
    # the reference implementation (Vigna, prng.di.unimi.it/splitmix64.c) with the state 1234567
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert [int(bits64(np.uint64(1234567), i)) for i in range(4)] == published


def test_uniform_numbers_are_multiples_of_2_to_the_minus_53_below_one():
    out = np.empty(20_000)
    uniforms(7, out)
    np.testing.assert_array_equal(out, [(splitmix64(7, i) >> 11) * 2.0**-53 for i in range(out.size)])
    assert out.min() >= 0 and out.max() < 1 and abs(out.mean() - 0.5) < 0.01


@pytest.mark.parametrize("n", [1, 2, 3, 10, 2**31 - 1])
def test_integers_are_below_n_and_all_occur(n):
    out = np.empty(5000, np.int64)
    integers(n, 3, out)
    np.testing.assert_array_equal(out, [((splitmix64(3, i) >> 32) * n) >> 32 for i in range(out.size)])
    assert out.min() >= 0 and out.max() < n
    if n <= 10:
        assert set(out) == set(range(n))


@pytest.mark.parametrize("key", SEEDS)
@pytest.mark.parametrize("first", [0, 8, 2**32 - 8])
def test_bits_of_lanes_equal_the_permutation_one_by_one(key, first):
    out = np.empty(LANES, np.uint32)
    lane_bits(np.uint64(key), first, out)
    assert out.tolist() == [keyed_triple32(key, first + k) for k in range(LANES)]


def test_uniform_numbers_of_lanes_are_strictly_between_zero_and_one():
    out = np.empty(80_000, np.float32)
    lane_uniforms(np.uint64(0x123456789ABCDEF), out)
    bits = np.array([keyed_triple32(0x123456789ABCDEF, i) for i in range(out.size)])
    scaled = (bits >> 1).astype(np.float32) * np.float32(2.0**-31) + np.float32(2.0**-32)
    np.testing.assert_array_equal(out, np.minimum(scaled, np.float32(1 - 2.0**-24)))
    assert out.min() > 0 and out.max() < 1 and abs(out.mean(dtype=float) - 0.5) < 0.005
