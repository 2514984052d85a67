"""What the command prints: to streams that may be closed or full, and without control characters of its input."""

from __future__ import annotations

import errno
import io
import os
import sys
import warnings
from typing import Any, TextIO

from treefield.messages import on_one_line, printable

BROKEN_PIPE_EXIT = 141  # as shells have it for a command that SIGPIPE has ended


def say(text: str) -> None:
    """Print to stdout."""
    print(printable(text), flush=True)  # noqa: T201


def warn(text: str) -> None:
    """Print one line to stderr, under the name of the command."""
    print(f"treefield: {on_one_line(text)}", file=sys.stderr, flush=True)  # noqa: T201


class _Stream(io.TextIOWrapper):
    """A standard stream that leads nowhere after a write has failed, and keeps the error."""

    error: OSError | None = None

    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except OSError as error:
            self._drop(error)
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            self._drop(error)

    def _drop(self, error: OSError) -> None:
        self.error = error
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.fileno())
        os.close(nowhere)


def open_streams() -> None:
    """Make stdout and stderr streams that never raise; those that are closed lead nowhere."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:  # otherwise the next file to be opened would take its place
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    sys.stdout, sys.stderr = _stream(1, sys.stdout), _stream(2, sys.stderr)
    warnings.showwarning = _show_warning


def _stream(number: int, stream: TextIO | None) -> TextIO:
    """A stream to a file descriptor; a terminal keeps the one it has. Not every console knows every character."""
    if isinstance(stream, io.TextIOWrapper) and stream.isatty():
        stream.reconfigure(errors="replace")
        return stream
    encoding = "utf-8" if stream is None else stream.encoding
    file = open(number, "wb", closefd=False)  # noqa: SIM115
    return _Stream(file, encoding, "replace", line_buffering=number == 2)


def close_streams(code: int) -> int:
    """Write what is left; returns the exit code: another one if all went well but stdout could not be written."""
    try:
        sys.stdout.flush()
        error = getattr(sys.stdout, "error", None)
    except OSError as problem:  # of a terminal
        error = problem
    if error is None or code:
        return code
    if error.errno == errno.EPIPE:  # nobody reads it any more
        return BROKEN_PIPE_EXIT
    warn(f"could not write to stdout: {error.strerror}")
    return 2


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    warn(str(message))
