"""Operations on neighbouring lanes, on the first and the last lane, and in fixed point, against NumPy."""

import numba
import numpy as np
import pytest

from treefield.kernels.simd import shifts
from treefield.kernels.simd.lanes import LANES, WIDE, lane, load, store

TYPES = [np.float32, np.float64, np.int16, np.int32, np.int64, np.uint32]


def numbers(dtype):
    """One vector of different values, with the extremes of the type at its ends and in its middle."""
    n = WIDE if dtype == np.int16 else LANES
    values = np.arange(1, n + 1).astype(dtype)
    if np.issubdtype(dtype, np.floating):
        values[[0, 3, 4, -1]] = np.inf, -0.0, -np.inf, np.finfo(dtype).max
    else:
        values[[0, -1]] = np.iinfo(dtype).min, np.iinfo(dtype).max
    return values


@pytest.mark.parametrize("dtype", TYPES)
def test_shift_up_moves_lanes_and_puts_a_number_first(dtype):
    @numba.njit
    def run(a, first, out):
        store(out, 0, shifts.shift_up(load(a, 0), first))

    a = numbers(dtype)
    out = np.empty_like(a)
    run(a, dtype(77), out)
    np.testing.assert_array_equal(out, np.append(dtype(77), a[:-1]))


@pytest.mark.parametrize("dtype", TYPES)
def test_shift_down_moves_lanes(dtype):
    @numba.njit
    def run(a, out):
        store(out, 0, shifts.shift_down(load(a, 0)))

    a = numbers(dtype)
    out = np.empty_like(a)
    run(a, out)
    np.testing.assert_array_equal(out[:-1], a[1:])


@pytest.mark.parametrize("dtype", TYPES)
def test_replace_last_changes_the_last_lane_only(dtype):
    @numba.njit
    def run(a, last, out):
        store(out, 0, shifts.replace_last(load(a, 0), last))

    a = numbers(dtype)
    out = np.empty_like(a)
    run(a, dtype(77), out)
    np.testing.assert_array_equal(out, np.append(a[:-1], dtype(77)))


@pytest.mark.parametrize("dtype", TYPES)
def test_first_and_last_lane_are_the_ends(dtype):
    @numba.njit
    def run(a):
        value = load(a, 0)
        return shifts.first_lane(value), shifts.last_lane(value)

    a = numbers(dtype)
    assert run(a) == (a[0], a[-1])


@numba.njit
def multiply(a, part, out, step):
    for i in range(0, a.size, step):
        store(out, i, shifts.multiply_floor(load(a, i), load(part, i)))


def test_multiply_floor_of_float64_is_the_product():
    rng = np.random.default_rng(0)
    a, part = rng.normal(size=80) * 1e6, rng.random(80)
    a[:3], part[:3] = (np.inf, -0.0, np.finfo(float).max), (0.5, 1, 1)
    out = np.empty_like(a)
    multiply(a, part, out, LANES)
    np.testing.assert_array_equal(out, a * part)


def test_multiply_floor_of_float32_is_rounded_down():
    rng = np.random.default_rng(1)
    a, part = (rng.normal(size=80) * 1e4).astype(np.float32), rng.random(80).astype(np.float32)
    a[:4], part[:4] = (np.inf, 3, -3, 2**24 - 1), (0.5, 0.5, 0.5, 1)
    out = np.empty_like(a)
    multiply(a, part, out, LANES)
    np.testing.assert_array_equal(out, np.floor(a * part))


def test_multiply_floor_of_int16_takes_parts_of_65536():
    values = np.array([0, 1, 2, 3, 1000, 32766, 32767, 12345])
    parts = np.array([0, 1, 2, 32767, 32768, 32769, 65534, 65535])
    a, part = (grid.ravel() for grid in np.meshgrid(values, parts))
    out = np.empty(a.size, np.int16)
    multiply(a.astype(np.int16), part.astype(np.uint16).view(np.int16), out, WIDE)
    np.testing.assert_array_equal(out, a * part // 65536)


@pytest.mark.parametrize("dtype, wide", [(np.int16, np.int32), (np.float32, np.float64), (np.float64, np.float64)])
def test_widen_keeps_values_and_the_number_of_lanes(dtype, wide):
    @numba.njit
    def run(a, out):
        value = shifts.widen(load(a, 0))
        for k in range(a.size):
            out[k] = lane(value, k)

    a = numbers(dtype)
    out = np.empty(a.size, wide)
    run(a, out)
    np.testing.assert_array_equal(out, a.astype(wide))
