"""Each operation on lanes alone, against NumPy, for every element type and at the edges of its range."""

import operator

import numba
import numpy as np
import pytest

from treefield.kernels.simd import lanes
from treefield.kernels.simd.lanes import LANES, WIDE, load, store

FLOATS = [np.float32, np.float64]
SIGNED = [np.int16, np.int32, np.int64]
UNSIGNED = [np.uint32, np.uint64]
INTEGERS = SIGNED + UNSIGNED
NUMBERS = FLOATS + INTEGERS


def count_of(dtype):
    return WIDE if dtype == np.int16 else LANES


def edge_values(dtype):
    """The extremes of a type, for floats infinities, NaN and both zeros, and some ordinary numbers."""
    if np.issubdtype(dtype, np.floating):
        info = np.finfo(dtype)
        values = [0.0, -0.0, np.inf, -np.inf, np.nan, info.max, info.min, info.tiny, info.eps, 1.5, -2.0, 3.0]
    else:
        info = np.iinfo(dtype)
        values = [info.min, info.max, 0, 1, info.max - 1, info.min + 1, 2, 7, info.max // 2, 100, 3, 181]
    return np.array(values, dtype)


def pairs(dtype):
    """Arrays that combine every edge value with every other, a multiple of the lanes long."""
    values = edge_values(dtype)
    a, b = (grid.ravel() for grid in np.meshgrid(values, values))
    short = -len(a) % count_of(dtype)
    return np.append(a, a[:short]), np.append(b, b[:short])


def assert_same_bits(actual, expected):
    """Equal to the bit, the signs of zeros included; a NaN equals any NaN."""
    expected = np.asarray(expected, actual.dtype)
    np.testing.assert_array_equal(actual, expected)
    if np.issubdtype(actual.dtype, np.floating):
        there = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(actual[there]), np.signbit(expected[there]))


def apply_binary(operation, a, b, out):
    @numba.njit(error_model="numpy")
    def loop(a, b, out, step):
        for i in range(0, a.size, step):
            store(out, i, operation(load(a, i), load(b, i)))

    loop(a, b, out, count_of(a.dtype))
    return out


def apply_unary(operation, a, out):
    @numba.njit(error_model="numpy")
    def loop(a, out, step):
        for i in range(0, a.size, step):
            store(out, i, operation(load(a, i)))

    loop(a, out, count_of(a.dtype))
    return out


def apply_reduction(operation, a):
    @numba.njit
    def loop(a, out, step):
        for i in range(0, a.size, step):
            out[i // step] = operation(load(a, i))

    out = np.zeros(a.size // count_of(a.dtype), a.dtype)
    loop(a, out, count_of(a.dtype))
    return out


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("operation", [operator.add, operator.iadd, operator.sub, operator.mul])
def test_arithmetic_equals_numpy(operation, dtype):
    a, b = pairs(dtype)
    with np.errstate(all="ignore"):
        expected = operation(a.copy(), b)
    assert_same_bits(apply_binary(operation, a, b, np.empty_like(a)), expected)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("operation", [operator.and_, operator.or_, operator.xor])
def test_bitwise_operators_equal_numpy(operation, dtype):
    a, b = pairs(dtype)
    assert_same_bits(apply_binary(operation, a, b, np.empty_like(a)), operation(a, b))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts_equal_numpy_and_right_shifts_fill_with_zeros(dtype):
    bits = np.dtype(dtype).itemsize * 8
    a, by = (grid.ravel() for grid in np.meshgrid(edge_values(dtype), np.arange(bits).astype(dtype)))
    a, by = (np.resize(array, len(array) + -len(array) % WIDE) for array in (a, by))
    unsigned = np.dtype(f"u{np.dtype(dtype).itemsize}")
    assert_same_bits(apply_binary(operator.lshift, a, by, np.empty_like(a)), a << by)
    expected = (a.view(unsigned) >> by.view(unsigned)).view(dtype)
    assert_same_bits(apply_binary(operator.rshift, a, by, np.empty_like(a)), expected)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("operation", [operator.lt, operator.le, operator.eq, operator.ne])
def test_comparisons_equal_numpy(operation, dtype):
    @numba.njit
    def loop(a, b, out, step):
        for i in range(0, a.size, step):
            out[i // step] = lanes.mask_to_int(operation(load(a, i), load(b, i)))

    a, b = pairs(dtype)
    step = count_of(dtype)
    out = np.zeros(a.size // step, np.int64)
    loop(a, b, out, step)
    expected = operation(a, b).reshape(-1, step) @ (1 << np.arange(step))
    np.testing.assert_array_equal(out, expected)


def test_operators_of_lanes_of_different_types_do_not_compile():
    @numba.njit
    def mix(a, b, out):
        store(out, 0, load(a, 0) + load(b, 0))

    with pytest.raises(numba.TypingError):
        mix(np.zeros(8), np.zeros(8, np.float32), np.zeros(8))


@pytest.mark.parametrize("dtype", NUMBERS)
def test_load_and_store_move_lanes_and_nothing_else(dtype):
    @numba.njit
    def move(a, i, out, j):
        store(out, j, load(a, i))

    n = count_of(dtype)
    a = np.resize(edge_values(dtype), 3 * n)
    for i, j in ((0, 0), (1, 5), (2 * n, 2 * n), (n + 3, 1)):  # most are not aligned
        out = np.full(3 * n, 9, dtype)
        expected = out.copy()
        expected[j : j + n] = a[i : i + n]
        move(a, i, out, j)
        assert_same_bits(out, expected)


@pytest.mark.parametrize("dtype", [*FLOATS, np.int32, np.int64, np.uint32])
def test_interleaved_accesses_equal_strided_slices(dtype):
    @numba.njit
    def split(a, i, even, odd):
        x, y = lanes.load_deinterleaved(a, i)
        store(even, 0, x)
        store(odd, 0, y)

    @numba.njit
    def join(even, odd, out, i):
        lanes.store_interleaved(out, i, load(even, 0), load(odd, 0))

    a = np.resize(edge_values(dtype), 2 * LANES + 3)
    even, odd, out = np.empty(LANES, dtype), np.empty(LANES, dtype), np.zeros(2 * LANES + 3, dtype)
    split(a, 3, even, odd)
    assert_same_bits(even, a[3::2])
    assert_same_bits(odd, a[4::2])
    join(even, odd, out, 3)
    assert_same_bits(out[3:], a[3:])
    assert (out[:3] == 0).all()


@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [*FLOATS, np.int32, np.int64, np.uint64])
def test_gather_equals_fancy_indexing(dtype, index_type):
    @numba.njit
    def run(a, base, index, out):
        store(out, 0, lanes.gather(a, base, load(index, 0)))

    a = np.resize(edge_values(dtype), 50)
    index = np.array([0, 39, -10, 7, 7, 1, -1, 20], index_type)
    out = np.empty(LANES, dtype)
    run(a, 10, index, out)
    assert_same_bits(out, a[10 + index])


@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [*FLOATS, np.int32, np.int64, np.uint64, np.uint8, np.uint16])
def test_gather_pairs_equals_fancy_indexing_of_neighbours(dtype, index_type):
    @numba.njit
    def run(a, base, index, first, second):
        one, two = lanes.gather_pairs(a, base, load(index, 0))
        for k in range(LANES):
            first[k], second[k] = lanes.lane(one, k), lanes.lane(two, k)

    a = np.resize(edge_values(dtype), 50)
    index = np.array([0, 38, -10, 7, 7, 1, -1, 20], index_type)  # the second is the last pair, the third the first
    first, second = np.empty(LANES, dtype), np.empty(LANES, dtype)
    run(a, 10, index, first, second)
    assert_same_bits(first, a[10 + index])
    assert_same_bits(second, a[11 + index])


@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [*FLOATS, np.int16, np.int32, np.int64, np.uint8])
def test_gather_from_equals_fancy_indexing(dtype, index_type):
    @numba.njit
    def run(a, origins, base, offset, out):
        value = lanes.gather_from(a, origins, base, offset)
        for k in range(LANES):
            out[k] = lanes.lane(value, k)

    a = np.arange(60).astype(dtype)
    origins = np.array([9, 9, 0, 39, 10, 7, 7, 1, 5, 20], index_type)
    out = np.empty(LANES, dtype)
    run(a, origins, 2, 3, out)
    assert_same_bits(out, a[origins[2:10] + 3])


def test_prefetch_beyond_the_end_changes_nothing():
    @numba.njit
    def run(a):
        lanes.prefetch(a, 0)
        lanes.prefetch(a, a.size + 10**6)

    a = np.arange(8.0)
    run(a)
    np.testing.assert_array_equal(a, np.arange(8.0))


@pytest.mark.parametrize("dtype", NUMBERS)
def test_broadcast_copies_a_number_to_all_lanes(dtype):
    @numba.njit
    def run(number, out):
        store(out, 0, lanes.broadcast(number))

    out = np.empty(count_of(dtype), dtype)
    for value in edge_values(dtype):
        run(value, out)
        assert_same_bits(out, np.full_like(out, value))


@pytest.mark.parametrize("dtype", NUMBERS)
def test_broadcast_like_converts_an_integer_to_the_type_of_other_lanes(dtype):
    def run(a, out):
        return apply_unary(numba.njit(lambda value: lanes.broadcast_like(value, 7)), a, out)

    a = np.zeros(count_of(dtype), dtype)
    assert_same_bits(run(a, np.empty_like(a)), np.full_like(a, 7))


CASTS = [
    (np.float32, np.float64),
    (np.float64, np.float32),
    (np.int32, np.float32),
    (np.int32, np.float64),
    (np.int64, np.float64),
    (np.uint32, np.float32),
    (np.uint32, np.float64),
    (np.uint64, np.float64),
    (np.int32, np.int64),
    (np.int64, np.int32),
    (np.int32, np.uint32),
    (np.uint32, np.uint64),
    (np.uint32, np.int64),
    (np.float64, np.float64),
]


@pytest.mark.parametrize("source, target", CASTS)
def test_cast_equals_astype(source, target):
    @numba.njit
    def loop(a, out):
        for i in range(0, a.size, LANES):
            store(out, i, lanes.cast(load(a, i), out))

    a = np.resize(edge_values(source), 2 * LANES)
    out = np.empty(2 * LANES, target)
    loop(a, out)
    with np.errstate(all="ignore"):
        assert_same_bits(out, a.astype(target))


@pytest.mark.parametrize("source, target", [(np.float32, np.int32), (np.float64, np.int32), (np.float64, np.int64)])
def test_cast_of_floats_truncates_towards_zero(source, target):
    @numba.njit
    def run(a, out):
        store(out, 0, lanes.cast(load(a, 0), target))

    a = np.array([0.0, -0.0, 1.9, -1.9, 2.5, -0.5, 8388607, -8388608], source)
    out = np.empty(LANES, target)
    run(a, out)
    assert_same_bits(out, np.trunc(a))


def test_cast_of_sixteen_lanes_keeps_their_number():
    @numba.njit
    def run(a, out):
        value = lanes.cast(load(a, 0), np.int32)
        for k in range(WIDE):
            out[k] = lanes.lane(value, k)

    a = np.resize(edge_values(np.int16), WIDE)
    out = np.empty(WIDE, np.int32)
    run(a, out)
    np.testing.assert_array_equal(out, a)


@pytest.mark.parametrize("source, target", [(np.uint32, np.int32), (np.float32, np.int32), (np.float64, np.uint64)])
def test_reinterpret_equals_a_view(source, target):
    @numba.njit
    def loop(a, out):
        for i in range(0, a.size, LANES):
            store(out, i, lanes.reinterpret(load(a, i), target))

    a = np.resize(edge_values(source), 2 * LANES)
    out = np.empty(2 * LANES, target)
    loop(a, out)
    np.testing.assert_array_equal(out, a.view(target))


@pytest.mark.parametrize("dtype", NUMBERS)
def test_minimum_takes_the_second_where_neither_is_less(dtype):
    a, b = pairs(dtype)  # with NaN, and zeros of both signs: the second
    assert_same_bits(apply_binary(lanes.minimum, a, b, np.empty_like(a)), np.where(a < b, a, b))


@pytest.mark.parametrize("dtype", FLOATS + SIGNED)
def test_absolute_equals_numpy(dtype):
    a = np.resize(edge_values(dtype), 2 * WIDE)
    with np.errstate(all="ignore"):
        expected = np.abs(a)
    if np.issubdtype(dtype, np.integer):
        least = a == np.iinfo(dtype).min  # its magnitude is no number of the type: it stays
        assert least.any() and (expected[least] == np.iinfo(dtype).min).all()
    assert_same_bits(apply_unary(lanes.absolute, a, np.empty_like(a)), expected)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_where_equals_numpy(dtype):
    def choose(a, b):
        return lanes.where(a < b, b, a)

    a, b = pairs(dtype)
    assert_same_bits(apply_binary(numba.njit(choose), a, b, np.empty_like(a)), np.where(a < b, b, a))


def test_masks_and_integers_convert_both_ways():
    @numba.njit
    def run(number):
        return lanes.mask_to_int(lanes.int_to_mask(number))

    assert [run(number) for number in range(256)] == list(range(256))
    assert run(256 + 5) == 5  # bits above the lanes are ignored


def test_mask_of_sixteen_lanes_has_sixteen_bits():
    @numba.njit
    def run(a, b):
        return lanes.mask_to_int(load(a, 0) != load(b, 0))

    a = np.zeros(WIDE, np.int16)
    for k in range(WIDE):
        b = a.copy()
        b[k] = -1
        assert run(a, b) == 1 << k


def test_masks_combine_bit_by_bit():
    @numba.njit
    def run(a, b):
        x, y = lanes.int_to_mask(a), lanes.int_to_mask(b)
        return lanes.mask_to_int(x & y), lanes.mask_to_int(x | y), lanes.mask_to_int(x ^ y)

    assert run(0b11001010, 0b10011001) == (0b10001000, 0b11011011, 0b01010011)


def test_lowest_set_bit_of_every_power_and_sum_of_powers():
    @numba.njit
    def run(number):
        return lanes.lowest_set_bit(number)

    for k in range(63):
        assert run(1 << k) == k
        assert run((1 << k) | (1 << 62)) == k
    assert run(np.int64(np.iinfo(np.int64).min)) == 63
    assert run(-1) == 0


@pytest.mark.parametrize("dtype", NUMBERS)
def test_lane_returns_the_value_of_one_lane(dtype):
    @numba.njit
    def run(a, k):
        return lanes.lane(load(a, 0), k)

    a = np.resize(edge_values(dtype), count_of(dtype))
    assert_same_bits(np.array([run(a, k) for k in range(a.size)], dtype), a)


@pytest.mark.parametrize("dtype", FLOATS)
def test_sum_of_floats_is_in_the_documented_order(dtype):
    a = np.random.default_rng(0).normal(size=100 * LANES).astype(dtype) * dtype(10) ** np.arange(8).repeat(100)
    v = a.reshape(-1, LANES).T
    expected = ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]))
    assert_same_bits(apply_reduction(lanes.reduce_sum, a), expected)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_sum_of_integers_wraps_around(dtype):
    a = np.resize(edge_values(dtype), 3 * WIDE)
    expected = a.reshape(-1, count_of(dtype)).sum(axis=1, dtype=dtype)
    assert_same_bits(apply_reduction(lanes.reduce_sum, a), expected)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_least_of_the_lanes_equals_numpy(dtype):
    values = edge_values(dtype)
    a = np.random.default_rng(1).choice(values[~np.isnan(values)], 20 * WIDE)
    expected = a.reshape(-1, count_of(dtype)).min(axis=1)
    np.testing.assert_array_equal(apply_reduction(lanes.reduce_min, a), expected)


@pytest.mark.parametrize("dtype", [*NUMBERS, np.uint8])
def test_width_is_the_number_of_lanes_of_an_array_type(dtype):
    @numba.njit
    def run(a):
        return lanes.width(a)

    assert run(np.zeros(1, dtype)) == count_of(dtype)


def test_lane_numbers_count_from_zero():
    @numba.njit
    def run(out):
        store(out, 0, lanes.lane_numbers())

    out = np.empty(LANES, np.int32)
    run(out)
    np.testing.assert_array_equal(out, np.arange(LANES))
