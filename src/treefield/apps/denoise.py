"""Remove noise from an image."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple, Unpack, cast, overload

import numpy as np
from numpy.typing import ArrayLike

from treefield.apps.image_arrays import as_channels_first, from_channels_first
from treefield.apps.keywords import ChannelAxis, Data, DenoiseKeywords, Smoothness
from treefield.apps.large_denoising import BYTES_PER_LABEL, TILE_BYTES, LargeDenoising, search_bytes
from treefield.apps.level_model import LevelModel
from treefield.apps.memory import memory_left_by_costs, search_memory
from treefield.apps.noise import Noise
from treefield.apps.problem import MESSAGE_METHODS, Problem, check_options
from treefield.apps.restoration import Costs, restoration_model, restoration_problem, searching_seconds
from treefield.apps.tiled_restoration import restoring_seconds
from treefield.models.grid import GridMRF
from treefield.protocols import Callback, Seed
from treefield.results import MAPResult
from treefield.solvers.loop import Timer
from treefield.tiling.search import METHODS
from treefield.validation import as_non_negative

_COST_BYTES = 2  # of a pixel and level, at least
_REMEDY = "fewer levels or a smaller image, leave out x0 and checkpoint, and name no method: then tiles are searched"


@overload
def denoise(
    image: ArrayLike, *, full_output: Literal[False] = False, **keywords: Unpack[DenoiseKeywords]
) -> np.ndarray: ...
@overload
def denoise(
    image: ArrayLike, *, full_output: Literal[True], **keywords: Unpack[DenoiseKeywords]
) -> tuple[np.ndarray, MAPResult]: ...
@overload
def denoise(
    image: ArrayLike, *, full_output: bool, **keywords: Unpack[DenoiseKeywords]
) -> np.ndarray | tuple[np.ndarray, MAPResult]: ...
def denoise(
    image: ArrayLike,
    *,
    levels: ArrayLike | None = None,
    data: Data | None = None,
    tau: float | None = None,
    smoothness: Smoothness = "linear",
    weight: float | None = None,
    cutoff: float | None = None,
    sigma: float | None = None,
    channel_axis: ChannelAxis = "auto",
    memory_limit: float | str | None = None,
    time_limit: float | None = None,
    tol: float | None = None,
    callback: Callback | None = None,
    rng: Seed = None,
    full_output: bool = False,
    **options: object,
) -> np.ndarray | tuple[np.ndarray, MAPResult]:
    """Remove Gaussian noise, salt and pepper, or both, from an image.

    Every pixel takes one of some levels of intensity, close to the observed one and close to its neighbours'. Both
    costs are truncated, so that an outlier is replaced and an edge stays sharp. The noise is estimated first: an image
    without any is returned unchanged, and black and white that belong to the image, such as text, are not taken for
    salt and pepper.

    Parameters are in the image's own units: 0..255 for uint8, 0..65535 for uint16, 0..1 for floats in that range. The
    letter d stands for a difference of two intensities.

    Parameters
    ----------
    image : (M, N) or (P, M, N) array, or with channels
        Of any real dtype.
    levels : int or array, optional
        The number of levels, spread over the image's range, or a list of them. By default they are a quarter of sigma
        apart, 256 at most. Restored values lie between the levels where ``data="patches"``, unless a list is given:
        they are means over levels, given the labels of the neighbours.
    data : "patches", "squared" or "absolute", optional
        The cost of a level. "squared" and "absolute": min(d**2, tau) and min(d, tau), with the difference from the
        observed value. "patches": min(n**0.7 * d**2, tau), with the difference from the mean of the n pixels in the
        neighbourhood whose surroundings are similar (non-local means). By default "patches"; "squared" if there is
        salt and pepper, or if `tau` is given.
    tau : float, optional
        The greatest cost of a pixel, in the units of d**2 or d. By default it is estimated from the share of outliers,
        and is less for the values that outliers have (0 and 255 for salt and pepper).
    smoothness : "linear", "quadratic" or "potts"
        The cost of neighbours that differ: weight * min(d, cutoff), weight * min(d**2, cutoff**2), or weight.
    weight : float, optional
        In the units of the data cost divided by those of d, d**2 or 1. By default it grows with the noise.
    cutoff : float, optional
        The difference, in the units of d, from which on an edge costs no more. By default 100/255 of the range from
        black to white, 40/255 for patches.
    sigma : float, optional
        The standard deviation of the noise, in the units of d. By default it is estimated.
    channel_axis : int, optional
        The axis of the colours, each of which is restored separately. By default there is none; an image of shape
        (M, N, 3) or (M, N, 4) then raises, unless None says that it is a volume.
    memory_limit : int or str, optional
        Bytes, or text such as "500 MB", for the search: by default 2 GB, or less if less is free. An image whose model
        needs more is searched tile by tile, by "auto", "t_icm" or "t_ils". Other methods, and a search with `x0` or
        `checkpoint`, need the whole model in memory.
    time_limit, tol, callback, rng
        As in `minimize`, whose other keywords are accepted as well: `method`, `maxiter`, `threads`, `progress`, ... The
        time includes that for building the model. The default of `tol` is 5e-3 if restored values lie between the
        levels, otherwise 1e-3.
    full_output : bool
        Return the result of `minimize` as well.

    Returns
    -------
    restored : array of the image's shape and dtype
    res : MAPResult
        Only with `full_output`. Its labelling `x` holds indices of the levels, with the channels stacked along the
        first axis; `mrf` is the model and `noise` the estimate of the noise. Energies are in grey levels: d is 255 from
        black to white for every dtype. For a large image `mrf` is a list of `TiledMRF`, one for each channel.

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> clean = np.kron([[50, 200], [120, 80]], np.ones((16, 16))).astype(np.uint8)
    >>> noisy = np.clip(np.random.default_rng(0).normal(clean, 15), 0, 255).astype(np.uint8)
    >>> restored = tf.denoise(noisy, rng=0)
    >>> [float(np.abs(image - 1.0 * clean).mean().round()) for image in (noisy, restored)]
    [12.0, 4.0]
    >>> restored = tf.denoise(noisy / 255, sigma=15 / 255, rng=0)  # floats between 0 and 1
    >>> float(np.abs(255 * restored - clean).mean().round())
    2.0
    """
    check_options(denoise, options)
    costs = Costs(data, tau, smoothness, weight, cutoff, sigma)
    search = options | {"time_limit": time_limit}
    problem = plan_denoising(image, levels, costs, channel_axis, memory_limit, search)
    return problem.solve(full_output, time_limit=time_limit, tol=tol, callback=callback, rng=rng, **options)


def denoise_problem(
    image: ArrayLike, *, levels: ArrayLike | None = None, costs: Costs | None = None, channel_axis: ChannelAxis = "auto"
) -> Problem[GridMRF]:
    """The problem that `denoise` solves, in memory."""
    return _in_memory(_model_of(image, levels, Costs() if costs is None else costs, channel_axis))


def plan_denoising(
    image: ArrayLike,
    levels: ArrayLike | None,
    costs: Costs,
    channel_axis: ChannelAxis,
    memory_limit: float | str | None,
    options: Mapping[str, object],
) -> Problem[GridMRF] | LargeDenoising:
    """The problem that `denoise` solves: in memory if the limit allows it, or if the `options` of the search need it;
    otherwise tile by tile. Their time limit holds for building the model as well."""
    posed = _model_of(image, levels, costs, channel_axis)
    limit = search_memory(memory_limit)
    needs_model = options.get("keep_messages") or any(options.get(name) is not None for name in ("checkpoint", "x0"))
    fits_tiles = options.get("method", "auto") in METHODS and not needs_model
    seconds = cast(float | None, options.get("time_limit"))
    if posed.model is None or search_bytes(posed.array.size, posed.model) <= limit:
        return _in_memory(posed, seconds)
    if not fits_tiles:
        size, labels = posed.array.size, len(posed.model.values)
        each = BYTES_PER_LABEL if options.get("method") in MESSAGE_METHODS else _COST_BYTES
        left = memory_left_by_costs(size, labels, each, memory_limit, _REMEDY, default=sys.maxsize)
        return dataclasses.replace(_in_memory(posed, seconds), memory=left)
    return LargeDenoising(posed.array, posed.model, posed.noise, posed.output, posed.timer, min(limit, TILE_BYTES))


class _Posed(NamedTuple):
    """An image, channels first, with its model, None if there is no noise."""

    array: np.ndarray
    model: LevelModel | None
    noise: Noise
    output: Callable[[np.ndarray], np.ndarray]  # from channels first to the layout of the input
    timer: Timer


def _model_of(image: ArrayLike, levels: ArrayLike | None, costs: Costs, channel_axis: ChannelAxis) -> _Posed:
    timer = Timer()
    array, dtype = as_channels_first(image, "image", channel_axis), np.asarray(image).dtype
    model, noise = restoration_model(list(array), array.min(), array.max(), levels, costs)
    return _Posed(array, model, noise, lambda x: from_channels_first(x, channel_axis, dtype), timer)


def _in_memory(posed: _Posed, time_limit: float | None = None) -> Problem[GridMRF]:
    array, model, timer = posed.array, posed.model, posed.timer
    seconds, restoring = math.inf, 0.0
    if time_limit is not None and model is not None:
        seconds = as_non_negative(time_limit, "time_limit", infinite=True) - searching_seconds(array.size, model)
        restoring = restoring_seconds(model.prepared(array[0], lambda: False), array[0]) * len(array)
    problem = restoration_problem(array, model, posed.noise, lambda: timer.seconds() < seconds)
    output = lambda x: posed.output(problem.output(x))  # noqa: E731
    return dataclasses.replace(problem, output=output, preparation=timer.seconds() + restoring)
