"""Compensated sums of float64 numbers."""

from treefield.kernels.simd.jit import inline_helper


@inline_helper
def add_exactly(total, carried, value):
    """Add a value to ``total + carried``, where `carried` collects what rounding takes off the total (Neumaier)."""
    grown = total + value
    if abs(total) >= abs(value):
        carried += (total - grown) + value
    else:
        carried += (value - grown) + total
    return grown, carried
