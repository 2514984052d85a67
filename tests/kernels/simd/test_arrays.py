"""Arrays that start on a cache line."""

import numpy as np
import pytest

from treefield.kernels.simd.arrays import aligned, zeros

TYPES = [np.uint8, np.int16, np.int32, np.int64, np.float32, np.float64, "uint64", np.dtype("f8")]


@pytest.mark.parametrize("new", [aligned, zeros])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("size", [0, 1, 7, 64, 1001])
def test_array_is_flat_writable_and_starts_on_a_cache_line(new, dtype, size):
    array = new(size, dtype)
    assert array.shape == (size,) and array.dtype == np.dtype(dtype)
    assert array.flags.c_contiguous and array.flags.writeable and array.flags.aligned
    assert size == 0 or array.ctypes.data % 64 == 0
    array[:] = 1
    np.testing.assert_array_equal(array, np.ones(size, dtype))


@pytest.mark.parametrize("dtype", TYPES)
def test_zeros_are_zero(dtype):
    for size in (1, 1000, 100_000):
        assert not zeros(size, dtype).any()


def test_arrays_do_not_overlap():
    arrays = [aligned(33, np.float64) for _ in range(50)]
    for number, array in enumerate(arrays):
        array[:] = number
    assert all((array == number).all() for number, array in enumerate(arrays))
