"""Images and label maps as NumPy arrays; the suffix of a file's name decides its format."""

from __future__ import annotations

import os
import pathlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from treefield.io.files import MissingPackageError, explain_read_errors, write_atomically
from treefield.io.images import netpbm, pillow_files, strokes, tiff
from treefield.io.numpy_files import read_npy, read_npz, write_npy, write_npz
from treefield.io.paths import as_input_path, as_path, as_text, error_text
from treefield.validation import as_real_array

_NETPBM = (".pgm", ".ppm", ".pnm")
WRITABLE_SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", *_NETPBM, ".pfm", ".npy", ".npz")
_READ = (*WRITABLE_SUFFIXES, ".bmp", ".gif", ".webp")
_ANY_DTYPE = (".tif", ".tiff", ".npy", ".npz")
# what the other formats hold: dtypes, and channels (1 for an (M, N) array)
_HOLDS: dict[str, tuple[tuple[str, ...], tuple[int, ...]]] = {
    ".png": (("bool", "uint8", "uint16"), (1, 2, 3, 4)),
    ".jpg": (("uint8",), (1, 3)),
    ".jpeg": (("uint8",), (1, 3)),
    ".pgm": (("uint8", "uint16"), (1,)),
    ".ppm": (("uint8", "uint16"), (3,)),
    ".pnm": (("uint8", "uint16"), (1, 3)),
    ".pfm": (("float32",), (1, 3)),
}
_ENCODERS = {
    ".png": pillow_files.encode_png,
    ".jpg": pillow_files.encode_jpeg,
    ".jpeg": pillow_files.encode_jpeg,
    ".pfm": netpbm.encode_pfm,
    **dict.fromkeys(_NETPBM, netpbm.encode_netpbm),
}
_SHAPES = "(M, N), (M, N, channels), (P, M, N) or (P, M, N, channels)"


def read_image(path: str | os.PathLike[str]) -> np.ndarray:
    """The image of a file: (M, N) or (M, N, channels), or a volume (P, M, N) or (P, M, N, channels).

    Values and dtype are those of the file: uint8, uint16 or bool as a rule, float32 of PFM, anything real of TIFF, NPY
    and NPZ (the single array in it, or the one named "image"). Palettes become RGB, transparency an alpha channel,
    CMYK becomes RGB; EXIF orientation is applied. Of a GIF the first frame, of a TIFF all equal pages.

    Raises ValueError for what cannot be read, and MemoryError, before anything is unpacked, for what would not fit.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np, treefield.io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "image.png")
    ...     treefield.io.write_image(path, np.array([[0, 1000], [2000, 65535]], np.uint16))
    ...     treefield.io.read_image(path)
    array([[    0,  1000],
           [ 2000, 65535]], dtype=uint16)
    """
    return _read(path, labels=False)[0]


def list_images(folder: str | os.PathLike[str]) -> list[pathlib.Path]:
    """The images in a folder, by name; hidden files are left out."""
    folder = as_path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {as_text(folder)}")
    files = [path for path in folder.iterdir() if path.suffix.lower() in _READ and path.is_file()]
    files = sorted(path for path in files if not path.name.startswith("."))
    if not files:
        raise FileNotFoundError(f"{as_text(folder)} is a folder without images: expected {' '.join(_READ)}")
    return files


def read_labels(path: str | os.PathLike[str]) -> np.ndarray:
    """The label map of a file: an integer array (M, N) or (P, M, N), each value as it is stored.

    Palette images give their indices, two-coloured ones 0 and 1, RGB images with equal channels one of these. Raises
    for an image that is no label map, such as a photograph or an array of floats.
    """
    return _as_label_map(*_read(path, labels=True), as_text(path))


def _as_label_map(labels: np.ndarray, channels: bool, path: str) -> np.ndarray:
    """An image, whose last axis may be channels, as integers (M, N) or (P, M, N), or an error."""
    if channels:
        colours = labels[..., : 1 if labels.shape[-1] == 2 else 3]
        if (colours != colours[..., :1]).any():
            raise ValueError(f"{path} is a colour image, expected labels: one integer per site (grey or palette)")
        labels = np.ascontiguousarray(colours[..., 0])
    if labels.dtype.kind not in "bui":
        raise ValueError(f"{path} holds {labels.dtype}, expected integer labels; round them and save them as integers")
    if labels.ndim not in (2, 3):
        raise ValueError(f"{path} has shape {labels.shape}, expected labels of shape (M, N) or (P, M, N)")
    return labels.astype(np.uint8) if labels.dtype == np.bool_ else labels


def read_seeds(path: str | os.PathLike[str]) -> tuple[np.ndarray, dict[str, int]]:
    """The labels that a file gives to some pixels, 0 elsewhere; and, of a colour image, the pixels of each colour.

    An image of one channel or with a palette is a label map, as for `read_labels`. In an image with channels each
    colour is a label, numbered from 1 on in the order of the colours' codes, such as "#0000ff".
    """
    image, channels = _read(path, labels=True)
    if not channels or image.dtype not in (np.uint8, np.uint16):
        return _as_label_map(image, channels, as_text(path)), {}
    try:
        return strokes.number_colours(image)
    except ValueError as error:
        raise ValueError(f"{as_text(path)} holds no seeds: {error}") from None


def write_image(path: str | os.PathLike[str], array: ArrayLike, *, force: bool = False) -> None:
    """Write an image, without loss but for JPEG: what the format does not hold exactly is refused.

    `force` replaces an existing file. If the writing fails, that file is left unchanged.
    """
    path, array, suffix = as_writable_image(path, array)
    channels = array.ndim > 2 and array.shape[-1] in (2, 3, 4) and array.dtype != np.bool_
    _write(path, array, suffix, channels, force)


def as_writable_image(path: str | os.PathLike[str], array: ArrayLike) -> tuple[pathlib.Path, np.ndarray, str]:
    """The array as `write_image` stores it, or the error that it raises.

    Lets a caller check before the work, with any array of the same shape and dtype.
    """
    path = as_path(path)
    suffix = _as_known_suffix(path, WRITABLE_SUFFIXES)
    array = _as_image_array(path, array)
    if suffix in _HOLDS:
        _check_held(path, array, suffix)
    if suffix in (".tif", ".tiff") and array.dtype.itemsize > 8:
        raise ValueError(f"cannot write {as_text(path)}: TIFF does not hold {array.dtype}; .npy holds it")
    return path, array, suffix


def has_alpha(path: pathlib.Path) -> bool:
    """Whether the format has room for an alpha channel."""
    return 4 in _HOLDS.get(path.suffix.lower(), ((), (4,)))[1]


def write_labels(path: str | os.PathLike[str], labels: ArrayLike, *, force: bool = False) -> None:
    """Write a label map, so that `read_labels` gives it back: integers (M, N), or (P, M, N) for TIFF, NPY and NPZ.

    A PNG of labels up to 255 has a palette: its indices are the labels, and any viewer shows each in a colour of its
    own. Labels beyond are written as 16-bit grey. Negative ones need TIFF, NPY or NPZ.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np, treefield.io
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "labels.png")
    ...     treefield.io.write_labels(path, np.array([[0, 1], [2, 3]]))
    ...     treefield.io.read_labels(path), treefield.io.read_image(path).shape
    (array([[0, 1],
           [2, 3]], dtype=uint8), (2, 2, 3))
    """
    path, labels, suffix = as_writable_labels(path, labels)
    _write(path, labels, "palette" if suffix == ".png" and labels.dtype == np.uint8 else suffix, False, force)


def as_writable_labels(path: str | os.PathLike[str], labels: ArrayLike) -> tuple[pathlib.Path, np.ndarray, str]:
    """The labels as `write_labels` stores them, in the stored dtype, or the error that it raises.

    Lets a caller check before the work, with any labels of the same shape and range.
    """
    path = as_path(path)
    suffix = _as_known_suffix(path, (".png", ".tif", ".tiff", ".pgm", ".pnm", ".npy", ".npz"), "labels as ")
    labels = _as_image_array(path, labels)
    refused = f"cannot write {as_text(path)}: "
    if labels.dtype.kind not in "bui":
        raise TypeError(f"{refused}labels must be integers, got {labels.dtype}; convert them with .astype(int)")
    if labels.ndim not in (2, 3) or (labels.ndim == 3 and suffix not in _ANY_DTYPE):
        raise ValueError(f"{refused}labels have shape {labels.shape}, expected (M, N), or (P, M, N) for .tif and .npy")
    labels = labels.astype(np.uint8) if labels.dtype == np.bool_ else labels
    if suffix in _ANY_DTYPE:
        return path, labels, suffix
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high > 65535:
        raise ValueError(
            f"{refused}it holds labels from 0 to 65535, these are {low} to {high}; .tif or .npy holds them"
        )
    return path, labels.astype(np.uint8 if high < 256 else np.uint16), suffix


def _read(path: str | os.PathLike[str], labels: bool) -> tuple[np.ndarray, bool]:
    """The array of a file, and whether its last axis is known to be channels."""
    path = as_path(path)
    suffix = _as_known_suffix(path, _READ)
    path = as_input_path(path)
    with explain_read_errors(path, "an image that can be read"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # decoders warn of what they mend
        if path.stat().st_size == 0:
            raise ValueError("the file is empty")
        if suffix in (".tif", ".tiff"):
            array, channels = tiff.read_tiff(path, labels)
        elif suffix == ".npy":
            array, channels = read_npy(path), False
        elif suffix == ".npz":
            array, channels = read_npz(path, _image_in).popitem()[1], False
        elif suffix == ".pfm" or suffix in _NETPBM:
            array = netpbm.read_pfm(path) if suffix == ".pfm" else netpbm.read_netpbm(path)
            channels = array.ndim == 3
        else:
            array, channels = pillow_files.read_picture(path, labels)
        if array.dtype.kind not in "buif":
            raise ValueError(f"it holds {array.dtype}, expected real numbers")
        if array.ndim not in (2, 3, 4):
            raise ValueError(f"its array has shape {array.shape}, expected {_SHAPES}")
        if array.size == 0:
            raise ValueError(f"it is empty: its shape is {array.shape}")
    return array, channels


def _image_in(names: list[str]) -> list[str]:
    if "image" in names:
        return ["image"]
    if len(names) != 1:
        raise ValueError(f"it holds {', '.join(sorted(names)) or 'no arrays'}; expected one array, or one named image")
    return names


def _as_known_suffix(path: pathlib.Path, known: tuple[str, ...], what: str = "") -> str:
    suffix = path.suffix.lower()
    if suffix not in known:
        came = f"the suffix {suffix}" if suffix else "no suffix"
        if suffix == ".zarr":
            raise ValueError(f"{as_text(path)} is read part by part: with --memory-limit, or treefield.io.open_image")
        raise ValueError(f"{as_text(path)} has {came}, expected {what}one of {' '.join(known)}")
    return suffix


def _as_image_array(path: pathlib.Path, array: ArrayLike) -> np.ndarray:
    array = as_real_array(array, "array")
    if array.ndim not in (2, 3, 4):
        raise ValueError(f"cannot write {as_text(path)}: the array has shape {array.shape}, expected {_SHAPES}")
    if array.size == 0:
        raise ValueError(f"cannot write {as_text(path)}: the array is empty, of shape {array.shape}")
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _check_held(path: pathlib.Path, array: np.ndarray, suffix: str) -> None:
    """Refuse what a format would have to change."""
    dtypes, channels = _HOLDS[suffix]
    pfm = " (or .pfm)" if array.dtype == np.float32 and suffix != ".pfm" else ""
    hint = f"; .tif or .npy{pfm} hold it, or convert it"
    refused = f"cannot write {as_text(path)}: {suffix[1:].upper()} holds"
    if array.dtype.name not in dtypes:
        raise ValueError(f"{refused} {' or '.join(dtypes)}, the array is {array.dtype}{hint}")
    count = 1 if array.ndim == 2 else array.shape[2] if array.ndim == 3 and array.shape[2] > 1 else 0
    if count not in channels or (array.dtype == np.bool_ and count > 1):
        number = " or ".join("(M, N)" if n == 1 else f"(M, N, {n})" for n in channels)
        raise ValueError(f"{refused} {number}, the array has shape {array.shape}{hint}")
    longest = pillow_files.MAX_JPEG_SIDE if suffix in (".jpg", ".jpeg") else pillow_files.MAX_PNG16_SIDE
    if suffix in (".jpg", ".jpeg", ".png") and array.dtype != np.bool_ and max(array.shape[:2]) > longest:
        raise ValueError(f"{refused} up to {longest} pixels a side, the array has shape {array.shape}{hint}")


def _write(path: pathlib.Path, array: np.ndarray, suffix: str, channels: bool, force: bool) -> None:
    encode = pillow_files.encode_palette_png if suffix == "palette" else _ENCODERS.get(suffix)
    with write_atomically(path, force=force) as temporary:
        # in memory first: not every encoder says why it cannot write to a file
        parts = _encoded(path, encode, array) if encode else []
        if suffix in (".tif", ".tiff"):
            tiff.write_tiff(temporary, array, channels)
        elif suffix == ".npy":
            write_npy(temporary, array)
        elif suffix == ".npz":
            write_npz(temporary, {"image": array})
        else:
            with temporary.open("wb") as file:
                for part in parts:
                    file.write(part)


def _encoded(path: pathlib.Path, encode: Callable[[np.ndarray], list[Any]], array: np.ndarray) -> list[Any]:
    try:
        return encode(array)
    except (MissingPackageError, MemoryError):
        raise
    except Exception as error:  # such as an image that is too wide for JPEG
        shape = f"an array of shape {array.shape}"
        raise ValueError(f"cannot write {as_text(path)}: {shape} could not be encoded ({error_text(error)})") from None
