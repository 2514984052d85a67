"""Labellings on disk, read and written box by box."""

from __future__ import annotations

import importlib
import pathlib
import shutil
from typing import Any

import numpy as np


def label_dtype(labels: int) -> np.dtype:
    """The smallest integers that hold so many labels."""
    return np.min_scalar_type(max(labels - 1, 1))


class FileArray:
    """An array in a file, from `offset` on. It is mapped for as long as a box is read or written, no longer: what has
    been looked at does not stay in memory."""

    def __init__(self, path: pathlib.Path, shape: tuple[int, ...], dtype: Any, offset: int) -> None:
        self.path, self.shape, self.dtype, self._offset = path, shape, np.dtype(dtype), offset

    def __getitem__(self, box: Any) -> np.ndarray:
        return np.array(self._mapped("r")[box])

    def __setitem__(self, box: Any, values: Any) -> None:
        self._mapped("r+")[box] = values

    def array(self) -> np.ndarray:
        """All of it, mapped."""
        return self._mapped("r+")

    def _mapped(self, mode: Any) -> np.ndarray:
        return np.memmap(self.path, self.dtype, mode, self._offset, self.shape)


def new_npy(path: pathlib.Path, shape: tuple[int, ...], dtype: Any) -> FileArray:
    """An array in a new .npy file."""
    mapped = np.lib.format.open_memmap(path, "w+", dtype, shape)
    return FileArray(path, shape, dtype, mapped.offset)


def zarr_package() -> Any:
    """Zarr, imported now; or an error that says how to install it."""
    try:
        return importlib.import_module("zarr")
    except ImportError:
        raise ImportError('.zarr needs the package zarr: pip install "treefield[dask]"') from None


def new_zarr(path: pathlib.Path, shape: tuple[int, ...], dtype: Any) -> Any:
    """An array in a new .zarr folder."""
    zarr = zarr_package()
    chunks = tuple(min(n, 1024 if len(shape) == 2 else 128) for n in shape)
    return zarr.create_array(store=str(path), shape=shape, chunks=chunks, dtype=dtype)


def label_store(store: Any, shape: tuple[int, ...], labels: int) -> Any:
    """Where a search keeps its labelling: in memory (None), in a new file (.npy or .zarr), or in an array that is
    given, or an error."""
    dtype = label_dtype(labels)
    if store is None:
        return np.zeros(shape, dtype)
    if isinstance(store, str | pathlib.Path):
        return _new_file(pathlib.Path(store), shape, dtype)
    if tuple(getattr(store, "shape", ())) != shape or not hasattr(store, "__setitem__"):
        came = f"shape {tuple(store.shape)}" if hasattr(store, "shape") else f"a {type(store).__name__}"
        raise ValueError(f"store must be a path or an array of shape {shape} that can be written to, got {came}")
    check_writable(store, "store")
    given = np.dtype(store.dtype)
    if given.kind not in "ui" or np.iinfo(given).max < labels - 1:
        raise ValueError(f"store holds {given}, which does not hold the labels 0 to {labels - 1}; use {dtype}")
    return store


def check_writable(array: Any, name: str) -> None:
    """Refuse an array that says it is read-only."""
    flags = getattr(array, "flags", None)
    if getattr(array, "read_only", False) or (flags is not None and not getattr(flags, "writeable", True)):
        raise ValueError(f"{name} is read-only, but it is written to: open it for writing (mode r+)")


def discard(store: Any) -> None:
    """Remove the file that `label_store` has made, if it has."""
    if isinstance(store, str | pathlib.Path):
        path = pathlib.Path(store)
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        path.unlink(missing_ok=True)


def _new_file(path: pathlib.Path, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    suffix = path.suffix.lower()
    if suffix not in (".npy", ".zarr"):
        raise ValueError(f"store {path} must be a .npy file or a .zarr folder, got the suffix {suffix or '(none)'}")
    if path.exists():
        raise FileExistsError(f"store {path} exists; give another name, or give the array itself to write into it")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot make {path}: there is no folder {path.parent}; make it first")
    return (new_npy if suffix == ".npy" else new_zarr)(path, shape, dtype)
