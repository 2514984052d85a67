"""Lanes: a SIMD vector type for Numba, of eight numbers (sixteen of int16).

Numba has no way to say that arrays do not alias, so LLVM does not vectorise short inner loops over lanes. This module
adds a Numba type whose LLVM model is ``<8 x T>`` and a lowering for each operation; LLVM compiles it to AVX, AVX-512 or
NEON as the host allows. The number of lanes is the same on every machine and no operation carries fast-math flags, so
every machine computes the same bits.

Operators ``+ += - * < <= == != & | ^ << >>`` work on lanes of one type (``>>`` fills with zeros); the functions below
do the rest.
"""

import operator

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

LANES = 8
WIDE = 16  # lanes of int16

_I32 = ir.IntType(32)


class Lanes(types.Type):
    """The Numba type of `count` values of one scalar type (a boolean element makes a mask)."""

    def __init__(self, element: types.Type, count: int) -> None:
        self.element, self.count = element, count
        super().__init__(name=f"Lanes({element}, {count})")


MASK = Lanes(types.boolean, LANES)


def lanes_of(element):
    """The lanes that hold values of a scalar type."""
    return Lanes(element, WIDE if element == types.int16 else LANES)


def vector_of(lanes):
    """The LLVM type of lanes."""
    element = lanes.element
    if isinstance(element, types.Float):
        scalar = ir.FloatType() if element.bitwidth == 32 else ir.DoubleType()
    else:
        scalar = ir.IntType(1 if element == types.boolean else element.bitwidth)
    return ir.VectorType(scalar, lanes.count)


def shuffle_mask(numbers):
    """The LLVM constant that says which lane a shuffle takes for each lane of its result."""
    return ir.Constant(ir.VectorType(_I32, len(numbers)), list(numbers))


@register_model(Lanes)
class LanesModel(models.PrimitiveModel):
    """Lanes live in a vector register."""

    def __init__(self, dmm, fe_type):
        super().__init__(dmm, fe_type, vector_of(fe_type))


def _is_float(lanes):
    return isinstance(lanes.element, types.Float)


def _arithmetic(operation, on_floats, on_integers):
    @type_callable(operation)
    def type_lanes(context):
        return lambda a, b: a if isinstance(a, Lanes) and a == b else None

    @lower_builtin(operation, Lanes, Lanes)
    def lower(context, builder, sig, args):
        return getattr(builder, on_floats if _is_float(sig.args[0]) else on_integers)(*args)


def _comparison(operation, symbol):
    @type_callable(operation)
    def type_mask(context):
        return lambda a, b: Lanes(types.boolean, a.count) if isinstance(a, Lanes) and a == b else None

    @lower_builtin(operation, Lanes, Lanes)
    def lower(context, builder, sig, args):
        return _compare(builder, sig.args[0], symbol, *args)


def _compare(builder, lanes, symbol, a, b):
    if _is_float(lanes):
        return builder.fcmp_unordered(symbol, a, b) if symbol == "!=" else builder.fcmp_ordered(symbol, a, b)
    return (builder.icmp_signed if lanes.element.signed else builder.icmp_unsigned)(symbol, a, b)


for _operation, _names in {
    operator.add: ("fadd", "add"),
    operator.iadd: ("fadd", "add"),
    operator.sub: ("fsub", "sub"),
    operator.mul: ("fmul", "mul"),
    operator.and_: ("and_", "and_"),
    operator.or_: ("or_", "or_"),
    operator.xor: ("xor", "xor"),
    operator.lshift: ("shl", "shl"),
    operator.rshift: ("lshr", "lshr"),
}.items():
    _arithmetic(_operation, *_names)
for _operation, _symbol in {operator.lt: "<", operator.le: "<=", operator.eq: "==", operator.ne: "!="}.items():
    _comparison(_operation, _symbol)


def _pointer(context, builder, array_type, array, index):
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [index])


def _align(array_type):
    return array_type.dtype.bitwidth // 8


@intrinsic
def load(typingctx, array, index):
    """The eight values of a flat `array` from `index` on, in the array's own type."""

    def codegen(context, builder, sig, args):
        pointer = _pointer(context, builder, sig.args[0], *args)
        return builder.load(
            builder.bitcast(pointer, vector_of(lanes_of(array.dtype)).as_pointer()), align=_align(array)
        )

    return lanes_of(array.dtype)(array, types.intp), codegen


@intrinsic
def store(typingctx, array, index, value):
    """Write eight values to a flat `array` from `index` on."""

    def codegen(context, builder, sig, args):
        pointer = _pointer(context, builder, sig.args[0], *args[:2])
        builder.store(args[2], builder.bitcast(pointer, args[2].type.as_pointer()), align=_align(array))
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes_of(array.dtype)), codegen


@intrinsic
def load_deinterleaved(typingctx, array, index):
    """Sixteen values of a flat `array` from `index` on: the first, third, ... and the second, fourth, ..."""

    def codegen(context, builder, sig, args):
        pointer = _pointer(context, builder, sig.args[0], *args)
        vector = vector_of(lanes_of(array.dtype))
        double = ir.VectorType(vector.element, 2 * LANES)
        both = builder.load(builder.bitcast(pointer, double.as_pointer()), align=_align(array))
        orders = [shuffle_mask(range(k, 2 * LANES, 2)) for k in range(2)]
        return context.make_tuple(
            builder, sig.return_type, [builder.shuffle_vector(both, both, order) for order in orders]
        )

    return types.UniTuple(lanes_of(array.dtype), 2)(array, types.intp), codegen


@intrinsic
def store_interleaved(typingctx, array, index, a, b):
    """Write sixteen values to a flat `array` from `index` on, alternately of `a` and of `b`."""

    def codegen(context, builder, sig, args):
        pointer = _pointer(context, builder, sig.args[0], *args[:2])
        order = [lane + k * LANES for lane in range(LANES) for k in range(2)]
        both = builder.shuffle_vector(args[2], args[3], shuffle_mask(order))
        builder.store(both, builder.bitcast(pointer, both.type.as_pointer()), align=_align(array))
        return context.get_dummy_value()

    lanes = lanes_of(array.dtype)
    return types.void(array, types.intp, lanes, lanes), codegen


@intrinsic
def prefetch(typingctx, array, index):
    """Ask for the cache line of a flat `array` at `index`, which may lie beyond its end."""

    def codegen(context, builder, sig, args):
        pointer = builder.bitcast(_pointer(context, builder, sig.args[0], *args), ir.IntType(8).as_pointer())
        signature = ir.FunctionType(ir.VoidType(), [pointer.type] + 3 * [_I32])
        function = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], signature)
        builder.call(function, [pointer, ir.Constant(_I32, 0), ir.Constant(_I32, 3), ir.Constant(_I32, 1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen


@intrinsic
def gather(typingctx, array, base, index):
    """The value of a flat `array` at `base` + each lane's own index (int32 or int64 lanes)."""

    def codegen(context, builder, sig, args):
        result = ir.Constant(vector_of(lanes_of(array.dtype)), ir.Undefined)
        first = _pointer(context, builder, sig.args[0], args[0], args[1])
        for lane in range(index.count):
            position = builder.extract_element(args[2], ir.Constant(_I32, lane))
            result = builder.insert_element(
                result, builder.load(builder.gep(first, [position])), ir.Constant(_I32, lane)
            )
        return result

    return lanes_of(array.dtype)(array, types.intp, index), codegen


@intrinsic
def gather_pairs(typingctx, array, base, index):
    """The values of a flat `array` at `base` + each lane's own index, and those right after them."""

    def codegen(context, builder, sig, args):
        vector = vector_of(lanes_of(array.dtype))
        pair = ir.VectorType(vector.element, 2)
        first = _pointer(context, builder, sig.args[0], args[0], args[1])
        parts = []
        for lane in range(index.count):
            position = builder.extract_element(args[2], ir.Constant(_I32, lane))
            pointer = builder.bitcast(builder.gep(first, [position]), pair.as_pointer())
            parts.append(builder.load(pointer, align=_align(array)))
        while len(parts) > 1:
            order = shuffle_mask(range(2 * parts[0].type.count))
            parts = [builder.shuffle_vector(a, b, order) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        orders = [shuffle_mask(range(k, 2 * LANES, 2)) for k in range(2)]
        return context.make_tuple(
            builder, sig.return_type, [builder.shuffle_vector(parts[0], parts[0], order) for order in orders]
        )

    return types.UniTuple(lanes_of(array.dtype), 2)(array, types.intp, index), codegen


@intrinsic
def gather_from(typingctx, array, origins, base, offset):
    """The value of a flat `array` at origins[base + lane] + offset, for each lane."""

    def codegen(context, builder, sig, args):
        result = ir.Constant(vector_of(lanes_of(array.dtype)), ir.Undefined)
        moved = _pointer(context, builder, sig.args[0], args[0], args[3])
        first = _pointer(context, builder, sig.args[1], args[1], args[2])
        for lane in range(LANES):
            origin = builder.load(builder.gep(first, [ir.Constant(_I32, lane)]))
            result = builder.insert_element(result, builder.load(builder.gep(moved, [origin])), ir.Constant(_I32, lane))
        return result

    return lanes_of(array.dtype)(array, origins, types.intp, types.intp), codegen


@intrinsic
def broadcast(typingctx, scalar):
    """Copies of one number."""
    lanes = lanes_of(scalar)
    return lanes(scalar), lambda context, builder, sig, args: splat(builder, lanes, args[0])


def splat(builder, lanes, number):
    """Emit the copy of a number to all lanes."""
    empty = ir.Constant(vector_of(lanes), ir.Undefined)
    first = builder.insert_element(empty, number, ir.Constant(_I32, 0))
    return builder.shuffle_vector(first, empty, shuffle_mask([0] * lanes.count))


@intrinsic
def broadcast_like(typingctx, like, number):
    """Copies of an integer, in the type of other lanes."""

    def codegen(context, builder, sig, args):
        return splat(builder, like, context.cast(builder, args[1], number, like.element))

    return like(like, number), codegen


@intrinsic
def cast(typingctx, value, like):
    """Convert lanes to the element type of `like`, an array or a NumPy scalar type."""
    source, target = value.element, like.dtype
    result = Lanes(target, value.count)

    def codegen(context, builder, sig, args):
        vector = vector_of(result)
        if source == target:
            return args[0]
        if isinstance(source, types.Float):
            if isinstance(target, types.Float):
                return (builder.fpext if target.bitwidth > source.bitwidth else builder.fptrunc)(args[0], vector)
            return builder.fptosi(args[0], vector)
        if isinstance(target, types.Float):
            return (builder.sitofp if source.signed else builder.uitofp)(args[0], vector)
        if target.bitwidth < source.bitwidth:
            return builder.trunc(args[0], vector)
        return (builder.sext if source.signed else builder.zext)(args[0], vector)

    return result(value, like), codegen


@intrinsic
def reinterpret(typingctx, value, like):
    """The same bits read as another type of the same size, that of `like`, an array or a NumPy scalar type."""

    result = Lanes(like.dtype, value.count)
    return result(value, like), lambda context, builder, sig, args: builder.bitcast(args[0], vector_of(result))


def declare_unary(builder, name, lanes):
    """One of LLVM's functions of a float vector, such as fabs or floor."""
    vector = vector_of(lanes)
    suffix = f"v{lanes.count}f{lanes.element.bitwidth}"
    return builder.module.declare_intrinsic(f"llvm.{name}.{suffix}", (), ir.FunctionType(vector, [vector]))


@intrinsic
def minimum(typingctx, a, b):
    """The lesser of each pair; `b` where they are equal."""

    def codegen(context, builder, sig, args):
        return builder.select(_compare(builder, a, "<", *args), *args)

    return a(a, a), codegen


@intrinsic
def absolute(typingctx, a):
    """The magnitude of each lane."""

    def codegen(context, builder, sig, args):
        vector = args[0].type
        if not _is_float(a):
            negated = builder.sub(ir.Constant(vector, None), args[0])
            return builder.select(_compare(builder, a, "<", *args, negated), negated, args[0])
        return builder.call(declare_unary(builder, "fabs", a), args)

    return a(a), codegen


@intrinsic
def where(typingctx, mask, a, b):
    """`a` where the mask holds, else `b`."""
    return a(Lanes(types.boolean, a.count), a, a), lambda context, builder, sig, args: builder.select(*args)


@intrinsic
def mask_to_int(typingctx, mask):
    """The mask as an integer, lane k in bit k."""

    def codegen(context, builder, sig, args):
        return builder.zext(builder.bitcast(args[0], ir.IntType(mask.count)), ir.IntType(64))

    return types.int64(mask), codegen


@intrinsic
def lowest_set_bit(typingctx, number):
    """The position of the lowest bit set in an integer other than 0."""

    def codegen(context, builder, sig, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.int64), codegen


@intrinsic
def int_to_mask(typingctx, number):
    """The mask whose lane k is bit k of an integer."""

    def codegen(context, builder, sig, args):
        return builder.bitcast(builder.trunc(args[0], ir.IntType(LANES)), vector_of(MASK))

    return MASK(types.int64), codegen


@intrinsic
def lane(typingctx, value, k):
    """One lane's value."""

    def codegen(context, builder, sig, args):
        return builder.extract_element(args[0], args[1])

    return value.element(value, types.intp), codegen


def _reduce(value, builder, vector, fold):
    """Combine all lanes to one number: the upper half with the lower, then the quarters, and so on."""
    half = value.count // 2
    while half:
        order = shuffle_mask([(k + half) % value.count for k in range(value.count)])
        vector = fold(vector, builder.shuffle_vector(vector, vector, order))
        half //= 2
    return builder.extract_element(vector, ir.Constant(_I32, 0))


@intrinsic
def reduce_sum(typingctx, value):
    """The sum of the lanes, always in the same order: of eight ((0+4)+(2+6)) + ((1+5)+(3+7))."""
    return value.element(value), lambda context, builder, sig, args: _reduce(
        value, builder, args[0], builder.fadd if _is_float(value) else builder.add
    )


@intrinsic
def reduce_min(typingctx, value):
    """The least of the lanes."""
    return value.element(value), lambda context, builder, sig, args: _reduce(
        value, builder, args[0], lambda a, b: builder.select(_compare(builder, value, "<", a, b), a, b)
    )


@intrinsic
def width(typingctx, array):
    """How many lanes hold values of an array's type."""
    count = lanes_of(array.dtype).count
    return types.intp(array), lambda context, builder, sig, args: ir.Constant(ir.IntType(64), count)


@intrinsic
def lane_numbers(typingctx):
    """0 1 2 3 4 5 6 7, as int32 lanes."""
    lanes = lanes_of(types.int32)
    return lanes(), lambda context, builder, sig, args: shuffle_mask(range(LANES))
