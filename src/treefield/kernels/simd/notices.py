"""Lines on stderr that are printed at most once in a process."""

import contextlib
import sys
import threading


class Notice:
    """One line on stderr; every call after the first prints nothing."""

    def __init__(self):
        self.given = False
        self._lock = threading.Lock()

    def give(self, text):
        with self._lock:
            first, self.given = not self.given, True
        if first and sys.stderr is not None:  # print would take None for stdout
            with contextlib.suppress(OSError, ValueError):  # a closed stderr must not end a search
                print(f"treefield: {text}", file=sys.stderr, flush=True)  # noqa: T201
