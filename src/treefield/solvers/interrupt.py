"""Ctrl-C and SIGTERM stop a search at its next iteration, so that what it has found is whole."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import Any

_DEFAULTS = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}


class Interrupts:
    """While entered, the first Ctrl-C or SIGTERM is noted in `pending`; a second Ctrl-C interrupts at once.

    Signal handlers of the program's own are left alone, and so is everything outside the main thread. May be shared by
    searches that run in threads: one note stops them all.
    """

    def __init__(self) -> None:
        self.pending = ""
        self._installed: dict[Any, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number, default in _DEFAULTS.items():
                with contextlib.suppress(ValueError):  # not the main interpreter
                    if signal.getsignal(number) == default:
                        self._installed[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *error: Any) -> None:
        for number, handler in self._installed.items():
            if signal.getsignal(number) == self._note:  # unless someone has put another there meanwhile
                signal.signal(number, handler)
        self._installed.clear()

    def _note(self, number: int, frame: Any) -> None:
        if self.pending and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.pending = "interrupted" if number == signal.SIGINT else "terminated (SIGTERM)"
