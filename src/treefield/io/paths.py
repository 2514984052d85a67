"""Paths of files, checked before any work, and how messages name them."""

from __future__ import annotations

import errno
import os
import pathlib

from treefield.printable import as_one_line

_MAX_MESSAGE = 200  # characters


def as_text(path: object) -> str:
    """A path as messages name it, on one line whatever characters it contains."""
    text = str(path)
    return text if text.isprintable() else repr(text)


def error_text(error: BaseException) -> str:
    """The message of an exception on one line of moderate length, without control characters."""
    text = as_one_line(str(error)) or type(error).__name__
    return text if len(text) <= _MAX_MESSAGE else f"{text[: _MAX_MESSAGE - 3]}..."


def as_path(path: object) -> pathlib.Path:
    """`path` as a Path, or a TypeError."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be the path of a file, got {type(path).__name__}")
    return pathlib.Path(os.fsdecode(path))


def as_input_path(path: object) -> pathlib.Path:
    """The path of an existing regular file, or an error."""
    path = as_path(path)
    try:
        if path.is_dir():
            raise IsADirectoryError(f"{as_text(path)} is a folder, expected a file")
        if not path.exists():
            raise FileNotFoundError(f"there is no file {as_text(path)}")
        if not path.is_file():  # reading a pipe would block
            raise ValueError(f"{as_text(path)} is not a regular file")
    except PermissionError:
        raise PermissionError(f"{as_text(path)} may not be read: there is no permission for its folder") from None
    return path


def as_output_path(path: object, *, force: bool = False) -> pathlib.Path:
    """A path where a file may be written, or an error: better now than after an hour's work.

    Examples
    --------
    >>> from treefield.io.paths import as_output_path
    >>> as_output_path("no/such/folder/labels.png")
    Traceback (most recent call last):
    FileNotFoundError: cannot write no/such/folder/labels.png: there is no folder no/such/folder; make it first
    """
    path = as_path(path)
    check_links(path)
    try:
        if path.is_dir():
            raise IsADirectoryError(f"cannot write {as_text(path)}: it is a folder, expected the path of a file")
        check_folder_exists(path)
        if not os.access(path.parent, os.W_OK):
            raise PermissionError
        if path.exists() and not path.is_file():  # replacing /dev/null would harm the machine
            raise FileExistsError(f"cannot write {as_text(path)}: it is not a regular file; give another name")
        if not force:
            check_is_new(path)
    except PermissionError:
        raise PermissionError(f"cannot write {as_text(path)}: there is no permission for its folder") from None
    return path


def check_folder_exists(path: pathlib.Path) -> None:
    """Raise if the folder of a path does not exist."""
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"cannot write {as_text(path)}: there is no folder {as_text(path.parent)}; make it first"
        )


def check_is_new(path: pathlib.Path) -> None:
    """Raise if a path exists."""
    if path.exists():
        raise FileExistsError(f"{as_text(path)} exists; give another name, or replace it with force (--force)")


def check_links(path: pathlib.Path) -> None:
    """Raise if symbolic links on the way to a file form a loop, which `Path.exists` reports as a free name."""
    try:
        path.stat()
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(f"cannot write {as_text(path)}: it is a loop of symbolic links; give another name") from None
