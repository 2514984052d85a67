"""Bounds checks of loads, stores and gathers, for tests: with TREEFIELD_CHECKED=1 in the environment.

Numba's types know nothing of the names of variables, so the checks are written into the source of each function before
it is compiled: ``load(h, i)`` becomes ``load(h, check_lanes(h, i, "load", "h", "grid/lines.py, line 122"))``, where
`check_lanes` returns the index or raises. Arrays that are indexed in the ordinary way are checked by Numba.
Without the variable the functions are compiled as they are written.
"""

import ast
import inspect
import os
import textwrap

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from treefield.kernels.simd import numba_internals
from treefield.kernels.simd.lanes import (
    LANES,
    gather,
    gather_from,
    gather_pairs,
    lanes_of,
    load,
    load_deinterleaved,
    store,
    store_interleaved,
)

_I32, _I64 = ir.IntType(32), ir.IntType(64)

CHECKED = os.environ.get("TREEFIELD_CHECKED", "0") not in ("", "0")


class LaneIndexError(IndexError):
    """An access to elements that an array does not have."""

    def __init__(self, access, array, place, first, last, size):
        elements = f"element {first}" if first == last else f"lanes {first} to {last}"
        super().__init__(f'{access} of {elements} of array "{array}", which has {size} elements ({place})')


def insert_checks(function):
    """The same function with its accesses to arrays checked."""
    lines, start = inspect.getsourcelines(function)
    tree = ast.parse(textwrap.dedent("".join(lines)))
    ast.increment_lineno(tree, start - 1)
    definition = tree.body[0]
    definition.decorator_list = []
    path = function.__code__.co_filename
    _CheckInserter(function.__globals__, path).visit(definition)
    free = function.__code__.co_freevars
    if free:  # a function that closes over others: the same cells, in a factory that takes them as arguments
        arguments = ast.arguments([], [ast.arg(name) for name in free], None, [], [], None, [])
        result = ast.Return(ast.Name(definition.name, ast.Load()))
        tree.body = [ast.FunctionDef("factory", arguments, [definition, result], [])]
    function.__globals__.update(_CHECKS)
    namespace = {}
    exec(compile(ast.fix_missing_locations(tree), path, "exec"), function.__globals__, namespace)
    if free:
        checked = namespace["factory"](*(cell.cell_contents for cell in function.__closure__))
    else:
        checked = namespace[definition.name]
    checked.__qualname__ = function.__qualname__
    return checked


class _CheckInserter(ast.NodeTransformer):
    """Wraps the last index of each access in a check."""

    def __init__(self, names, path):
        self._names = names
        self._file = "/".join(path.replace(os.sep, "/").split("/")[-2:])

    def visit_Call(self, call):
        self.generic_visit(call)
        access = self._names.get(call.func.id) if isinstance(call.func, ast.Name) else None
        if not isinstance(access, type(load)) or access not in _ACCESSES:
            return call
        place = f"{self._file}, line {call.lineno}"
        if call.keywords or any(isinstance(argument, ast.Starred) for argument in call.args):
            raise TypeError(f"{place}: {call.func.id} takes positional arguments only")
        check, n_arrays, last = _ACCESSES[access]
        words = [call.func.id, *(ast.unparse(array) for array in call.args[:n_arrays]), place]
        arguments = [*call.args[: last + 1], *(ast.Constant(word) for word in words)]
        call.args[last] = ast.Call(ast.Name(check, ast.Load()), arguments, [])
        return call


def _check(context, builder, array_type, array, first, count, access, name, place):
    """Emit code that raises unless `count` elements from `first` on are inside an array."""
    size = context.make_array(array_type)(context, builder, array).nitems
    last = builder.add(first, ir.Constant(first.type, count - 1))
    outside = builder.or_(
        builder.icmp_signed("<", first, ir.Constant(first.type, 0)), builder.icmp_signed(">=", last, size)
    )
    with builder.if_then(outside, likely=False):
        words = tuple(word.literal_value for word in (access, name, place))
        numba_internals.raise_in_code(
            context, builder, LaneIndexError, (*words, first, last, size), (None, None, None, *[types.intp] * 3)
        )


def _extended(builder, index):
    return index if index.type == _I64 else builder.sext(index, _I64)


@intrinsic(prefer_literal=True)
def check_lanes(typingctx, array, index, access, name, place):
    """The index of a load or store."""
    count = 2 * LANES if "interleaved" in access.literal_value else lanes_of(array.dtype).count

    def codegen(context, builder, sig, args):
        _check(context, builder, array, args[0], args[1], count, access, name, place)
        return args[1]

    return types.intp(array, types.intp, access, name, place), codegen


@intrinsic(prefer_literal=True)
def check_gather(typingctx, array, base, index, access, name, place):
    """The lanes of indices of a gather."""

    count = 2 if "pairs" in access.literal_value else 1

    def codegen(context, builder, sig, args):
        for lane in range(index.count):
            position = _extended(builder, builder.extract_element(args[2], ir.Constant(_I32, lane)))
            _check(context, builder, array, args[0], builder.add(args[1], position), count, access, name, place)
        return args[2]

    return index(array, types.intp, index, access, name, place), codegen


@intrinsic(prefer_literal=True)
def check_gather_from(typingctx, array, origins, base, offset, access, name, origins_name, place):
    """The offset of a gather whose indices are in an array."""

    def codegen(context, builder, sig, args):
        _check(context, builder, origins, args[1], args[2], LANES, access, origins_name, place)
        first = builder.gep(context.make_array(origins)(context, builder, args[1]).data, [args[2]])
        for lane in range(LANES):
            origin = _extended(builder, builder.load(builder.gep(first, [ir.Constant(_I32, lane)])))
            _check(context, builder, array, args[0], builder.add(origin, args[3]), 1, access, name, place)
        return args[3]

    return types.intp(array, origins, types.intp, types.intp, access, name, origins_name, place), codegen


# for each access: the name of its check, how many arrays it takes, the position of its last index
_ACCESSES = {
    load: ("check_lanes", 1, 1),
    store: ("check_lanes", 1, 1),
    load_deinterleaved: ("check_lanes", 1, 1),
    store_interleaved: ("check_lanes", 1, 1),
    gather: ("check_gather", 1, 2),
    gather_pairs: ("check_gather", 1, 2),
    gather_from: ("check_gather_from", 2, 3),
}
_CHECKS = {"check_lanes": check_lanes, "check_gather": check_gather, "check_gather_from": check_gather_from}
