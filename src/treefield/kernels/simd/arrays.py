"""Arrays that start on a cache line."""

import numpy as np

_LINE = 64  # bytes of a cache line: loads that straddle two are slow


def aligned(size, dtype):
    """An uninitialised flat array that starts on a cache line."""
    return _aligned_view(np.empty, size, dtype)


def zeros(size, dtype):
    """A flat array of zeros that starts on a cache line; the system provides its memory on the first write."""
    return _aligned_view(np.zeros, size, dtype)


def _aligned_view(new, size, dtype):
    dtype = np.dtype(dtype)
    raw = new(size * dtype.itemsize + _LINE, np.uint8)
    start = -raw.ctypes.data % _LINE
    return raw[start : start + size * dtype.itemsize].view(dtype)
