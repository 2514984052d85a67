"""The command `treefield`."""

from __future__ import annotations

import atexit
import gc
import os
import sys

from treefield.cli.streams import close_streams, open_streams, warn

INTERRUPTED_EXIT = 130  # as shells have it for Ctrl-C

_BAD_INPUT = (OSError, ValueError, TypeError, ImportError, MemoryError, OverflowError)


def command() -> None:
    """Run the command, and leave at once: to tear down all that was imported would take a quarter of a short run."""
    open_streams()
    try:
        main()
    except SystemExit as end:
        code = int(end.code or 0)
    atexit._run_exitfuncs()
    os._exit(close_streams(code))


def main() -> None:
    """Run the command; bad input ends it with one line on stderr and exit code 2."""
    gc.set_threshold(100_000)  # what is imported stays: to look for garbage in it takes a seventh of a short run
    try:
        sys.exit(_run())
    except KeyboardInterrupt:  # before or after a search: nothing is half done
        sys.exit(INTERRUPTED_EXIT)


def _run() -> int | None:
    """Run the command; returns its exit code, None for 0."""
    try:
        import typer

        from treefield.cli.app import app
    except ImportError as error:
        return _refused(f'the command needs more packages ({error}): pip install "treefield[cli]"')
    try:
        return app(prog_name="treefield", standalone_mode=False)
    except typer.Abort:  # what older versions of typer make of Ctrl-C
        return INTERRUPTED_EXIT
    except Exception as error:
        if hasattr(error, "format_message"):  # typer's own, of a command line that cannot be
            return _refused(error.format_message())
        if not isinstance(error, _BAD_INPUT) or os.environ.get("TREEFIELD_DEBUG"):
            raise
        return _refused(str(error) or type(error).__name__)


def _refused(message: str) -> int:
    warn(message)
    return 2
