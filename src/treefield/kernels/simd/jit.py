"""The compiler of kernels: it caches them on disk, counts the time it takes and says when it takes long."""

import contextlib
import signal
import threading
import time

import numba
from numba.extending import overload, register_jitable

from treefield.kernels.simd import cache, numba_internals
from treefield.kernels.simd.checks import CHECKED, insert_checks
from treefield.kernels.simd.notices import Notice

_OPTIONS = {"error_model": "numpy"}
if CHECKED:
    _OPTIONS["boundscheck"] = True
else:
    _OPTIONS |= numba_internals.known_options(_nrt=False)  # no reference counting: kernels allocate nothing
_INLINE = _OPTIONS | numba_internals.known_options(forceinline=True)
_COMPILING = "compiling its kernels"
_CACHED = f"{_COMPILING}; this happens once, they are cached on disk for the next time"
_NO_FOLDER = f"{_COMPILING}, as in every run: there is no folder to cache them in; NUMBA_CACHE_DIR can name one"
_NOTICE_AFTER = 1.0


def _with_checks(decorate):
    """In the checked build, the decorator of a function into which bounds checks are inserted first."""
    return (lambda function: decorate(insert_checks(function))) if CHECKED else decorate


inline_helper = _with_checks(register_jitable(**_INLINE))
helper = _with_checks(register_jitable(**_OPTIONS))


def inline_overload(function, **options):
    """Decorate the function that returns an implementation of `function` for given types."""
    return _with_checks(overload(function, jit_options=_INLINE, **options))


@_with_checks
def kernel(function):
    """Compile a function of arrays on first use, for each combination of argument types."""
    dispatcher = numba.njit(nogil=True, **_OPTIONS)(function)
    with contextlib.suppress(RuntimeError):  # no folder to cache in, as on a read-only system without a home
        numba_internals.set_cache(dispatcher, cache.KernelCache(function))
    return dispatcher


def cache_folder():
    """The folder of compiled kernels; None if there is none that can be read or written."""
    folders, _ = cache.cache_folders()
    return str(folders[-1]) if folders else None


class CompileTime:
    """How long one thread has compiled or loaded kernels; other threads may read it."""

    def __init__(self):
        self.seconds = 0.0
        self.depth = 0
        self.start = 0.0
        self.timer = None


class _HeldInterrupt:
    """Holds Ctrl-C back until a kernel is compiled, unless the program or a search has its own handler.

    Within the compiler it would be raised in a callback from C, where it is printed and lost.
    """

    def __init__(self):
        self._holding = self._pressed = False

    def hold(self):
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._note)
            self._holding = True

    def release(self):
        if not self._holding or threading.current_thread() is not threading.main_thread():
            return
        signal.signal(signal.SIGINT, signal.default_int_handler)
        pressed, self._holding, self._pressed = self._pressed, False, False
        if pressed:
            raise KeyboardInterrupt

    def _note(self, number, frame):
        self._pressed = True


class _CompileClock:
    """Counts the time spent compiling or loading kernels; says so once if it takes long."""

    def __init__(self):
        self.notice = Notice()
        self._thread = threading.local()
        self._interrupt = _HeldInterrupt()

    @property
    def thread_time(self):
        """The compile time of the calling thread."""
        if not hasattr(self._thread, "time"):
            self._thread.time = CompileTime()
        return self._thread.time

    def on_start(self, function):
        if _is_ours(function):
            self.enter(notice=True)

    def on_end(self, function):
        if _is_ours(function):
            self.leave()

    def enter(self, notice=False):
        thread_time = self.thread_time
        thread_time.depth += 1
        if thread_time.depth == 1:
            thread_time.start = time.perf_counter()
            self._interrupt.hold()
        if notice and not self.notice.given and thread_time.timer is None:
            thread_time.timer = threading.Timer(_NOTICE_AFTER, self._say)
            thread_time.timer.daemon = True
            thread_time.timer.start()

    def leave(self):
        thread_time = self.thread_time
        thread_time.depth -= 1
        if thread_time.depth == 0:
            if thread_time.timer is not None:
                thread_time.timer.cancel()
                thread_time.timer = None
            thread_time.seconds += time.perf_counter() - thread_time.start
            self._interrupt.release()

    def _say(self):
        if cache_folder() is None:
            self.notice.give(_NO_FOLDER)
        else:
            self.notice.give(_COMPILING if cache.notice.given else _CACHED)


def _is_ours(function):
    return (getattr(function, "__module__", None) or "").startswith("treefield.")


_clock = _CompileClock()
numba_internals.listen_to_compiler(_clock.on_start, _clock.on_end)


def mute_compile_notice():
    """Give no notices: another process gives them."""
    _clock.notice.given = cache.notice.given = True


def compile_time() -> CompileTime:
    """The time this thread has spent, and will spend, compiling and loading kernels."""
    return _clock.thread_time


@contextlib.contextmanager
def as_compile_time():
    """Count the time inside as compilation: call a kernel on no work to have it ready."""
    _clock.enter()
    try:
        yield
    finally:
        _clock.leave()
