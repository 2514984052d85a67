"""The only place that reaches into Numba where its documentation does not.

Each name is looked up when it is used, or once with a fallback. If a future Numba renames one, the feature built on it
is lost (the disk cache, the compile notice, the count of compile time) and everything else works.
"""

import importlib


def _find(module, name):
    """An attribute of one of Numba's private modules; None if it is no longer there."""
    try:
        return getattr(importlib.import_module(f"numba.core.{module}"), name, None)
    except ImportError:
        return None


def known_options(**options):
    """The compile options among these that this version of Numba knows; it raises on others."""
    target = getattr(_find("registry", "cpu_target"), "options", None)
    return {name: value for name, value in options.items() if hasattr(target, name)}


def listen_to_compiler(on_start, on_end):
    """Call `on_start(function)` and `on_end(function)` around each compilation or load of a Python function.

    Returns whether this version of Numba makes it possible.
    """
    listener, register = _find("event", "Listener"), _find("event", "register")
    if listener is None or register is None:
        return False

    class Compilations(listener):
        def on_start(self, event):
            on_start(_compiled_function(event))

        def on_end(self, event):
            on_end(_compiled_function(event))

    try:
        register("numba:compile", Compilations())
    except (TypeError, ValueError):
        return False
    return True


def _compiled_function(event):
    data = getattr(event, "data", None)
    dispatcher = data.get("dispatcher") if isinstance(data, dict) else None
    return getattr(dispatcher, "py_func", None)


def set_cache(dispatcher, cache):
    """Make a dispatcher ask `cache` before it compiles; does nothing if it has no attribute for that."""
    if hasattr(dispatcher, "_cache"):
        dispatcher._cache = cache


def machine_key(codegen):
    """The target that code is generated for: triple, CPU and its features."""
    return codegen.magic_tuple()


def is_cachable(compiled):
    """Whether compiled code holds no addresses of this process."""
    return not compiled.library.has_dynamic_globals and not compiled.lifted


def reduce(compiled):
    """The parts of compiled code that can be pickled."""
    return compiled._reduce()


def rebuild(context, parts):
    """Compiled code from the parts of `reduce`."""
    return _find("compiler", "CompileResult")._rebuild(context, *parts)


def dumps(value):
    """Pickle `value`, functions and types of Numba included."""
    return _find("serialize", "dumps")(value)


def raise_in_code(context, builder, exception, arguments, dynamic_types):
    """Emit code that raises an exception; those arguments that are LLVM values are filled in at run time."""
    context.call_conv.return_dynamic_user_exc(builder, exception, arguments, dynamic_types)
