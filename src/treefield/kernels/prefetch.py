"""Asking for memory before it is needed."""

from llvmlite import ir
from numba.core import types
from numba.core.cgutils import get_or_insert_function
from numba.extending import intrinsic


@intrinsic
def prefetch(typingctx, array, index):
    """Have the cache line of an array's element ready soon."""

    def codegen(context, builder, sig, args):
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        pointer = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, *[ir.IntType(32)] * 3])
        hint = get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        builder.call(hint, [pointer, *(ir.Constant(ir.IntType(32), n) for n in (0, 3, 1))])
        return context.get_dummy_value()

    return types.none(array, types.intp), codegen
