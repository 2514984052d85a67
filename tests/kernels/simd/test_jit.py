"""The compiler of kernels: what it compiles, the time it counts, Ctrl-C while it works."""

import os
import signal
import threading
import time

import numba
import numpy as np
import pytest

from treefield.kernels.simd import jit
from treefield.kernels.simd.jit import as_compile_time, compile_time, helper, inline_helper, inline_overload, kernel


@inline_helper
def double(x):
    return x + x


@helper
def square(x):
    return x * x


def describe(x):
    """1 for integers, 2 for floats."""


@inline_overload(describe)
def _describe_overload(x):
    if isinstance(x, numba.types.Integer):
        return lambda x: 1
    return lambda x: 2


@kernel
def combine(x, out):
    for i in range(x.size):
        out[i] = double(x[i]) + square(x[i]) + describe(x[i])


@kernel
def divide(x, y):
    return x / y


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))


def test_kernel_calls_helpers_and_picks_overloads_by_type():
    for dtype, kind in ((np.int64, 1), (np.float64, 2)):
        x = np.arange(5, dtype=dtype)
        out = np.empty_like(x)
        combine(x, out)
        np.testing.assert_array_equal(out, 2 * x + x * x + kind)


def test_helpers_stay_ordinary_functions():
    assert double(4) == 8 and square(4) == 16


def test_division_by_zero_is_infinite_as_in_numpy():
    assert divide(1.0, 0.0) == np.inf and np.isnan(divide(0.0, 0.0))


def test_kernels_release_the_interpreter():
    assert combine.targetoptions["nogil"] is True


def test_time_inside_as_compile_time_is_counted_once_and_for_this_thread():
    before = compile_time().seconds
    with as_compile_time(), as_compile_time():
        time.sleep(0.02)
    assert compile_time().seconds >= before + 0.02
    seen = []
    thread = threading.Thread(target=lambda: seen.append(compile_time().seconds))
    thread.start()
    thread.join()
    assert seen == [0.0]


def test_compile_time_ends_with_an_exception():
    with pytest.raises(ValueError, match="stop"), as_compile_time():
        raise ValueError("stop")
    assert compile_time().depth == 0


def test_interrupt_while_compiling_is_raised_after_it():
    reached = False
    with pytest.raises(KeyboardInterrupt), as_compile_time():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)
        reached = True
    assert reached and signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_interrupt_handler_of_the_program_is_left_alone():
    seen = []
    old = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        with as_compile_time():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
            assert seen == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, old)


def test_functions_of_other_packages_are_not_timed():
    before = compile_time().seconds
    numba.njit(lambda x: x + 1)(1)
    assert compile_time().seconds == before


def test_cache_folder_is_inside_the_configured_one(tmp_path):
    assert jit.cache_folder().startswith(str(tmp_path))
