"""Images larger than memory: read by boxes from TIFF, NPY and Zarr, and written to them by boxes."""

from __future__ import annotations

import contextlib
import itertools
import math
import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from treefield.io import tiff
from treefield.io.arrays import npy_layout
from treefield.io.files import (
    NOTHING_LEFT,
    check_links,
    check_memory,
    checked_input,
    checked_output,
    checked_path,
    one_line,
    reading,
    replacing,
    scratch_folder,
    shown,
)
from treefield.io.images import read_image
from treefield.models.stores import FileArray, keep_file, new_npy, new_zarr, zarr_package

LARGE = (".tif", ".tiff", ".npy", ".zarr")
_READABLE = "an image that can be read"


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
    with scratch_folder(scratch) as folder:
        with reading(path, _READABLE):
            if suffix == ".zarr":
                array = zarr.open_array(str(path), mode="r")
                check_memory(path, math.prod(array.chunks) * np.dtype(array.dtype).itemsize)
            elif suffix == ".npy":
                array = FileArray(path, *npy_layout(path))
            else:
                array = tiff.open_tiff(path, folder / "image.npy")
            _check(array)
        yield _ImageArray(path, array)


class _ImageArray:
    """The array of an image file; a part that is damaged raises, when it is read, the error that opening raises."""

    def __init__(self, path: pathlib.Path, array: Any) -> None:
        self._path, self._array = path, array
        self.shape, self.dtype = tuple(array.shape), np.dtype(array.dtype)

    def __getitem__(self, box: Any) -> np.ndarray:
        with reading(self._path, _READABLE):
            return self._array[box]


@contextlib.contextmanager
def new_image(path: Any, shape: tuple[int, ...], dtype: Any, *, channels: bool, force: bool = False) -> Iterator[Any]:
    """An array of that shape that is written by slices, and is the image of the file in the end: TIFF, NPY or Zarr.

    The space of the array is reserved at once, in the folder of `path`. If anything fails, nothing is left, and a file
    that was there stays; but if the array is finished and cannot be packed, it is kept as .npy, as the error says.
    """
    path = check_new_image(path, force=force)
    suffix = path.suffix.lower()
    if suffix not in LARGE:
        raise ValueError(f"{shown(path)} cannot be written part by part: expected one of {' '.join(LARGE)}")
    with draft(path, shape, dtype) as array:
        yield array
        finished = array.path if suffix == ".npy" else None
        with kept_if_not_written(array, path), replacing(path, force=force, finished=finished) as temporary:
            if suffix == ".zarr":
                _write_zarr(temporary, array)
            elif suffix != ".npy":
                tiff.write_tiles(temporary, array, channels)


@contextlib.contextmanager
def draft(path: pathlib.Path, shape: tuple[int, ...], dtype: Any) -> Iterator[FileArray]:
    """An array in a scratch file on the disk of `path`, whose space is reserved."""
    with scratch_folder(path.resolve().parent) as folder:
        yield new_npy(folder / "image.npy", shape, dtype)


@contextlib.contextmanager
def kept_if_not_written(array: FileArray, path: pathlib.Path) -> Iterator[None]:
    """Keep a finished array in the folder of `path` if that file cannot be written, and say so in the error."""
    try:
        yield
    except Exception as error:
        cause = str(error) if isinstance(error, OSError) else f"could not write {shown(path)}: {one_line(error)}"
        place = path.resolve() if path.is_symlink() else path
        kept = keep_file(array.path, place.with_name(f"{path.name}.npy"))
        plain = OSError(f"{cause.removesuffix(NOTHING_LEFT)}; the finished image is kept in {shown(kept)}")
        plain.errno = getattr(error, "errno", None)
        raise plain from None


def _write_zarr(path: pathlib.Path, array: FileArray) -> None:
    packed = new_zarr(path, array.shape, array.dtype)
    starts = [range(0, n, side) for n, side in zip(array.shape, packed.chunks, strict=True)]
    for corner in itertools.product(*starts):
        box = tuple(slice(start, start + side) for start, side in zip(corner, packed.chunks, strict=True))
        packed[box] = array[box]


def check_new_image(path: Any, *, force: bool) -> pathlib.Path:
    """Refuse, before any work, what `new_image` could not write."""
    path = checked_path(path)
    if path.suffix.lower() == ".zarr":
        check_links(path)
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


def _check(array: Any) -> None:
    if np.dtype(array.dtype).kind not in "buif":
        raise ValueError(f"it holds {array.dtype}, expected real numbers")
    if len(array.shape) not in (2, 3, 4) or math.prod(array.shape) == 0:
        raise ValueError(f"its array has shape {tuple(array.shape)}, expected two to four axes, none of them empty")
