"""Memory as the kernels like it."""

import numpy as np

_LINE = 64  # bytes of a cache line: vectors that straddle two are slow


def aligned(size, dtype):
    """An uninitialised flat array that starts on a cache line."""
    dtype = np.dtype(dtype)
    raw = np.empty(size * dtype.itemsize + _LINE, np.uint8)
    start = -raw.ctypes.data % _LINE
    return raw[start : start + size * dtype.itemsize].view(dtype)
