"""NumPy's files, read without pickles and without trust in what their headers claim."""

from __future__ import annotations

import io
import math
import os
import pathlib
import zipfile
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from treefield.io.limits import MAX_DEFLATE_RATIO, check_memory, check_unpacked

_LONGEST_HEADER = 10_000  # bytes, NumPy's own limit


def read_npy(path: pathlib.Path) -> np.ndarray:
    """The array of an .npy file."""
    with path.open("rb") as file:
        shape, fortran, dtype = _header(file)
        size = math.prod(shape) * dtype.itemsize
        _check_length(os.fstat(file.fileno()).st_size - file.tell(), size, shape, dtype)
        check_memory(path, size)
        return _filled(file, shape, fortran, dtype)


def npy_layout(path: pathlib.Path) -> tuple[tuple[int, ...], np.dtype, int]:
    """The shape and the dtype of an .npy file's array, and where in the file it begins."""
    with path.open("rb") as file:
        shape, fortran, dtype = _header(file)
        size = math.prod(shape) * dtype.itemsize
        _check_length(os.fstat(file.fileno()).st_size - file.tell(), size, shape, dtype)
        if fortran:
            raise ValueError("its array is stored by columns (Fortran's order), which is not read part by part")
        return shape, dtype, file.tell()


def read_npz(path: pathlib.Path, pick: Callable[[list[str]], Iterable[str]]) -> dict[str, np.ndarray]:
    """The arrays of an .npz file that `pick` chooses among the names; together they must fit into memory."""
    with zipfile.ZipFile(path) as archive:
        members = {info.filename[:-4]: info for info in archive.infolist() if info.filename.endswith(".npy")}
        chosen = list(pick(list(members)))
        total = 0
        for name in chosen:
            info = members[name]
            with archive.open(info) as file:
                shape, _, dtype = _header(file)
            size = math.prod(shape) * dtype.itemsize
            _check_length(min(info.file_size, path.stat().st_size * MAX_DEFLATE_RATIO), size, shape, dtype)
            total += size
        check_unpacked(path, total)
        check_memory(path, total)
        return {name: _member(archive, members[name]) for name in chosen}


def write_npy(path: pathlib.Path, array: np.ndarray) -> None:
    """Write an array; unlike `np.save` this says why if the disk is full."""
    array = np.ascontiguousarray(array)
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
        file.write(array.data)


def write_npz(path: pathlib.Path, arrays: dict[str, Any]) -> None:
    """Write named arrays, not compressed."""
    with path.open("wb") as file:
        np.savez(file, **arrays)  # no allow_pickle: NumPy before 2.1 takes it for an array


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(info) as file:
        array = _filled(file, *_header(file))
        if file.read(1):  # only at the end are the checksums compared
            raise ValueError(f"{info.filename} holds more data than {array.dtype} of shape {array.shape} needs")
        return array


def _header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype]:
    """Shape, order and dtype, of plain numbers or text only."""
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"its .npy version is {version[0]}.{version[1]}, expected 1.0 or 2.0")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    length = file.read(2 * version[0])
    size = int.from_bytes(length, "little")
    if size > _LONGEST_HEADER:
        raise ValueError(f"its .npy header claims {size} bytes, expected up to {_LONGEST_HEADER}")
    try:
        shape, fortran, dtype = read(io.BytesIO(length + file.read(size)))
    except Exception:  # NumPy evaluates text as Python's literals, which may fail in any way
        raise ValueError("its .npy header is damaged") from None
    if dtype.hasobject:
        raise ValueError("it holds Python objects, which are not loaded because they may run code; save plain numbers")
    if dtype.kind not in "buifU" or dtype.itemsize == 0:
        raise ValueError(f"it holds {dtype}, expected numbers")
    if any(n < 0 for n in shape):
        raise ValueError(f"its header claims the shape {shape}")
    return shape, fortran, dtype


def _check_length(available: int, size: int, shape: tuple[int, ...], dtype: np.dtype) -> None:
    if size > available:
        raise ValueError(f"its header claims {dtype} of shape {shape}, but the file is too short for that")


def _filled(file: Any, shape: tuple[int, ...], fortran: bool, dtype: np.dtype) -> np.ndarray:
    flat = np.empty(math.prod(shape), dtype)
    target = flat.view(np.uint8).data if flat.size else memoryview(bytearray())
    done = 0
    while done < len(target):
        count = file.readinto(target[done : done + io.DEFAULT_BUFFER_SIZE * 128])
        if not count:
            raise ValueError(f"it ends after {done} of {len(target)} bytes")
        done += count
    array = flat.reshape(shape, order="F" if fortran else "C")
    return array.astype(dtype.newbyteorder("="), copy=False)
