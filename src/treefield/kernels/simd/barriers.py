"""Waiting for other threads inside a kernel: handing work over in Python takes a tenth of a millisecond each time."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from treefield.kernels.simd.jit import inline_helper

_SPINS = 20_000  # about a tenth of a millisecond


@intrinsic
def _add_one(typingctx, counts, index):
    """Add one to an int64, atomically."""

    def codegen(context, builder, sig, args):
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        builder.atomic_rmw("add", builder.gep(data, [args[1]]), ir.Constant(ir.IntType(64), 1), "seq_cst")
        return context.get_dummy_value()

    return types.void(counts, types.intp), codegen


@intrinsic
def _load(typingctx, counts, index):
    """An int64 that other threads change."""

    def codegen(context, builder, sig, args):
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        return builder.load_atomic(builder.gep(data, [args[1]]), "seq_cst", 8)

    return types.int64(counts, types.intp), codegen


@inline_helper
def arrive(arrivals, phase):
    """Tell the other threads that this one has ended a phase. `arrivals` is an int64 array [phase]."""
    _add_one(arrivals, phase)


@inline_helper
def have_arrived(arrivals, phase, threads):
    """Wait until all threads have ended a phase; False if that takes long, as where threads share a core."""
    spins = 0
    while _load(arrivals, phase) < threads and spins < _SPINS:
        spins += 1
    return spins < _SPINS
