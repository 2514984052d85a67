"""Operations on neighbouring lanes, on the first and the last lane, and in fixed point."""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from treefield.kernels.simd.lanes import Lanes, declare_unary, shuffle_mask, vector_of

_I32 = ir.IntType(32)


def _lane_number(number):
    return ir.Constant(_I32, number)


@intrinsic
def shift_up(typingctx, value, first):
    """Lane k takes the value of lane k - 1, lane 0 takes `first`."""

    def codegen(context, builder, sig, args):
        other = builder.insert_element(ir.Constant(vector_of(value), ir.Undefined), args[1], _lane_number(0))
        return builder.shuffle_vector(args[0], other, shuffle_mask([value.count, *range(value.count - 1)]))

    return value(value, value.element), codegen


@intrinsic
def shift_down(typingctx, value):
    """Lane k takes the value of lane k + 1; the last lane is undefined."""

    def codegen(context, builder, sig, args):
        return builder.shuffle_vector(args[0], args[0], shuffle_mask([*range(1, value.count), 0]))

    return value(value), codegen


@intrinsic
def replace_last(typingctx, value, last):
    """Replace the value of the last lane."""

    def codegen(context, builder, sig, args):
        return builder.insert_element(*args, _lane_number(value.count - 1))

    return value(value, value.element), codegen


@intrinsic
def first_lane(typingctx, value):
    """The value of lane 0."""
    return value.element(value), lambda context, builder, sig, args: builder.extract_element(args[0], _lane_number(0))


@intrinsic
def last_lane(typingctx, value):
    """The value of the last lane."""

    def codegen(context, builder, sig, args):
        return builder.extract_element(args[0], _lane_number(value.count - 1))

    return value.element(value), codegen


@intrinsic
def multiply_floor(typingctx, value, part):
    """Multiply each value by `part`: float64 is not rounded, float32 is rounded down to an integer.

    In int16, of values that are not negative, `part` is an unsigned number of 1 / 65536, and the product is rounded
    down.
    """

    def codegen(context, builder, sig, args):
        vector = args[0].type
        if isinstance(value.element, types.Float):
            product = builder.fmul(*args)
            if value.element.bitwidth == 64:
                return product
            return builder.call(declare_unary(builder, "floor", value), [product])
        wide = ir.VectorType(_I32, value.count)
        product = builder.mul(*(builder.zext(arg, wide) for arg in args))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, [16] * value.count)), vector)

    return value(value, value), codegen


@intrinsic
def widen(typingctx, value):
    """Convert to a type for sums of many values: int16 to int32, others to float64."""
    result = Lanes(types.int32 if value.element == types.int16 else types.float64, value.count)

    def codegen(context, builder, sig, args):
        if value.element == result.element:
            return args[0]
        return (builder.sext if value.element == types.int16 else builder.fpext)(args[0], vector_of(result))

    return result(value), codegen
