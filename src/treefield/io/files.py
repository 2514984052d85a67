"""Reading and writing of files: one kind of error for damaged files, and outputs that appear whole or not at all."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import os
import pathlib
import tempfile
from collections.abc import Iterator
from types import ModuleType

from treefield.atomic_write import move_into_place, remove, replace_atomically
from treefield.io.limits import TooLargeError
from treefield.io.paths import as_output_path, as_text, check_is_new, error_text
from treefield.solvers.interrupt import clean_up_on_sigterm, defer_signals
from treefield.tiling.stores import NoSpaceError

NOTHING_LEFT = "; nothing was left behind"


class MissingPackageError(ImportError):
    """An optional package is not installed."""


def import_optional(module: str, name: str, doing: str) -> ModuleType:
    """Import an optional package, or raise an error that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingPackageError(f'{doing} images needs {name}: pip install "treefield[cli]"') from error


def package_version(name: str) -> str:
    """The version of a package, or "not installed"."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


@contextlib.contextmanager
def explain_read_errors(path: pathlib.Path, what: str) -> Iterator[None]:
    """Turn whatever a decoder raises on a damaged file into one ValueError of one line.

    `what` ends the sentence "FILE is not ...".
    """
    try:
        yield
    except (MissingPackageError, TooLargeError, NoSpaceError):
        raise
    except PermissionError:
        raise PermissionError(f"{as_text(path)} may not be read: there is no permission") from None
    except MemoryError as error:
        raise MemoryError(f"{as_text(path)} does not fit into memory: {error_text(error)}") from None
    except Exception as error:
        raise ValueError(f"{as_text(path)} is not {what}: {error_text(error)}") from None


@contextlib.contextmanager
def write_atomically(path: object, *, force: bool = False) -> Iterator[pathlib.Path]:
    """Yield a temporary path to write to; it becomes `path` when the block ends.

    If anything fails, nothing is left and an existing file stays. Ctrl-C and SIGTERM wait until the file is whole; a
    second Ctrl-C does not.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from treefield.io.files import write_atomically
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = pathlib.Path(folder, "note.txt")
    ...     with write_atomically(target) as temporary:
    ...         _ = temporary.write_text("done")
    ...     target.read_text()
    'done'
    """
    with replace_output(as_output_path(path, force=force), force=force) as temporary:
        yield temporary


@contextlib.contextmanager
def replace_output(path: pathlib.Path, *, force: bool) -> Iterator[pathlib.Path]:
    """As `write_atomically`, for a path that has been checked, which may be a folder."""
    with _output_errors(path), replace_atomically(path.resolve()) as temporary:  # a link stays a link
        yield temporary
        _check_still_new(path, force)


def move_output(finished: pathlib.Path, path: pathlib.Path, *, force: bool) -> None:
    """Move a finished file to a path that has been checked; it stays where it is if that fails."""
    with _output_errors(path):
        _check_still_new(path, force)
        move_into_place(finished, path.resolve())


def _check_still_new(path: pathlib.Path, force: bool) -> None:
    """Raise if another program has created the file meanwhile."""
    if not force:
        check_is_new(path)


@contextlib.contextmanager
def _output_errors(path: pathlib.Path) -> Iterator[None]:
    """Defer signals, and name the output in the errors of the operating system."""
    try:
        with defer_signals():
            yield
    except FileExistsError:
        raise
    except OSError as error:
        cause = os.strerror(error.errno) if error.errno else error_text(error)
        raised = OSError(f"could not write {as_text(path)}: {cause}{NOTHING_LEFT}")
        raised.errno = error.errno
        raise raised from None


@contextlib.contextmanager
def scratch_folder(parent: str | os.PathLike[str] | None = None) -> Iterator[pathlib.Path]:
    """A hidden temporary folder in `parent`, removed at the end, even after Ctrl-C or SIGTERM.

    By default `parent` is the system's folder for temporary files.
    """
    with clean_up_on_sigterm():
        folder = pathlib.Path(tempfile.mkdtemp(prefix=".treefield-", dir=parent))
        try:
            yield folder
        finally:
            with defer_signals():
                remove(folder)
