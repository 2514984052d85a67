"""Labellings on disk, read and written box by box."""

from __future__ import annotations

import contextlib
import errno
import importlib
import itertools
import math
import os
import pathlib
import shutil
from collections.abc import Iterator
from types import ModuleType
from typing import BinaryIO, Literal, SupportsIndex

import numpy as np
from numpy.typing import DTypeLike

from treefield.tiling.array_protocols import ChunkedStore, Index, LabelStore, WritableArray
from treefield.validation import label_dtype

_CANNOT_ALLOCATE = (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)  # file systems without fallocate
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_PIECE = 2**20  # bytes that are written at once where space is reserved by writing


class NoSpaceError(OSError):
    """The disk has no room for a file of known size; nothing was written."""


class FileArray:
    """An array in a file, from `offset` on.

    The file is mapped only while a box is read or written, so that pages do not stay in memory. A file that is written
    to must have all its space on disk: see `new_npy`.
    """

    def __init__(self, path: pathlib.Path, shape: tuple[int, ...], dtype: DTypeLike, offset: int) -> None:
        self.path, self.shape, self.dtype, self._offset = path, shape, np.dtype(dtype), offset

    def __getitem__(self, box: Index | slice | SupportsIndex, /) -> np.ndarray:
        return np.array(self._mapped("r")[box])

    def __setitem__(self, box: Index, values: np.ndarray) -> None:
        self._mapped("r+")[box] = values

    def array(self) -> np.ndarray:
        """The whole array, as a memmap."""
        return self._mapped("r+")

    def _mapped(self, mode: Literal["r", "r+"]) -> np.ndarray:
        return np.memmap(self.path, self.dtype, mode, self._offset, self.shape)


def new_npy(path: pathlib.Path, shape: tuple[int, ...], dtype: DTypeLike) -> FileArray:
    """Create an array of zeros in a .npy file with all its space on disk, or raise NoSpaceError."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    header = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape}
    with _full_disk_named(path, size):
        file = path.open("xb+")
        try:
            with file:
                np.lib.format.write_array_header_1_0(file, header)
                file.flush()
                offset = file.tell()
                _reserve(file, offset, size)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
    return FileArray(path, shape, dtype, offset)


def keep_file(path: pathlib.Path, name: pathlib.Path) -> pathlib.Path:
    """Rename a file to `name`, or to a name like it that is free; return the new path."""
    names = (name.with_stem(f"{name.stem}-{number}") for number in itertools.count(2))
    target = name
    while target.exists():
        target = next(names)
    return path.replace(target)


def _reserve(file: BinaryIO, start: int, size: int) -> None:
    """Give part of a file its space on disk without changing its content: holes and bytes past its end become zeros.

    A write to a mapped page that gets no space kills the process (SIGBUS).
    """
    try:
        os.posix_fallocate(file.fileno(), start, size)
    except (AttributeError, OSError) as error:  # macOS and Windows have no posix_fallocate
        if isinstance(error, OSError) and error.errno not in _CANNOT_ALLOCATE:
            raise
        _rewrite(file, start, size)
    os.fsync(file.fileno())  # some file systems say only now that the disk is full


@contextlib.contextmanager
def _full_disk_named(path: pathlib.Path, size: int) -> Iterator[None]:
    """Raise NoSpaceError for a full disk, with the disk and the number of bytes needed."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        disk = next(folder for folder in path.absolute().parents if os.path.ismount(folder))
        raised = NoSpaceError(
            f"{error.strerror}: {size:,} more bytes are needed on the disk of {disk}, "
            f"{shutil.disk_usage(disk).free:,} are free; make room, or use another disk"
        )
        raised.errno = error.errno
        raise raised from None


def _rewrite(file: BinaryIO, start: int, size: int) -> None:
    """Write the content again, and zeros past its end."""
    for at in range(start, start + size, _PIECE):
        length = min(_PIECE, start + size - at)
        file.seek(at)
        part = file.read(length)
        file.seek(at)
        file.write(part.ljust(length, b"\0"))
    file.flush()


def reserve_mapped(array: object) -> None:
    """Reserve the space on disk of an array that is a writable memmap or a view of one, or raise NoSpaceError."""
    mapped = None
    while isinstance(array, np.ndarray):
        mapped = array if isinstance(array, np.memmap) else mapped
        array = array.base
    if mapped is None or mapped.filename is None or mapped.mode == "c":
        return
    path = pathlib.Path(mapped.filename)
    if path.exists():  # a mapped file may have been removed
        with _full_disk_named(path, mapped.nbytes), path.open("rb+") as file:
            _reserve(file, mapped.offset, mapped.nbytes)


def zarr_package() -> ModuleType:
    """Import Zarr, or raise an error that says how to install it."""
    try:
        return importlib.import_module("zarr")
    except ImportError:
        raise ImportError('.zarr needs the package zarr: pip install "treefield[dask]"') from None


def new_zarr(path: pathlib.Path, shape: tuple[int, ...], dtype: DTypeLike) -> ChunkedStore:
    """Create an array in a .zarr folder."""
    zarr = zarr_package()
    chunks = tuple(min(n, 1024 if len(shape) == 2 else 128) for n in shape)
    try:
        return zarr.create_array(store=str(path), shape=shape, chunks=chunks, dtype=dtype)
    except BaseException:
        discard(path)
        raise


def label_store(store: str | os.PathLike[str] | LabelStore | None, shape: tuple[int, ...], n_labels: int) -> LabelStore:
    """The array for the labelling of a search, or an error.

    It is in memory (None), in a new .npy or .zarr file, or the given one.
    """
    dtype = label_dtype(n_labels)
    if store is None:
        return np.zeros(shape, dtype)
    if isinstance(store, str | os.PathLike):
        return _new_file(pathlib.Path(store), shape, dtype)
    if not isinstance(store, LabelStore) or tuple(store.shape) != shape:
        got = f"shape {tuple(store.shape)}" if isinstance(store, LabelStore) else f"a {type(store).__name__}"
        raise ValueError(f"store must be a path or an array of shape {shape} that can be written to, got {got}")
    check_writable(store, "store")
    given = np.dtype(store.dtype)
    if given.kind not in "ui" or np.iinfo(given).max < n_labels - 1:
        raise ValueError(f"store holds {given}, which does not hold the labels 0 to {n_labels - 1}; use {dtype}")
    reserve_mapped(store)
    return store


def check_writable(array: WritableArray, name: str) -> None:
    """Raise for a read-only array: of NumPy, or of Zarr, which calls it `read_only`."""
    is_read_only = not array.flags.writeable if isinstance(array, np.ndarray) else getattr(array, "read_only", False)
    if is_read_only:
        raise ValueError(f"{name} is read-only, but it is written to: open it for writing (mode r+)")


def discard(store: str | os.PathLike[str] | LabelStore | None) -> None:
    """Remove the file that `label_store` created, if it did."""
    if isinstance(store, str | os.PathLike):
        path = pathlib.Path(store)
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        path.unlink(missing_ok=True)


def _new_file(path: pathlib.Path, shape: tuple[int, ...], dtype: np.dtype) -> LabelStore:
    suffix = path.suffix.lower()
    if suffix not in (".npy", ".zarr"):
        raise ValueError(f"store {path} must be a .npy file or a .zarr folder, got the suffix {suffix or '(none)'}")
    if path.exists():
        raise FileExistsError(f"store {path} exists; give another name, or give the array itself to write into it")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot create {path}: there is no folder {path.parent}; make it first")
    if suffix == ".npy":
        return new_npy(path, shape, dtype)
    zarr_package()
    new_npy(path, shape, dtype).path.unlink()  # raises if there is no room for uncompressed chunks
    return new_zarr(path, shape, dtype)
