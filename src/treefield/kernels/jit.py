"""How our kernels are compiled: cached on disk, without the GIL, their time counted, and never silently slow."""

import contextlib
import functools
import pathlib
import sys
import threading
import time

import numba
from numba.core import event
from numba.extending import overload, register_jitable

_OPTIONS = {"error_model": "numpy", "_nrt": False}  # no reference counting: kernels allocate nothing
_NOTICE = "treefield: compiling its kernels; this happens once, they are cached on disk for the next time"
_NOTICE_AFTER = 1.0

inlined = register_jitable(forceinline=True, **_OPTIONS)
called = register_jitable(**_OPTIONS)
overload_inlined = functools.partial(overload, jit_options={"forceinline": True, **_OPTIONS})


def kernel(function):
    """Compile a function of arrays on first use, for each combination of argument types."""
    try:
        dispatcher = numba.njit(cache=True, nogil=True, **_OPTIONS)(function)
    except RuntimeError:  # no folder to cache in, as on a read-only system without a home
        return numba.njit(nogil=True, **_OPTIONS)(function)
    # Numba's cache looks only at the kernel's own file; ours must not outlive a change of the helpers inlined into it.
    dispatcher._cache._cache_file._source_stamp = _source_stamp()
    return dispatcher


@functools.cache
def _source_stamp():
    files = sorted(pathlib.Path(__file__).parent.glob("*.py"))
    return tuple((file.name, file.stat().st_mtime, file.stat().st_size) for file in files)


class _CompileClock(event.Listener):
    """Counts the time spent compiling or loading kernels; says so once if it takes long."""

    def __init__(self):
        self.noticed = False
        self._thread = threading.local()
        self._lock = threading.Lock()

    @property
    def seconds(self):
        return getattr(self._thread, "seconds", 0.0)

    def on_start(self, event):
        if _is_ours(event):
            self.enter(notice=True)

    def on_end(self, event):
        if _is_ours(event):
            self.leave()

    def enter(self, notice=False):
        local = self._thread
        local.depth = getattr(local, "depth", 0) + 1
        if local.depth == 1:
            local.start = time.perf_counter()
        if notice and not self.noticed and getattr(local, "timer", None) is None:
            local.timer = threading.Timer(_NOTICE_AFTER, self._say)
            local.timer.daemon = True
            local.timer.start()

    def leave(self):
        local = self._thread
        local.depth -= 1
        if local.depth == 0:
            if getattr(local, "timer", None) is not None:
                local.timer.cancel()
                local.timer = None
            local.seconds = self.seconds + time.perf_counter() - local.start

    def _say(self):
        with self._lock:
            if not self.noticed:
                self.noticed = True
                print(_NOTICE, file=sys.stderr, flush=True)


def _is_ours(event):
    function = getattr(event.data.get("dispatcher"), "py_func", None)
    return getattr(function, "__module__", "").startswith("treefield.")


_clock = _CompileClock()
event.register("numba:compile", _clock)


def compile_seconds() -> float:
    """Seconds this thread has spent compiling and loading kernels."""
    return _clock.seconds


@contextlib.contextmanager
def loading():
    """What runs inside counts as compilation: call a kernel on no work to have it ready."""
    _clock.enter()
    try:
        yield
    finally:
        _clock.leave()
