"""Replace files atomically: readers see the old content or the new, never a part."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import threading
from collections.abc import Iterator

_MAX_STEM = 40  # characters: file systems allow names of 255 bytes


def temporary_in_folder_of(target: pathlib.Path) -> pathlib.Path:
    """A hidden path in the folder of `target`, with its suffix, that no other process or thread uses."""
    owner = f"{os.getpid()}-{threading.get_ident()}"
    return target.with_name(f".{target.stem[:_MAX_STEM]}.{owner}{target.suffix}")


@contextlib.contextmanager
def replace_atomically(target: pathlib.Path, temporary: pathlib.Path | None = None) -> Iterator[pathlib.Path]:
    """Yield a temporary path to write to; it becomes `target` when the block ends.

    If the block or the replacement raises, `target` stays unchanged and the temporary path is removed. Both may be
    folders.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from treefield.atomic_write import replace_atomically
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = pathlib.Path(folder, "note.txt")
    ...     with replace_atomically(target) as temporary:
    ...         _ = temporary.write_text("done")
    ...     target.read_text()
    'done'
    """
    temporary = temporary_in_folder_of(target) if temporary is None else temporary
    try:
        yield temporary
        move_into_place(temporary, target)
    finally:
        remove(temporary)


def move_into_place(source: pathlib.Path, target: pathlib.Path) -> None:
    """Rename a finished file or folder to `target`, whose old content is lost only after that has succeeded."""
    if source.is_file():
        with source.open("rb+") as file:  # some file systems report a full disk only here
            os.fsync(file.fileno())
    if not target.is_dir():
        source.replace(target)
        return
    old = source.with_name(f"{source.name}.old")
    target.replace(old)
    try:
        source.replace(target)
    except BaseException:
        old.replace(target)
        raise
    remove(old)


def remove(path: pathlib.Path) -> None:
    """Remove a file or folder if it exists; ignore errors."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
