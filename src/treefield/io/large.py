"""Images larger than memory: read by boxes from TIFF, NPY and Zarr, and written to them by boxes."""

from __future__ import annotations

import contextlib
import math
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from treefield.io import tiff
from treefield.io.arrays import npy_layout
from treefield.io.files import check_memory, checked_input, checked_output, checked_path, reading, shown, writing
from treefield.io.images import read_image
from treefield.models.stores import FileArray, new_npy, new_zarr, zarr_package

LARGE = (".tif", ".tiff", ".npy", ".zarr")


@contextlib.contextmanager
def open_image(path: Any, scratch: Any = None) -> Iterator[Any]:
    """The image of a file as an array that is read when it is sliced: TIFF, NPY and Zarr. Other formats are read whole.

    A packed TIFF is unpacked, strip by strip, to a file in the folder `scratch`, which is removed in the end.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np, treefield.io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "image.tif")
    ...     treefield.io.write_image(path, np.arange(60000, dtype=np.uint16).reshape(200, 300))
    ...     with treefield.io.open_image(path) as image:
    ...         image.shape, image[100:102, 7:10]
    ((200, 300), array([[30007, 30008, 30009],
           [30307, 30308, 30309]], dtype=uint16))
    """
    path = checked_path(path)
    suffix = path.suffix.lower()
    if suffix not in LARGE:
        yield read_image(path)
        return
    if suffix == ".zarr":
        zarr = zarr_package()
        if not path.exists():
            raise FileNotFoundError(f"there is no {shown(path)}")
    else:
        path = checked_input(path)
    with tempfile.TemporaryDirectory(prefix=".treefield-", dir=scratch) as folder:
        with reading(path, "an image that can be read"):
            if suffix == ".zarr":
                array = zarr.open_array(str(path), mode="r")
                check_memory(path, math.prod(array.chunks) * np.dtype(array.dtype).itemsize)
            elif suffix == ".npy":
                array = FileArray(path, *npy_layout(path))
            else:
                array = tiff.open_tiff(path, pathlib.Path(folder, "image.npy"))
            _check(array)
        yield array


@contextlib.contextmanager
def new_image(path: Any, shape: tuple[int, ...], dtype: Any, *, channels: bool, force: bool = False) -> Iterator[Any]:
    """An array of that shape that is written by slices, and is the image of the file in the end: TIFF, NPY or Zarr. If
    anything fails, nothing is left, and a file that was there stays as it was."""
    path = checked_path(path)
    suffix = path.suffix.lower()
    if suffix not in LARGE:
        raise ValueError(f"{shown(path)} cannot be written part by part: expected one of {' '.join(LARGE)}")
    if suffix == ".zarr":
        with _new_folder(path, force=force) as temporary:
            yield new_zarr(temporary, shape, dtype)
        return
    with writing(path, force=force) as temporary:
        if suffix == ".npy":
            yield new_npy(temporary, shape, dtype)
            return
        unpacked = temporary.with_name(f"{temporary.name}.npy")
        try:
            array = new_npy(unpacked, shape, dtype)
            yield array
            tiff.write_tiles(temporary, array, channels)
        finally:
            unpacked.unlink(missing_ok=True)


def check_new_image(path: Any, *, force: bool) -> pathlib.Path:
    """Refuse, before any work, what `new_image` could not write."""
    path = checked_path(path)
    if path.suffix.lower() == ".zarr":
        if path.exists() and not force:
            raise FileExistsError(f"{shown(path)} exists; give another name, or replace it with force (--force)")
        if path.exists() and not (path / "zarr.json").exists() and not (path / ".zarray").exists():
            raise FileExistsError(f"{shown(path)} exists and is no Zarr array: it is not replaced; give another name")
        if not path.parent.is_dir():
            raise FileNotFoundError(
                f"cannot write {shown(path)}: there is no folder {shown(path.parent)}; make it first"
            )
        return path
    return checked_output(path, force=force)


@contextlib.contextmanager
def _new_folder(path: pathlib.Path, *, force: bool) -> Iterator[pathlib.Path]:
    check_new_image(path, force=force)
    temporary = path.with_name(f".{path.stem[:40]}.{os.getpid()}.zarr")
    try:
        yield temporary
        if path.exists():
            shutil.rmtree(path)
        temporary.replace(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _check(array: Any) -> None:
    if np.dtype(array.dtype).kind not in "buif":
        raise ValueError(f"it holds {array.dtype}, expected real numbers")
    if len(array.shape) not in (2, 3, 4) or math.prod(array.shape) == 0:
        raise ValueError(f"its array has shape {tuple(array.shape)}, expected two to four axes, none of them empty")
