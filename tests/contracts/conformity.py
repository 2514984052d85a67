"""Whether an object has the members of a protocol, as declared."""

import ast
import inspect
from pathlib import Path
from typing import Protocol

import treefield

SOURCES = Path(treefield.__file__).parent


def members(protocol):
    """The public members of a protocol: functions, properties, and None for attributes that are only annotated."""
    found = {}
    for base in reversed(protocol.__mro__):
        if base in (object, Protocol) or not getattr(base, "_is_protocol", False):
            continue
        found |= dict.fromkeys(vars(base).get("__annotations__", {}))
        found |= {name: value for name, value in vars(base).items() if not name.startswith("_") or name == "__call__"}
    return {name: value for name, value in found.items() if not name.startswith("_") or name == "__call__"}


def parameters(function):
    return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]


def check_conforms(implementation, protocol):
    """Every method has the declared parameters, by name, kind and default; all else is a value, not a method."""
    cls = type(implementation)
    for name, declared in members(protocol).items():
        what = f"{cls.__name__}.{name}"
        assert hasattr(implementation, name), f"{what} is missing, {protocol.__name__} declares it"
        if inspect.isfunction(declared):
            assert inspect.isfunction(getattr(cls, name, None)), f"{what} must be a method"
            found = parameters(getattr(cls, name))
            assert found == parameters(declared), f"{what} has the parameters {found}"
        else:
            assert not inspect.isroutine(getattr(implementation, name)), f"{what} must be a property or an attribute"


def _modules(name):
    """A module of the package, or all of a folder."""
    path = SOURCES / name
    return path.rglob("*.py") if path.is_dir() else [path]


def attributes_used(*folders):
    """The names of all attributes that some modules and folders of the package read."""
    files = [path for name in folders for path in _modules(name)]
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in files]
    return {node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def backend_attributes_used(*folders):
    """The names X of all ``mrf.backend.X`` and ``backend.X`` in the modules of some folders."""
    files = [path for name in folders for path in _modules(name)]
    found = set()
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and "backend" in (
                getattr(node.value, "attr", None),
                getattr(node.value, "id", None),
            ):
                found.add(node.attr)
    return found
