"""Standard streams that may be closed or full, and output without the control characters of file names."""

from __future__ import annotations

import errno
import io
import os
import sys
import warnings
from typing import TextIO

from treefield.cli.exit_codes import BAD_INPUT, BROKEN_PIPE
from treefield.printable import as_one_line, as_printable


def say(text: str) -> None:
    """Print to stdout."""
    print(as_printable(text), flush=True)  # noqa: T201


def warn(text: str) -> None:
    """Print one line to stderr, under the name of the command."""
    print(f"treefield: {as_one_line(text)}", file=sys.stderr, flush=True)  # noqa: T201


class _Stream(io.TextIOWrapper):
    """A standard stream that keeps the first error of a write, and discards everything after it."""

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
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, self.fileno())
        os.close(null)


def open_streams() -> None:
    """Replace stdout and stderr by streams that never raise; closed ones are opened on the null device."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:  # otherwise the next file to be opened would get its number
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    sys.stdout, sys.stderr = _stream(1, sys.stdout), _stream(2, sys.stderr)
    warnings.showwarning = _show_warning


def _stream(number: int, stream: TextIO | None) -> TextIO:
    """A stream to a file descriptor that replaces characters its encoding lacks; a terminal keeps its stream."""
    if isinstance(stream, io.TextIOWrapper) and stream.isatty():
        stream.reconfigure(errors="replace")
        return stream
    encoding = "utf-8" if stream is None else stream.encoding
    file = open(number, "wb", closefd=False)  # noqa: SIM115
    return _Stream(file, encoding, "replace", line_buffering=number == 2)


def close_streams(code: int) -> int:
    """Flush stdout; returns the exit code: `code`, unless that is 0 and stdout could not be written."""
    try:
        sys.stdout.flush()
        error = getattr(sys.stdout, "error", None)
    except OSError as problem:  # of a terminal
        error = problem
    if error is None or code:
        return code
    if error.errno == errno.EPIPE:  # the reader has closed its end
        return BROKEN_PIPE
    warn(f"could not write to stdout: {error.strerror}")
    return BAD_INPUT


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    warn(str(message))
