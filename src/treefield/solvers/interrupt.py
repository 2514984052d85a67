"""Ctrl-C and SIGTERM stop a search at its next iteration, and wait while a file is written."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType


class Terminated(BaseException):
    """SIGTERM arrived while temporary files had to be removed."""


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


_DEFAULTS = {signal.SIGINT: (signal.default_int_handler,), signal.SIGTERM: (signal.SIG_DFL, _terminate)}


_Handler = Callable[[int, FrameType | None], object] | int | signal.Handlers | None


class Interrupts:
    """While entered, the first Ctrl-C or SIGTERM is noted in `pending`; a second Ctrl-C interrupts at once.

    Inside another one, it takes over until it is left: it starts with the other's note, and hands its own back. Outside
    the main thread, to which signals come, it shares the note of the one that is entered there. Signal handlers of the
    program's own are left alone. May be shared by searches that run in threads: one note stops them all.
    """

    def __init__(self) -> None:
        self._note_here = ""
        self._shared: Interrupts | None = None  # of the main thread
        self._number = 0  # of the signal
        self._installed: dict[signal.Signals, _Handler] = {}
        self._outer: Interrupts | None = None

    @property
    def pending(self) -> str:
        """What has interrupted, for a message; empty as long as nothing has."""
        return self._note_here or ("" if self._shared is None else self._shared.pending)

    @pending.setter
    def pending(self, note: str) -> None:
        self._note_here = note

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is not threading.main_thread():
            entered = getattr(signal.getsignal(signal.SIGINT), "__self__", None)
            self._shared = entered if type(entered) is Interrupts else None
            return self
        for number, defaults in _DEFAULTS.items():
            with contextlib.suppress(ValueError):  # not the main interpreter
                handler = signal.getsignal(number)
                outer = getattr(handler, "__self__", None)
                is_outer = type(outer) is Interrupts  # a subclass may have to interrupt at once
                if handler in defaults or is_outer:
                    self._installed[number] = signal.signal(number, self._note)
                    self._outer = outer if is_outer else None
        if self._outer is not None and self._outer.pending:
            self.pending, self._number = self._outer.pending, self._outer._number
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._installed.items():
            if signal.getsignal(number) == self._note:  # unless someone has put another there meanwhile
                signal.signal(number, handler)
        self._installed.clear()
        self._shared = None
        if self._outer is not None and self.pending:
            self._outer.pending, self._outer._number = self.pending, self._number

    def deliver(self) -> None:
        """After the exit, let the signal that was noted have its usual effect, unless an outer one has noted it."""
        if self.pending and self._outer is None:
            signal.raise_signal(self._number)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.pending and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.pending = "interrupted" if number == signal.SIGINT else "terminated (SIGTERM)"
        self._number = number


@contextlib.contextmanager
def defer_signals() -> Iterator[None]:
    """Let a block end before the first Ctrl-C or SIGTERM has its effect; a second Ctrl-C interrupts at once."""
    with Interrupts() as held:
        yield
    held.deliver()


@contextlib.contextmanager
def clean_up_on_sigterm() -> Iterator[None]:
    """Run the cleanup code of a block when SIGTERM ends the process: by default Python runs none."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    except Terminated:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTERM)
        raise
    finally:
        if signal.getsignal(signal.SIGTERM) is _terminate:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
