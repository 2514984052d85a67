"""Settings shared by all tests."""

import faulthandler
import signal
import sys

import hypothesis
import pytest

# No deadline: the first example of a kind compiles its kernels. The same examples each time.
hypothesis.settings.register_profile("treefield", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("treefield")

# Shells start what runs in the background with Ctrl-C ignored; the tests of it need it.
signal.signal(signal.SIGINT, signal.default_int_handler)

_LONGEST = 300  # seconds


@pytest.fixture
def no_elimination(monkeypatch):
    """`minimize` searches small models, too."""
    monkeypatch.setattr("treefield.solvers.minimize.solve_by_elimination", lambda *_: None)


@pytest.fixture
def no_hang():
    """For tests of other processes: one that waits for ever ends, with a word on where it waits."""
    faulthandler.dump_traceback_later(_LONGEST, exit=True, file=sys.__stderr__)
    yield
    faulthandler.cancel_dump_traceback_later()
