"""The command `treefield`."""

from __future__ import annotations

import gc
import os
import sys


def main() -> None:
    """Run the command; whatever is wrong with its input is told in one line, with exit code 2."""
    gc.set_threshold(100_000)  # what is imported stays: to look for garbage in it takes a seventh of a short run
    try:
        from treefield.cli.app import app
    except ImportError as error:
        sys.exit(_told(f'the command needs more packages ({error}): pip install "treefield[cli]"'))
    try:
        app()
    except (OSError, ValueError, TypeError, ImportError, MemoryError, OverflowError) as error:
        if os.environ.get("TREEFIELD_DEBUG"):
            raise
        sys.exit(_told(str(error) or type(error).__name__))


def _told(message: str) -> int:
    print(f"treefield: {' '.join(message.split())}", file=sys.stderr)
    return 2
