"""The command `treefield`."""

from __future__ import annotations

import atexit
import gc
import os
import sys

from treefield.cli.exit_codes import BAD_INPUT, INTERRUPTED
from treefield.cli.streams import close_streams, open_streams, warn

_BAD_INPUT = (OSError, ValueError, TypeError, ImportError, MemoryError, OverflowError)


def command() -> None:
    """Run the command, and end the process without taking the interpreter down: that takes a quarter of a short run."""
    exit_codes: list[int] = []
    # Exit functions run last in, first out: the first to be registered runs after those of every library.
    atexit.register(_end_process, exit_codes)
    open_streams()
    try:
        main()
    except SystemExit as end:
        exit_codes.append(int(end.code or 0))


def _end_process(exit_codes: list[int]) -> None:
    """Leave with the exit code; do nothing if `main` raised an error, which Python reports."""
    if exit_codes:
        os._exit(close_streams(exit_codes[0]))


def main() -> None:
    """Run the command; bad input ends it with one line on stderr and exit code 2."""
    gc.set_threshold(100_000)  # imported modules are never garbage: collecting them takes a seventh of a short run
    try:
        sys.exit(_run())
    except KeyboardInterrupt:  # before or after a search: no file is half written
        sys.exit(INTERRUPTED)


def _run() -> int | None:
    """Run the command; returns its exit code, None for 0."""
    try:
        import typer

        from treefield.cli.app import app
    except ImportError as error:
        return _refuse(f'the command needs more packages ({error}): pip install "treefield[cli]"')
    try:
        code: int | None = app(prog_name="treefield", standalone_mode=False)
        return code
    except typer.Abort:  # older versions of typer turn Ctrl-C into this
        return INTERRUPTED
    except Exception as error:
        if hasattr(error, "format_message"):  # typer's own errors, of a wrong command line
            return _refuse(error.format_message())
        if not isinstance(error, _BAD_INPUT) or os.environ.get("TREEFIELD_DEBUG"):
            raise
        return _refuse(str(error) or type(error).__name__)


def _refuse(message: str) -> int:
    """Print one line on stderr; returns the exit code."""
    warn(message)
    return BAD_INPUT
