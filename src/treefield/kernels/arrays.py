"""Memory as the kernels like it."""

import numpy as np

_LINE = 64  # bytes of a cache line: vectors that straddle two are slow


def aligned(size, dtype):
    """An uninitialised flat array that starts on a cache line."""
    return _on_a_line(np.empty, size, dtype)


def zeros(size, dtype):
    """The same full of zeros; memory is taken when first written to."""
    return _on_a_line(np.zeros, size, dtype)


def _on_a_line(new, size, dtype):
    dtype = np.dtype(dtype)
    raw = new(size * dtype.itemsize + _LINE, np.uint8)
    start = -raw.ctypes.data % _LINE
    return raw[start : start + size * dtype.itemsize].view(dtype)
