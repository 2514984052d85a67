"""Images larger than memory: read by boxes from TIFF, NPY and Zarr, and written to them by boxes."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import pathlib
from collections.abc import Iterator
from typing import Protocol, SupportsIndex

import numpy as np
from numpy.typing import DTypeLike

from treefield.io.files import NOTHING_LEFT, explain_read_errors, move_output, replace_output, scratch_folder
from treefield.io.images import tiff
from treefield.io.images.image_formats import read_image
from treefield.io.limits import check_memory
from treefield.io.numpy_files import npy_layout
from treefield.io.paths import (
    as_input_path,
    as_output_path,
    as_path,
    as_text,
    check_folder_exists,
    check_is_new,
    check_links,
    error_text,
)
from treefield.tiling.stores import FileArray, keep_file, new_npy, new_zarr, zarr_package

LARGE_SUFFIXES = (".tif", ".tiff", ".npy", ".zarr")
_READABLE = "an image that can be read"
Box = SupportsIndex | slice | tuple[SupportsIndex | slice, ...]


class ImageArray(Protocol):
    """An image that is read when it is sliced: a NumPy array, or an array on disk."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""

    @property
    def dtype(self) -> np.dtype:
        """The type of its values."""

    def __getitem__(self, box: Box, /) -> np.ndarray:
        """Read a box."""


@contextlib.contextmanager
def open_image(path: str | os.PathLike[str], scratch: str | os.PathLike[str] | None = None) -> Iterator[ImageArray]:
    """The image of a file as an array that is read when it is sliced: TIFF, NPY and Zarr. Other formats are read whole.

    A compressed TIFF is unpacked, strip by strip, to a file in the folder `scratch`, which is removed at the end.

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
    path = as_path(path)
    suffix = path.suffix.lower()
    if suffix not in LARGE_SUFFIXES:
        yield read_image(path)
        return
    if suffix == ".zarr":
        zarr = zarr_package()
        if not path.exists():
            raise FileNotFoundError(f"there is no {as_text(path)}")
    else:
        path = as_input_path(path)
    with scratch_folder(scratch) as folder:
        with explain_read_errors(path, _READABLE):
            array: ImageArray
            if suffix == ".zarr":
                stored = zarr.open_array(str(path), mode="r")
                check_memory(path, math.prod(stored.chunks) * np.dtype(stored.dtype).itemsize)
                array = stored
            elif suffix == ".npy":
                array = FileArray(path, *npy_layout(path))
            else:
                array = tiff.open_tiff(path, folder / "image.npy")
            _check_is_image(array)
        yield _CheckedArray(path, array)


class _CheckedArray:
    """The array of an image file. Reading a damaged part raises the error that opening a damaged file raises."""

    def __init__(self, path: pathlib.Path, array: ImageArray) -> None:
        self._path, self._array = path, array
        self.shape, self.dtype = tuple(array.shape), np.dtype(array.dtype)

    def __getitem__(self, box: Box, /) -> np.ndarray:
        with explain_read_errors(self._path, _READABLE):
            return self._array[box]


@contextlib.contextmanager
def new_image(
    path: str | os.PathLike[str], shape: tuple[int, ...], dtype: DTypeLike, *, channels: bool, force: bool = False
) -> Iterator[FileArray]:
    """An array to write by slices, which becomes the image of the file when the block ends: TIFF, NPY or Zarr.

    The space of the array is reserved at once, in the folder of `path`. If anything fails, nothing is left, and an
    existing file stays; but a finished array that cannot be packed is kept as .npy, as the error says.
    """
    path = as_new_image_path(path, force=force)
    suffix = path.suffix.lower()
    if suffix not in LARGE_SUFFIXES:
        raise ValueError(f"{as_text(path)} cannot be written part by part: expected one of {' '.join(LARGE_SUFFIXES)}")
    with scratch_array(path, shape, dtype) as array:
        yield array
        with keep_on_failure(array, path):
            if suffix == ".npy":
                move_output(array.path, path, force=force)
                return
            with replace_output(path, force=force) as temporary:
                if suffix == ".zarr":
                    _write_zarr(temporary, array)
                else:
                    tiff.write_tiles(temporary, array, channels)


@contextlib.contextmanager
def scratch_array(path: pathlib.Path, shape: tuple[int, ...], dtype: DTypeLike) -> Iterator[FileArray]:
    """An array in a scratch file on the disk of `path`, whose space is reserved."""
    with scratch_folder(path.resolve().parent) as folder:
        yield new_npy(folder / "image.npy", shape, dtype)


@contextlib.contextmanager
def keep_on_failure(array: FileArray, path: pathlib.Path) -> Iterator[None]:
    """Keep a finished array in the folder of `path` if that file cannot be written, and say so in the error."""
    try:
        yield
    except Exception as error:
        cause = str(error) if isinstance(error, OSError) else f"could not write {as_text(path)}: {error_text(error)}"
        place = path.resolve() if path.is_symlink() else path
        kept = keep_file(array.path, place.with_name(f"{path.name}.npy"))
        raised = OSError(f"{cause.removesuffix(NOTHING_LEFT)}; the finished image is kept in {as_text(kept)}")
        raised.errno = getattr(error, "errno", None)
        raise raised from None


def _write_zarr(path: pathlib.Path, array: FileArray) -> None:
    packed = new_zarr(path, array.shape, array.dtype)
    starts = [range(0, n, side) for n, side in zip(array.shape, packed.chunks, strict=True)]
    for corner in itertools.product(*starts):
        box = tuple(slice(start, start + side) for start, side in zip(corner, packed.chunks, strict=True))
        packed[box] = array[box]


def as_new_image_path(path: str | os.PathLike[str], *, force: bool) -> pathlib.Path:
    """A path that `new_image` can write to, or an error, before any work."""
    path = as_path(path)
    if path.suffix.lower() != ".zarr":
        return as_output_path(path, force=force)
    check_links(path)
    if not force:
        check_is_new(path)
    if path.exists() and not (path / "zarr.json").exists() and not (path / ".zarray").exists():
        raise FileExistsError(f"{as_text(path)} exists and is no Zarr array: it is not replaced; give another name")
    check_folder_exists(path)
    return path


def _check_is_image(array: ImageArray) -> None:
    """Raise unless the array holds real numbers in two to four axes."""
    if np.dtype(array.dtype).kind not in "buif":
        raise ValueError(f"it holds {array.dtype}, expected real numbers")
    if len(array.shape) not in (2, 3, 4) or math.prod(array.shape) == 0:
        raise ValueError(f"its array has shape {tuple(array.shape)}, expected two to four axes, none of them empty")
