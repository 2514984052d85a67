"""Digests by which a checkpoint recognises its model, and the parts of its search, in another process.

A part with a ``__repr__`` that shows its settings, such as the moves of treefield, is known by it. A function, or an
object with Python's default repr, is known by a digest of its content: the code, default values, closure and global
variables of a function, the attributes and the class of an object. Functions and classes of installed packages, and
modules, count by their names. A part whose content cannot be listed (an open file, a lock) is refused.
"""

from __future__ import annotations

import copyreg
import dis
import functools
import hashlib
import pathlib
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar, cast

import numpy as np

from treefield.protocols import Model

Named = TypeVar("Named", types.FunctionType, type)

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # in a default repr; differs from one process to the next
_LONGEST = 500  # characters of a repr that are kept as they are
_ATOMIC_TYPES = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis))


def model_digest(mrf: Model) -> str:
    """A digest of everything that makes a model."""
    return _Content().digest(mrf.backend.fingerprint_parts()).hex()


def describe_part(part: object, name: str) -> str:
    """A part of a search (the argument `name`) as text: equal for equal parts, in any process; or an error."""
    if isinstance(part, list | tuple | np.ndarray):  # trees, given by their sites
        return f"trees {_Content().digest([np.asarray(sites, np.int64) for sites in part]).hex()}"
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):  # arrays in full
        text = repr(part)
    if not _ADDRESS.search(text):
        return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({_Content().digest(text).hex()})"
    short = _ADDRESS.sub("", text)[:_LONGEST].replace("\n", " ")
    try:
        return f"{short} (code and values {_Content().digest(part).hex()})"
    except Exception as error:  # __reduce_ex__ of a foreign class may raise anything
        raise ValueError(
            f"{name}={short} cannot be recognised when the search is resumed ({error}): "
            "give its class a __repr__ that shows its settings, or leave checkpoint out"
        ) from error


class _Content:
    """Digests of objects by their content. Functions and classes met before, and cycles, count by name."""

    def __init__(self) -> None:
        self._met: dict[int, object] = {}  # functions and classes by their id
        self._above: list[object] = []  # the objects that the one at hand is part of

    def digest(self, part: object) -> bytes:
        """The digest of an object: that of its kind and of all its parts."""
        digest = hashlib.blake2b(type(part).__qualname__.encode(), digest_size=16)
        if isinstance(part, _ATOMIC_TYPES):
            digest.update(repr(part).encode())
        elif isinstance(part, np.ndarray) and not part.dtype.hasobject:
            digest.update(f"{part.dtype.descr}{part.shape}".encode())
            digest.update(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)
        elif any(part is one for one in self._above):
            digest.update(b"a cycle")
        else:
            self._above.append(part)
            inner = [self.digest(one) for one in self._list_parts(part)]
            self._above.pop()
            for one in sorted(inner) if isinstance(part, set | frozenset) else inner:
                digest.update(one)
        return digest.digest()

    def _list_parts(self, part: object) -> Iterator[object]:
        if isinstance(part, types.ModuleType):
            return iter((part.__name__,))
        if isinstance(part, types.FunctionType):
            return self._by_name_or(self._function, part)
        if isinstance(part, type):
            return self._by_name_or(self._class, part)
        if type(part) in (list, tuple) or isinstance(part, set | frozenset):
            return iter(cast(Iterable[object], part))
        return _list_object_parts(part)

    def _by_name_or(self, parts: Callable[[Named], Iterator[object]], part: Named) -> Iterator[object]:
        yield f"{part.__module__}.{part.__qualname__}"
        if id(part) not in self._met and not _is_installed(part.__module__):
            self._met[id(part)] = part
            yield from parts(part)

    def _function(self, function: types.FunctionType) -> Iterator[object]:
        yield function.__code__
        yield function.__defaults__
        yield function.__kwdefaults__
        yield function.__dict__
        for cell in function.__closure__ or ():
            try:
                yield cell.cell_contents
            except ValueError:  # not assigned yet
                yield "an empty cell"
        for name in sorted(_global_names(function.__code__) & function.__globals__.keys()):
            yield name, function.__globals__[name]

    def _class(self, kind: type) -> Iterator[object]:
        yield kind.__bases__
        for name, value in sorted(vars(kind).items()):
            value = _unwrapped(value)
            if isinstance(value, types.FunctionType) or not (name.startswith("__") or name == "_abc_impl"):
                yield name, value


def _list_object_parts(part: object) -> Iterator[object]:
    """The parts of any other object; what pickle would keep where nothing better is known."""
    part = _unwrapped(part)
    if isinstance(part, types.FunctionType):
        yield part
    elif isinstance(part, types.CodeType):
        yield from (part.co_code, part.co_consts, part.co_names, part.co_varnames, part.co_freevars)
        yield part.co_exceptiontable
    elif isinstance(part, dict):
        yield from part.items()
    elif isinstance(part, Model):
        yield from part.backend.fingerprint_parts()
    elif type(part).__module__.startswith("treefield.") and type(part).__repr__ is object.__repr__:
        raise TypeError(f"{type(part).__name__} holds buffers that change with use; name the trees with trees= instead")
    else:
        reduce = copyreg.dispatch_table.get(type(part))
        reduced = part.__reduce_ex__(4) if reduce is None else reduce(part)
        if isinstance(reduced, str):  # the name of a global object
            yield from (getattr(part, "__module__", None), reduced, getattr(part, "__wrapped__", None))
        else:
            yield from (list(one) if isinstance(one, Iterator) else one for one in reduced)


def _unwrapped(value: object) -> object:
    """The function behind a static or class method, a property, or a function compiled by Numba."""
    if isinstance(value, staticmethod | classmethod):
        return value.__func__
    if isinstance(value, property | functools.cached_property):
        return value.fget if isinstance(value, property) else value.func
    compiled = getattr(value, "py_func", None)
    return compiled if isinstance(compiled, types.FunctionType) else value


def _global_names(code: types.CodeType) -> set[str]:
    """The global variables that a function, and those defined in it, read."""
    names = {step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _global_names(constant)
    return names


def _is_installed(module: str | None) -> bool:
    """Whether a module belongs to Python, to treefield or to another installed package."""
    top = (module or "").partition(".")[0]
    if top in sys.stdlib_module_names or top == "treefield":
        return True
    file = getattr(sys.modules.get(module or ""), "__file__", None) or ""
    return not {"site-packages", "dist-packages"}.isdisjoint(pathlib.Path(file).parts)
