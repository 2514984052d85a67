"""More on lanes: shifting them by one, their ends, and the arithmetic of fixed point."""

from llvmlite import ir
from numba.core import types
from numba.core.cgutils import get_or_insert_function
from numba.extending import intrinsic

from treefield.kernels.lanes import Lanes, order_of, vector_of

_I32 = ir.IntType(32)


def _end(number):
    return ir.Constant(_I32, number)


@intrinsic
def shifted_up(typingctx, value, first):
    """Lane k takes the value of lane k - 1, lane 0 takes `first`."""

    def codegen(context, builder, sig, args):
        other = builder.insert_element(ir.Constant(vector_of(value), ir.Undefined), args[1], _end(0))
        return builder.shuffle_vector(args[0], other, order_of([value.count, *range(value.count - 1)]))

    return value(value, value.element), codegen


@intrinsic
def shifted_down(typingctx, value):
    """Lane k takes the value of lane k + 1; the last lane is of no use."""

    def codegen(context, builder, sig, args):
        return builder.shuffle_vector(args[0], args[0], order_of([*range(1, value.count), 0]))

    return value(value), codegen


@intrinsic
def with_last(typingctx, value, last):
    """The same lanes but for the last."""

    def codegen(context, builder, sig, args):
        return builder.insert_element(*args, _end(value.count - 1))

    return value(value, value.element), codegen


@intrinsic
def first_lane(typingctx, value):
    """The value of lane 0."""
    return value.element(value), lambda context, builder, sig, args: builder.extract_element(args[0], _end(0))


@intrinsic
def last_lane(typingctx, value):
    """The value of the last lane."""

    def codegen(context, builder, sig, args):
        return builder.extract_element(args[0], _end(value.count - 1))

    return value.element(value), codegen


@intrinsic
def share(typingctx, value, part):
    """A part of each value, at most: in float64 the product, in float32 that rounded down to an integer, in int16 (of
    values that are not negative) the same for parts in units of 1 / 65536."""

    def codegen(context, builder, sig, args):
        vector = args[0].type
        if isinstance(value.element, types.Float):
            product = builder.fmul(*args)
            if value.element.bitwidth == 64:
                return product
            floor = get_or_insert_function(
                builder.module, ir.FunctionType(vector, [vector]), f"llvm.floor.v{value.count}f32"
            )
            return builder.call(floor, [product])
        wide = ir.VectorType(_I32, value.count)
        product = builder.mul(*(builder.zext(arg, wide) for arg in args))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, [16] * value.count)), vector)

    return value(value, value), codegen


@intrinsic
def widened(typingctx, value):
    """The same values in a type in which many can be added up: int32 for int16, else float64."""
    result = Lanes(types.int32 if value.element == types.int16 else types.float64, value.count)

    def codegen(context, builder, sig, args):
        if value.element == result.element:
            return args[0]
        return (builder.sext if value.element == types.int16 else builder.fpext)(args[0], vector_of(result))

    return result(value), codegen
