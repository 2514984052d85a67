"""Paths that are checked before the work, and files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import importlib
import importlib.metadata
import math
import os
import pathlib
import shutil
import tempfile
import threading
from collections.abc import Iterator
from typing import Any

from treefield.messages import on_one_line
from treefield.models.stores import NoSpaceError
from treefield.solvers.interrupt import cleaning_up, deferred
from treefield.validation import as_byte_count

_MAX_UNPACKED = "TREEFIELD_MAX_UNPACKED"
_ALWAYS_UNPACKED, _ALWAYS_TEXT = 512_000_000, 32_000_000  # bytes; text needs more memory and time for each
_UNPACKED_PER_BYTE = 100  # of the packed file


class MissingPackageError(ImportError):
    """A package of the extra `cli` is not installed."""


class TooLargeError(MemoryError):
    """A file unpacks to more than the free memory, or than the limit on unpacked data."""


def package(module: str, name: str, doing: str) -> Any:
    """An optional package, imported now; or an error that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingPackageError(f'{doing} images needs {name}: pip install "treefield[cli]"') from error


def package_version(name: str) -> str:
    """The version of a package, if it is installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def shown(path: Any) -> str:
    """A path as messages name it, on one line whatever characters it has."""
    text = str(path)
    return text if text.isprintable() else repr(text)


def one_line(error: BaseException) -> str:
    """The message of any exception, on one line of moderate length, without control characters."""
    text = on_one_line(str(error)) or type(error).__name__
    return text if len(text) <= 200 else f"{text[:197]}..."


def checked_path(path: Any) -> pathlib.Path:
    """`path` as a Path, or a TypeError."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be the path of a file, got {type(path).__name__}")
    return pathlib.Path(os.fsdecode(path))


def checked_input(path: Any) -> pathlib.Path:
    """The path of a file that is there, or an error."""
    path = checked_path(path)
    try:
        if path.is_dir():
            raise IsADirectoryError(f"{shown(path)} is a folder, expected a file")
        if not path.exists():
            raise FileNotFoundError(f"there is no file {shown(path)}")
        if not path.is_file():  # a pipe would be waited for
            raise ValueError(f"{shown(path)} is not a regular file")
    except PermissionError:
        raise PermissionError(f"{shown(path)} may not be read: there is no permission for its folder") from None
    return path


@contextlib.contextmanager
def reading(path: pathlib.Path, what: str) -> Iterator[None]:
    """Turn all that decoders raise on damaged files, which may be any exception, into one kind with one line.

    `what` ends the sentence "FILE is not ...".
    """
    try:
        yield
    except (MissingPackageError, TooLargeError, NoSpaceError):
        raise
    except PermissionError:
        raise PermissionError(f"{shown(path)} may not be read: there is no permission") from None
    except MemoryError as error:
        raise MemoryError(f"{shown(path)} does not fit into memory: {one_line(error)}") from None
    except Exception as error:
        raise ValueError(f"{shown(path)} is not {what}: {one_line(error)}") from None


def check_memory(path: Any, size: int) -> None:
    """Refuse a file that unpacks to more bytes than are free, before anything is allocated."""
    available = available_memory()
    if available is not None and size > available:
        raise TooLargeError(
            f"{shown(path)} unpacks to {in_units(size)}, but only {in_units(available)} of memory are free"
        )


def check_unpacked(path: pathlib.Path, size: int, *, text: bool = False) -> None:
    """Raise if a file unpacks to more bytes than the limit.

    The limit is the environment variable TREEFIELD_MAX_UNPACKED. By default it is 100 times the size of the file, which
    only endless repetition exceeds, but at least 512 MB; for text, of which `size` bytes are unpacked so far, 32 MB.
    """
    given = os.environ.get(_MAX_UNPACKED)
    if given:
        try:
            limit = int(given) if given.isdecimal() else as_byte_count(given, _MAX_UNPACKED)
        except ValueError as error:
            raise TooLargeError(f"{shown(path)} cannot be unpacked: {error}") from None
    else:
        limit = max(_ALWAYS_TEXT if text else _ALWAYS_UNPACKED, _UNPACKED_PER_BYTE * path.stat().st_size)
    if size > limit:
        came = f"more than {in_units(limit)}" if text else in_units(size)
        enough = math.ceil((10 * limit if text else size) / 10**6)
        raise TooLargeError(
            f"{shown(path)} unpacks to {came}, but the limit is {in_units(limit)}; if you trust the file, set the "
            f"environment variable {_MAX_UNPACKED}={enough}MB to read it"
        )


def available_memory() -> int | None:
    """Bytes that can be used without swapping; without psutil all that the machine has; None if nobody knows."""
    try:
        import psutil
    except ImportError:
        if not hasattr(os, "sysconf"):
            return None
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return int(psutil.virtual_memory().available)


def resident_memory() -> int:
    """Bytes of memory that this process has; a guess without psutil."""
    try:
        import psutil
    except ImportError:
        return 250_000_000
    return int(psutil.Process().memory_info().rss)


def in_units(size: int) -> str:
    for factor, unit in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= factor:
            return f"{size / factor:.3g} {unit}" if size < 1000 * factor else f"{size // factor} {unit}"
    return f"{size} bytes"


def checked_output(path: Any, *, force: bool = False) -> pathlib.Path:
    """`path` as a Path where a file may be written, or an error: better now than after an hour's work.

    Examples
    --------
    >>> from treefield.io.files import checked_output
    >>> checked_output("no/such/folder/labels.png")
    Traceback (most recent call last):
    FileNotFoundError: cannot write no/such/folder/labels.png: there is no folder no/such/folder; make it first
    """
    path = checked_path(path)
    check_links(path)
    try:
        if path.is_dir():
            raise IsADirectoryError(f"cannot write {shown(path)}: it is a folder, expected the path of a file")
        if not path.parent.is_dir():
            raise FileNotFoundError(
                f"cannot write {shown(path)}: there is no folder {shown(path.parent)}; make it first"
            )
        if not os.access(path.parent, os.W_OK):
            raise PermissionError
        if path.exists() and not path.is_file():  # to replace /dev/null would harm the machine
            raise FileExistsError(f"cannot write {shown(path)}: it is not a regular file; give another name")
        if path.exists() and not force:
            raise _exists(path)
    except PermissionError:
        raise PermissionError(f"cannot write {shown(path)}: there is no permission for its folder") from None
    return path


def check_links(path: pathlib.Path) -> None:
    """Raise if symbolic links on the way to a file form a loop: to `exists` they look like a name that is free."""
    try:
        path.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(f"cannot write {shown(path)}: it is a loop of symbolic links; give another name") from None


def _exists(path: pathlib.Path) -> FileExistsError:
    return FileExistsError(f"{shown(path)} exists; give another name, or replace it with force (--force)")


@contextlib.contextmanager
def writing(path: Any, *, force: bool = False) -> Iterator[pathlib.Path]:
    """A temporary path to write to, which becomes `path` if all goes well; otherwise nothing is left, and a file that
    was there stays. Ctrl-C and SIGTERM wait until the file is whole; a second Ctrl-C does not.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from treefield.io.files import writing
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = pathlib.Path(folder, "note.txt")
    ...     with writing(target) as temporary:
    ...         _ = temporary.write_text("done")
    ...     target.read_text()
    'done'
    """
    with replacing(checked_output(path, force=force), force=force) as temporary:
        yield temporary


NOTHING_LEFT = "; nothing was left behind"


@contextlib.contextmanager
def replacing(path: pathlib.Path, *, force: bool, finished: pathlib.Path | None = None) -> Iterator[pathlib.Path]:
    """As `writing`, for a path that has been checked, which may be a folder; or move a finished file there, which stays
    if that fails."""
    target = path.resolve()  # a link stays a link
    # short, since names have at most 255 bytes
    name = f".{target.stem[:40]}.{os.getpid()}-{threading.get_ident()}{target.suffix}"
    temporary = target.with_name(name) if finished is None else finished
    try:
        with deferred():
            yield temporary
            if temporary.is_file():
                with temporary.open("rb+") as file:  # some file systems say only now that the disk is full
                    os.fsync(file.fileno())
            if not force and path.exists():  # another program was quicker
                raise _exists(path)
            _replace(temporary, target)
    except FileExistsError:
        raise
    except OSError as error:
        cause = os.strerror(error.errno) if error.errno else one_line(error)
        plain = OSError(f"could not write {shown(path)}: {cause}{NOTHING_LEFT}")
        plain.errno = error.errno
        raise plain from None
    finally:
        if finished is None:
            _remove(temporary)


def _replace(temporary: pathlib.Path, target: pathlib.Path) -> None:
    """Give a file or folder the name of another, which is lost only when that is done."""
    if not target.is_dir():
        temporary.replace(target)
        return
    old = temporary.with_name(f"{temporary.name}.old")
    target.replace(old)
    try:
        temporary.replace(target)
    except BaseException:
        old.replace(target)
        raise
    _remove(old)


def _remove(path: pathlib.Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def scratch_folder(parent: Any = None) -> Iterator[pathlib.Path]:
    """A hidden folder in `parent`, by default that for temporary files, which is removed in the end, after Ctrl-C and
    SIGTERM, too."""
    with cleaning_up():
        folder = pathlib.Path(tempfile.mkdtemp(prefix=".treefield-", dir=parent))
        try:
            yield folder
        finally:
            with deferred():
                _remove(folder)
