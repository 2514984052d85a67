"""Remove noise from an image larger than memory."""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import Iterator, Sequence
from typing import Literal, TypeVar, Unpack, cast, overload

import numpy as np
from numpy.typing import ArrayLike

from treefield.apps.image_arrays import check_not_masked, check_value_range, resolve_channel_axis
from treefield.apps.keywords import ChannelAxis, Data, Smoothness, TilingKeywords
from treefield.apps.problem import check_options
from treefield.apps.restoration import Costs, restoration_model
from treefield.apps.tiled_restoration import (
    Tiling,
    blocks,
    combine_results,
    restore_planes,
    unchanged_result,
)
from treefield.io.files import scratch_folder
from treefield.io.paths import as_text, error_text
from treefield.protocols import Callback, Seed
from treefield.results import MAPResult
from treefield.solvers.loop import Timer, as_limits
from treefield.tiling.array_protocols import Box, Index, ReadableArray, WritableArray
from treefield.tiling.stores import check_writable, keep_file, reserve_mapped
from treefield.validation import as_byte_count

Out = TypeVar("Out", bound=WritableArray)


@overload
def denoise_tiled(
    image: ReadableArray, out: None = None, *, full_output: Literal[False] = False, **keywords: Unpack[TilingKeywords]
) -> np.ndarray: ...
@overload
def denoise_tiled(
    image: ReadableArray, out: None = None, *, full_output: Literal[True], **keywords: Unpack[TilingKeywords]
) -> tuple[np.ndarray, MAPResult]: ...
@overload
def denoise_tiled(
    image: ReadableArray, out: Out, *, full_output: Literal[False] = False, **keywords: Unpack[TilingKeywords]
) -> Out: ...
@overload
def denoise_tiled(
    image: ReadableArray, out: Out, *, full_output: Literal[True], **keywords: Unpack[TilingKeywords]
) -> tuple[Out, MAPResult]: ...
def denoise_tiled(
    image: ReadableArray,
    out: WritableArray | None = None,
    *,
    levels: ArrayLike | None = None,
    data: Data | None = None,
    tau: float | None = None,
    smoothness: Smoothness = "linear",
    weight: float | None = None,
    cutoff: float | None = None,
    sigma: float | None = None,
    channel_axis: ChannelAxis = "auto",
    tile: int | Sequence[int] | None = None,
    memory_limit: float | str | None = "1 GB",
    scratch: str | os.PathLike[str] | None = None,
    time_limit: float | None = None,
    tol: float | None = None,
    callback: Callback | None = None,
    rng: Seed = None,
    full_output: bool = False,
    **options: object,
) -> WritableArray | tuple[WritableArray, MAPResult]:
    """Remove the noise from an image that need not fit into memory, as `denoise` does.

    The image is read tile by tile, each tile several times. Labels, one byte per pixel, are kept in a file.

    Parameters
    ----------
    image : (M, N) or (P, M, N) array, or with channels
        Anything with a shape and a dtype that can be sliced: a memmap, a Zarr or HDF5 array.
    out : array, optional
        The array for the restored image: of the image's shape, writable by slices. By default a new NumPy array. If it
        cannot be written to after the search, the labels are kept in the scratch folder; the error names the file.
    levels, data, tau, smoothness, weight, cutoff, sigma, channel_axis
        As in `denoise`, in the image's own units.
    tile, memory_limit
        As in `TiledMRF`: the sides of a tile in pixels, or the memory for the search.
    scratch : path, optional
        The folder for the labels while the search runs; by default the one for temporary files.
    time_limit, tol, callback, rng
        As in `minimize`, whose other keywords are accepted as well: `method` ("auto", "t_icm" or "t_ils"), `threads`,
        `progress`, ... The default of `tol`, for each tile, is that of `denoise`. The channels share the time.
    full_output : bool
        Return the result of `minimize` as well; for several channels, the sum of their energies and bounds.

    Returns
    -------
    restored : `out`, or a new array of the image's shape and dtype
    res : MAPResult
        Only with `full_output`. Labels are not kept: `x` is the array that the restored image was written to,
        `restored` itself.

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> clean = np.kron([[50, 200], [120, 80]], np.ones((32, 32))).astype(np.uint8)
    >>> noisy = np.clip(np.random.default_rng(0).normal(clean, 15), 0, 255).astype(np.uint8)
    >>> restored = tf.denoise_tiled(noisy, tile=32, levels=16, rng=0)
    >>> [float(np.abs(image - 1.0 * clean).mean().round()) for image in (noisy, restored)]
    [12.0, 5.0]
    """
    timer = Timer()
    check_options(denoise_tiled, options)
    costs = Costs(data, tau, smoothness, weight, cutoff, sigma)
    tiling = Tiling(tile, as_byte_count(memory_limit, "memory_limit"))
    planes = _as_planes(image, channel_axis)
    restored = _as_output(image, out)
    as_limits(None, time_limit, callback, progress=False)
    search = options | {"time_limit": time_limit, "tol": tol, "callback": callback, "rng": rng}
    model, noise = restoration_model(planes, *_value_range(planes), levels, costs)

    def write(number: int, box: Box, values: np.ndarray) -> None:
        restored[planes[number].index(box)] = values

    answer = cast(np.ndarray, restored)
    if model is None:
        for number, plane in enumerate(planes):
            for box in blocks(plane.shape):
                write(number, box, plane[box])
        res = unchanged_result(answer, noise=noise)
    else:
        with scratch_folder(scratch) as folder:
            results, _ = restore_planes(
                planes, model, tiling, lambda number: _LabelFile(folder / "labels.npy"), write, search, timer
            )
        res = combine_results(results, answer, noise=noise)
    return (restored, res) if full_output else restored


class _LabelFile:
    """Labels in a file, which is kept if the restored image cannot be written."""

    def __init__(self, path: pathlib.Path) -> None:
        self.store = path

    def read(self) -> np.ndarray:
        """The file, mapped anew for each block: otherwise its pages would stay in memory."""
        return np.load(self.store, mmap_mode="r")

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Remove the file at the end; after an error keep it, and name it."""
        try:
            yield
        except Exception as error:
            kept = keep_file(self.store, self.store.parent.with_name("treefield-labels.npy"))
            raise OSError(
                f"could not write to out: {error_text(error)}; the labels (0 for the lowest level) are kept in "
                f"{as_text(kept)}"
            ) from error
        self.store.unlink()


class Plane:
    """One channel of an image, or an image without channels."""

    def __init__(self, image: ReadableArray, axis: int | None, channel: int) -> None:
        self._image, self._axis, self._channel = image, axis, channel
        shape = tuple(int(n) for n in image.shape)
        self.shape = shape if axis is None else (*shape[:axis], *shape[axis + 1 :])
        self.dtype = np.dtype(image.dtype).newbyteorder("=")
        if self.dtype.kind == "f" and self.dtype.itemsize not in (4, 8):
            self.dtype = np.dtype(np.float32 if self.dtype.itemsize == 2 else np.float64)

    def index(self, box: Box) -> Index:
        """The index of a box in the image."""
        return box if self._axis is None else (*box[: self._axis], self._channel, *box[self._axis :])

    def __getitem__(self, box: Box) -> np.ndarray:
        return np.asarray(self._image[self.index(box)]).astype(self.dtype, copy=False)


def _value_range(planes: list[Plane]) -> tuple[np.generic, np.generic]:
    """The least and the greatest value of all channels, or an error if these cannot be computed with."""
    values = []
    for plane in planes:
        for box in blocks(plane.shape):
            block = plane[box]
            if plane.dtype.kind == "f" and not np.isfinite(block).all():
                raise ValueError("image holds values that are NaN or infinite; inpaint them, or replace them")
            values += [block.min(), block.max()]
    low, high = min(values), max(values)
    check_value_range(low, high, planes[0].dtype, "image")
    return low, high


def _as_planes(image: ReadableArray, channel_axis: ChannelAxis) -> list[Plane]:
    """The channels of an image, or an error if it is none."""
    if not isinstance(image, ReadableArray):
        raise TypeError(f"image must be an array that can be sliced, got {type(image).__name__}")
    shape = tuple(int(n) for n in image.shape)
    if np.dtype(image.dtype).kind not in "buif":
        raise TypeError(f"image must hold real numbers, got dtype {image.dtype}")
    check_not_masked(image, "image")
    axis = resolve_channel_axis(shape, "image", channel_axis)
    if 0 in shape:
        raise ValueError(f"image is empty: its shape is {shape}")
    if axis is None:
        return [Plane(image, None, 0)]
    return [Plane(image, axis, channel) for channel in range(shape[axis])]


def _as_output(image: ReadableArray, out: WritableArray | None) -> WritableArray:
    """`out`, or a new array, for the restored image; or an error if it cannot hold it."""
    if out is None:
        return np.empty(image.shape, np.dtype(image.dtype).newbyteorder("="))
    if not isinstance(out, WritableArray) or tuple(out.shape) != tuple(image.shape):
        raise ValueError(f"out must be an array of the image's shape, {tuple(image.shape)}, that can be written to")
    if not np.can_cast(image.dtype, out.dtype, "safe"):
        raise ValueError(f"out holds {out.dtype}, which does not hold the image's {image.dtype}")
    check_writable(out, "out")
    reserve_mapped(out)
    return out
