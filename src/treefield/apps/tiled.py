"""Take the noise from an image larger than memory."""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from treefield.apps.pictures import check_range
from treefield.apps.restoration import Costs, restoring_tiles
from treefield.io.files import one_line, scratch_folder, shown
from treefield.models.stores import check_writable, keep_file, reserve_mapped
from treefield.models.tiles import Box, cut
from treefield.results import TRACE, MAPResult, relative_gap
from treefield.solvers.interrupt import Interrupts
from treefield.solvers.run import INTERRUPTED, checked_limits
from treefield.validation import as_axis, as_byte_count

_BLOCK = 1024  # sites along a side of what is read at once


def denoise_tiled(
    image: Any,
    out: Any = None,
    *,
    levels: Any = 256,
    data: str = "squared",
    tau: float | None = None,
    smoothness: str = "linear",
    weight: float | None = None,
    cutoff: float = 100.0,
    sigma: float | None = None,
    channel_axis: int | None = None,
    tile: Any = None,
    memory_limit: Any = "1 GB",
    scratch: Any = None,
    time_limit: float | None = None,
    tol: float | None = None,
    callback: Callable[[MAPResult], Any] | None = None,
    rng: Any = None,
    full_output: bool = False,
    **options: Any,
) -> Any:
    """Take the noise from an image that need not fit into memory, as `denoise` does.

    The image is read tile by tile, each several times; labels, one byte for each pixel, are kept in a file.

    Parameters
    ----------
    image : (M, N) or (P, M, N) array, or with channels
        Anything that has a shape and a dtype and can be sliced: a memmap, a Zarr or HDF5 array.
    out : array, optional
        Where the restored image goes: of the image's shape, and can be written to by slices. In memory if not given. If
        it cannot be written to after the search, the labels are kept in the scratch folder, as the error says.
    levels, data, tau, smoothness, weight, cutoff, sigma, channel_axis
        As in `denoise`. The noise is estimated in the middle of the image, there as here.
    tile, memory_limit
        As in `TiledMRF`: the sides of a tile, or what its search may need.
    scratch : path, optional
        A folder for the labels, for as long as the search takes; by default one for temporary files.
    time_limit, tol, callback, rng
        As in `minimize`, whose other keywords may be given, too: `method` ("auto", "t_icm" or "t_ils"), `threads`,
        `progress`, ... The default of `tol` is 1e-3, for each tile. The time is shared by the channels.
    full_output : bool
        Whether to return the result of `minimize`, too: without its labelling; of several channels what all of them
        have together.

    Returns
    -------
    restored : `out`, or an array of the image's shape and dtype
    res : MAPResult
        With `full_output`.

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> clean = np.kron([[50, 200], [120, 80]], np.ones((32, 32))).astype(np.uint8)
    >>> noisy = np.clip(np.random.default_rng(0).normal(clean, 15), 0, 255).astype(np.uint8)
    >>> restored = tf.denoise_tiled(noisy, tile=32, levels=16, rng=0)
    >>> [float(np.abs(image - 1.0 * clean).mean().round()) for image in (noisy, restored)]
    [12.0, 5.0]
    """
    costs = Costs(data, tau, smoothness, weight, cutoff, sigma)
    limit = as_byte_count(memory_limit, "memory_limit")
    planes = _planes(image, channel_axis)
    restored = _output(image, out)
    options |= {"tol": tol, "callback": callback, "rng": rng}
    seconds = checked_limits(None, time_limit, callback, progress=False)["time_limit"]
    if seconds is not None:
        options["time_limit"] = seconds / len(planes)
    results: list[MAPResult] = []
    extremes = _extremes(planes)
    with scratch_folder(scratch) as folder, Interrupts() as interrupts:
        store = folder / "labels.npy"
        tiling = {"tile": tile, "memory_limit": limit, "store": store}
        problems = restoring_tiles(planes, *extremes, levels, costs, **tiling)
        for number, (plane, problem) in enumerate(zip(planes, problems, strict=True)):
            res = problem.minimize(**options)
            res.pop("x")
            with _labels_kept_if_not_written(store):
                for box in blocks(plane.shape):  # mapped anew each time: what is written does not stay in memory
                    restored[plane.place(box)] = problem.output(np.load(store, mmap_mode="r")[box])
            store.unlink()
            results.append(res)
            if interrupts.pending and res.status != INTERRUPTED:
                res.update(status=INTERRUPTED, success=False, message=f"{interrupts.pending} after the search")
            if res.status == INTERRUPTED:
                for left in planes[number + 1 :]:  # as it came
                    for box in blocks(left.shape):
                        restored[left.place(box)] = left[box]
                break
    return (restored, _together(results)) if full_output else restored


@contextlib.contextmanager
def _labels_kept_if_not_written(labels: pathlib.Path) -> Iterator[None]:
    """Keep the labels that were found if the image cannot be written, and say so in the error."""
    try:
        yield
    except Exception as error:
        kept = keep_file(labels, labels.parent.with_name("treefield-labels.npy"))
        raise OSError(
            f"could not write to out: {one_line(error)}; the labels that were found, from 0 for the lowest level on, "
            f"are kept in {shown(kept)}"
        ) from error


def _together(results: list[MAPResult]) -> MAPResult:
    """What several channels have in all."""
    if len(results) == 1:
        return results[0]
    fun, bound = (sum(res[name] for res in results) for name in ("fun", "lower_bound"))
    nit, seconds = sum(res.nit for res in results), sum(res.trace["seconds"][-1] for res in results)
    worst = max(results, key=lambda res: res.status)
    told = {name: worst[name] for name in ("success", "status", "message", "method")}
    trace = np.array([(nit, seconds, fun, fun, bound)], TRACE)
    return MAPResult(fun=fun, lower_bound=bound, gap=relative_gap(fun, bound), nit=nit, trace=trace, **told)


class _Plane:
    """One channel of an image, or an image without channels."""

    def __init__(self, image: Any, axis: int | None, channel: int) -> None:
        self._image, self._axis, self._channel = image, axis, channel
        shape = tuple(int(n) for n in image.shape)
        self.shape = shape if axis is None else (*shape[:axis], *shape[axis + 1 :])
        self.dtype = np.dtype(image.dtype).newbyteorder("=")
        if self.dtype.kind == "f" and self.dtype.itemsize not in (4, 8):
            self.dtype = np.dtype(np.float32 if self.dtype.itemsize == 2 else np.float64)

    def place(self, box: Box) -> tuple[Any, ...]:
        """Where a box is in the image."""
        return box if self._axis is None else (*box[: self._axis], self._channel, *box[self._axis :])

    def __getitem__(self, box: Box) -> np.ndarray:
        return np.asarray(self._image[self.place(box)]).astype(self.dtype, copy=False)


def _extremes(planes: list[_Plane]) -> tuple[Any, Any]:
    """The least and the greatest value of all channels."""
    found = []
    for plane in planes:
        for box in blocks(plane.shape):
            block = plane[box]
            if plane.dtype.kind == "f" and not np.isfinite(block).all():
                raise ValueError("image holds values that are NaN or infinite; inpaint them, or replace them")
            found += [block.min(), block.max()]
    low, high = min(found), max(found)
    check_range(low, high, planes[0].dtype, "image")
    return low, high


def _planes(image: Any, channel_axis: int | None) -> list[_Plane]:
    if not hasattr(image, "shape") or not hasattr(image, "dtype") or not hasattr(image, "__getitem__"):
        raise TypeError(f"image must be an array that can be sliced, got {type(image).__name__}")
    shape = tuple(int(n) for n in image.shape)
    if np.dtype(image.dtype).kind not in "buif":
        raise TypeError(f"image must hold real numbers, got dtype {image.dtype}")
    wanted = 2 if channel_axis is None else 3
    if len(shape) not in (wanted, wanted + 1):
        channels = "" if channel_axis is None else " and an axis for its channels"
        raise ValueError(f"image has shape {shape}, expected two or three dimensions{channels}")
    if 0 in shape:
        raise ValueError(f"image is empty: its shape is {shape}")
    if channel_axis is None:
        return [_Plane(image, None, 0)]
    axis = as_axis(channel_axis, len(shape), "channel_axis") % len(shape)
    return [_Plane(image, axis, channel) for channel in range(shape[axis])]


def _output(image: Any, out: Any) -> Any:
    if out is None:
        return np.empty(image.shape, np.dtype(image.dtype).newbyteorder("="))
    if tuple(getattr(out, "shape", ())) != tuple(image.shape) or not hasattr(out, "__setitem__"):
        raise ValueError(f"out must be an array of the image's shape, {tuple(image.shape)}, that can be written to")
    if not np.can_cast(image.dtype, out.dtype, "safe"):
        raise ValueError(f"out holds {out.dtype}, which does not hold the image's {image.dtype}")
    check_writable(out, "out")
    reserve_mapped(out)
    return out


def blocks(shape: tuple[int, ...]) -> Iterator[Box]:
    """An image cut into what is read and written at once."""
    side = _BLOCK if len(shape) == 2 else 128
    for lot in cut(shape, tuple(min(side, n) for n in shape)):
        yield from lot
