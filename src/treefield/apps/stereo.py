"""Disparities of a rectified stereo pair."""

from __future__ import annotations

import functools
import math
from typing import Literal, Unpack, cast, get_args, overload

import numpy as np
from numpy.typing import ArrayLike

from treefield.apps import keywords, occlusions
from treefield.apps.grey_levels import GreyScale, grey_scale
from treefield.apps.image_arrays import as_channels_first, as_mask
from treefield.apps.keywords import MatchingCost, Occlusion, Smoothness, StereoKeywords
from treefield.apps.memory import memory_left_by_costs
from treefield.apps.problem import Problem, check_options, round_to_ten_bits
from treefield.apps.stereo_costs import COSTS, contrast_weights, cost_dtype, matching_costs
from treefield.models.grid import GridMRF
from treefield.models.pairwise import Potts, TruncatedLinear, TruncatedQuadratic
from treefield.protocols import Callback, Seed
from treefield.results import MAPResult, Status, amend_result
from treefield.solvers.loop import Timer
from treefield.validation import as_choice, as_count, as_non_negative, as_positive, as_real_array, warn_caller

SMOOTHNESS = get_args(keywords.Smoothness)
OCCLUSIONS = get_args(keywords.Occlusion)

# in grey levels; census in bits; all but census per channel
_WEIGHTS = {"census": 4.0, "birchfield-tomasi": 2.5, "absolute": 4.0, "squared": 40.0}
_MANY = 2**26  # costs: for more there is time for few rounds, and a better start pays
_REMEDY = "fewer disparities or a smaller image"
_CONTRAST = 8.0  # grey levels
_CONTRAST_FACTOR = 3.0
_FAR_UNIT = 20.0  # factor between the ranges of two images that are probably in different units


@overload
def stereo(
    left: ArrayLike, right: ArrayLike, *, full_output: Literal[False] = False, **keywords: Unpack[StereoKeywords]
) -> np.ndarray: ...
@overload
def stereo(
    left: ArrayLike, right: ArrayLike, *, full_output: Literal[True], **keywords: Unpack[StereoKeywords]
) -> tuple[np.ndarray, MAPResult]: ...
@overload
def stereo(
    left: ArrayLike, right: ArrayLike, *, full_output: bool, **keywords: Unpack[StereoKeywords]
) -> np.ndarray | tuple[np.ndarray, MAPResult]: ...
def stereo(
    left: ArrayLike,
    right: ArrayLike,
    *,
    num_disparities: int | None = None,
    min_disparity: int = 0,
    cost: MatchingCost = "census",
    cost_volume: ArrayLike | None = None,
    smoothness: Smoothness = "linear",
    weight: float | None = None,
    cutoff: float = 4.0,
    contrast: float | None = None,
    contrast_factor: float = _CONTRAST_FACTOR,
    mask: ArrayLike | None = None,
    subpixel: bool = False,
    occlusion: Occlusion = "keep",
    channel_axis: int | None = None,
    memory_limit: float | str | None = None,
    time_limit: float | None = None,
    tol: float | None = None,
    callback: Callback | None = None,
    rng: Seed = None,
    full_output: bool = False,
    **options: object,
) -> np.ndarray | tuple[np.ndarray, MAPResult]:
    """Find the disparity of every pixel of the left image of a rectified pair.

    The disparity is the number of columns by which the same point is further left in the right image.

    Parameters
    ----------
    left, right : (M, N) arrays, or with channels
        Of any real dtype and of the same shape.
    num_disparities : int
        The number of disparities to consider, from `min_disparity` on; at most the number of columns. May be left out
        if `cost_volume` is given.
    min_disparity : int
        The smallest disparity, in pixels.
    cost : "census", "birchfield-tomasi", "absolute" or "squared"
        How pixels are compared: "census" compares the pattern of 5 x 5 pixels around them, whatever the exposure. The
        others compare values, truncated; Birchfield and Tomasi's cost does not depend on sampling.
    cost_volume : (M, N, labels) array, optional
        Your own costs instead, learned ones for instance; label l stands for disparity min_disparity + l.
    smoothness : "linear", "quadratic" or "potts"
        The cost of neighbours whose disparities differ by d: weight * min(d, cutoff), weight * min(d**2, cutoff**2), or
        weight.
    weight : float, optional
        In the units of the matching cost: bits for "census" (24 per pixel), the image's own units (squared for
        "squared"), or those of `cost_volume`. The default depends on `cost`; for a `cost_volume` it is a fifth of its
        mean (above the least cost if some are negative).
    cutoff : float
        In pixels of disparity.
    contrast : float, optional
        Neighbours whose intensities in the left image differ by less than this are considered to lie on one surface. In
        the image's own units: 0..255 for uint8, 0..1 for floats in that range. By default 8/255 of the range from black
        to white.
    contrast_factor : float
        The factor of the weight between such neighbours.
    mask : (M, N) array, optional
        False (0) where the left image is not to be trusted: there disparities come from the neighbours alone.
    subpixel : bool
        Refine disparities to fractions, as float32.
    occlusion : "keep", "mark" or "fill"
        "mark" and "fill" find the disparities of the right image as well. Where the two differ by more than 1, "mark"
        returns NaN (disparities are then float32), "fill" the smaller one of the nearest consistent disparities on the
        row.
    channel_axis : int, optional
        The axis of the colours; None for grey images.
    memory_limit : int or str, optional
        Bytes, or text such as "4 GB", for the costs and the search; by default 2.4 GB, or less if less is free: then
        the whole process stays below 3 GB. The costs take one byte per pixel and disparity with "census", else up to 4,
        and twice that with an occlusion check; a lower bound takes about 9 more. With less there is a search without a
        bound, or a slower one; if the costs do not fit, MemoryError.
    time_limit : float, optional
        Seconds for the whole call, compilation left out: the costs and, with an occlusion check, both searches.
    tol, callback, rng
        As in `minimize`; its other keywords are accepted as well. The default of `tol` is 1e-3; that of `x0` is
        "scan-line" where there are more than 2**26 costs.
    full_output : bool
        Return the result of `minimize` as well.

    Returns
    -------
    disparity : (M, N) array, int32 or float32
    res : MAPResult
        Only with `full_output`. Its labelling `x` is disparity - min_disparity; `mrf` is the model; `cost_volume` holds
        its costs, in bits or in grey levels (255 from black to white), and can be passed in again.

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> scene = np.random.default_rng(0).integers(0, 256, (24, 40), dtype=np.uint8)
    >>> left, right = scene[:, :32], scene[:, 5:37]  # shifted by 5 columns
    >>> disparity = tf.stereo(left, right, num_disparities=8, rng=0)
    >>> int(np.median(disparity)), float((disparity == 5).mean()) > 0.8
    (5, True)
    """
    check_options(stereo, options)
    as_choice(occlusion, "occlusion", OCCLUSIONS)
    timer, seconds = Timer(), None if time_limit is None else as_non_negative(time_limit, "time_limit", infinite=True)
    if occlusion != "keep" and (cost_volume is not None or mask is not None):
        raise ValueError(f'occlusion="{occlusion}" matches both ways: it takes neither cost_volume nor mask')
    pose = functools.partial(
        stereo_problem,
        num_disparities=num_disparities,
        min_disparity=min_disparity,
        cost=cost,
        smoothness=smoothness,
        weight=weight,
        cutoff=cutoff,
        contrast=contrast,
        contrast_factor=contrast_factor,
        channel_axis=channel_axis,
        memory_limit=memory_limit,
        models=1 if occlusion == "keep" else 2,
        threads=cast("int | None", options.get("threads")),
    )
    search = options | {"time_limit": seconds, "tol": tol, "callback": callback, "rng": rng}
    problem = pose(left, right, cost_volume=cost_volume, mask=mask)
    if occlusion != "keep" and seconds is not None and seconds < math.inf:
        problem.preparation += seconds / 2  # the second search, with its costs, has the other half
    res = amend_result(problem.minimize(**search), cost_volume=problem.mrf.unary)
    whole = disparity = problem.output(res.x)
    if subpixel:
        disparity = occlusions.refine_labels(res.x, problem.mrf.unary) + np.float32(min_disparity)
    if occlusion != "keep":
        is_consistent, res = _left_right_consistency(left, right, whole, res, pose, search, timer)
        if occlusion == "mark":
            disparity = np.where(is_consistent, disparity.astype(np.float32), np.float32(np.nan))
        else:
            disparity = occlusions.fill_background(disparity, is_consistent)
    return (disparity, res) if full_output else disparity


def _left_right_consistency(
    left: ArrayLike,
    right: ArrayLike,
    disparity: np.ndarray,
    res: MAPResult,
    pose: functools.partial[Problem[GridMRF]],
    search: dict[str, object],
    timer: Timer,
) -> tuple[np.ndarray, MAPResult]:
    """Where the disparities of the left and the right image agree, and the result; matches the mirrored pair.

    The second search has what is left of the time limit; `timer` has run since the call. If the first search was
    interrupted there is no second one, and all pixels count as consistent. If the second one is interrupted, the result
    that is returned says so.
    """
    if res.status == Status.INTERRUPTED:
        return np.ones(disparity.shape, bool), res
    columns = _column_axis(pose.keywords["channel_axis"], np.ndim(left))
    mirrored = (np.flip(np.asarray(image), axis=columns) for image in (right, left))
    problem = pose(*mirrored)
    problem.preparation = timer.seconds()  # of all that has been done since the call
    other = problem.minimize(**search)
    if other.status == Status.INTERRUPTED:
        res = amend_result(res, status=other.status, message=other.message)
    return occlusions.consistent_pixels(disparity, problem.output(other.x)[:, ::-1]), res


def _column_axis(channel_axis: int | None, dimensions: int) -> int:
    """The axis of an image that counts its columns."""
    last = dimensions - 1
    return last - 1 if channel_axis is not None and channel_axis % dimensions == last else last


def stereo_problem(
    left: ArrayLike,
    right: ArrayLike,
    num_disparities: int | None,
    min_disparity: int = 0,
    *,
    cost: str = "census",
    cost_volume: ArrayLike | None = None,
    smoothness: str = "linear",
    weight: float | None = None,
    cutoff: float = 4.0,
    contrast: float | None = None,
    contrast_factor: float = _CONTRAST_FACTOR,
    mask: ArrayLike | None = None,
    channel_axis: int | None = None,
    memory_limit: float | str | None = None,
    models: int = 1,
    threads: int | None = None,
) -> Problem[GridMRF]:
    """The problem that `stereo` solves; `models` of its size are in memory at the same time."""
    timer = Timer()
    as_choice(cost, "cost", COSTS)
    as_choice(smoothness, "smoothness", SMOOTHNESS)
    first = as_count(min_disparity, "min_disparity", -(2**31))
    (left_levels, right_levels), scale = _as_pair(left, right, channel_axis)
    rows, columns, channels = left_levels.shape
    memory_left = functools.partial(memory_left_by_costs, rows * columns, memory_limit=memory_limit, copies=models)
    if cost_volume is None:
        disparities = _as_disparities(num_disparities, first, columns)
        memory = memory_left(len(disparities), cost_dtype(left_levels, right_levels, cost).itemsize, remedy=_REMEDY)
        volume = matching_costs(left_levels, right_levels, cost, disparities, threads)
        default = _WEIGHTS[cost] * (1 if cost == "census" else channels)
        power = {"census": 0, "squared": 2}.get(cost, 1)
    else:
        volume = _as_cost_volume(cost_volume, (rows, columns), num_disparities)
        memory = memory_left(volume.shape[-1], volume.itemsize, remedy=_REMEDY)
        volume = volume.copy()
        default, power = _fifth_of_mean(volume), 0
    if first + volume.shape[-1] > 2**31:
        raise ValueError(f"min_disparity must be below {2**31 - volume.shape[-1]}, got {first}")
    if mask is not None:
        volume[~as_mask(mask, "mask", (rows, columns))] = 0
    strength = default if weight is None else scale.times_unit(as_non_negative(weight, "weight"), -power)
    pairwise = _pairwise(smoothness, strength, cutoff)
    flat = _CONTRAST if contrast is None else scale.difference(as_non_negative(contrast, "contrast"), "contrast")
    factor = as_positive(contrast_factor, "contrast_factor")
    weights = None if factor == 1 else contrast_weights(left_levels, flat, factor)
    start = "scan-line" if volume.size > _MANY else None
    mrf = GridMRF(volume, pairwise, weights=weights)
    return Problem(mrf, lambda x: (x + first).astype(np.int32), start, memory=memory, preparation=timer.seconds())


def _as_disparities(count: int | None, first: int, columns: int) -> range:
    """The disparities to consider, or an error if images of so few columns cannot show them."""
    if count is None:
        raise TypeError("num_disparities is missing: how many disparities to look at, from min_disparity on")
    count = as_count(count, "num_disparities", 1)
    if first >= columns or first + count > columns or first <= -columns:
        raise ValueError(
            f"disparities {first} to {first + count - 1} do not fit into images of {columns} columns; "
            f"num_disparities may be at most {max(0, columns - max(first, 0))}"
        )
    return range(first, first + count)


def _as_cost_volume(volume: ArrayLike, shape: tuple[int, int], labels: int | None) -> np.ndarray:
    """A cost volume for images of this shape, or an error."""
    array = as_real_array(volume, "cost_volume")
    wanted = (*shape, labels if labels is not None else array.shape[-1] if array.ndim == 3 else "labels")
    if array.shape != wanted:
        raise ValueError(f"cost_volume has shape {array.shape}, expected {wanted}".replace("'", ""))
    if array.shape[-1] == 0:
        raise ValueError(f"cost_volume has shape {array.shape}: there must be at least one label")
    if array.dtype.kind == "f" and (np.isnan(array).any() or array.min() == -np.inf):
        raise ValueError("cost_volume holds NaN or -inf; every cost must be a number (+inf for a forbidden label)")
    return array


def _fifth_of_mean(volume: np.ndarray) -> float:
    """The default weight for a cost volume; never negative, even if costs are."""
    least, total, count = 0.0, 0.0, 0
    for row in volume:  # so that temporary arrays stay small
        costs = row[np.isfinite(row)].astype(np.float64)
        least, total, count = min(least, costs.min(initial=0)), total + costs.sum(), count + costs.size
    return round_to_ten_bits((total / count - least) / 5) or 1.0 if count else 1.0


def _as_pair(left: ArrayLike, right: ArrayLike, channel_axis: int | None) -> tuple[list[np.ndarray], GreyScale]:
    """The two images as (M, N, C) float32 arrays in grey levels, and their common scale; or an error."""
    images = {"left": left, "right": right}
    for name, image in images.items():
        shape = as_real_array(image, name).shape
        if len(shape) > 2 + (channel_axis is not None):
            hint = "; if these are colours, give channel_axis=-1" if channel_axis is None else " and channels"
            raise ValueError(f"{name} has shape {shape}, expected two dimensions{hint}")
    pair = [as_channels_first(image, name, channel_axis) for name, image in images.items()]
    if pair[0].shape != pair[1].shape:
        raise ValueError(f"left has shape {np.shape(left)}, but right has {np.shape(right)}: they must be the same")
    scales = [grey_scale(image) for image in pair]
    narrowest, widest = sorted(scales, key=lambda scale: scale.unit)
    if pair[0].dtype != pair[1].dtype and widest.unit > _FAR_UNIT * narrowest.unit:
        warn_caller(
            f"left is {scales[0].image} and right is {scales[1].image}, whose ranges are very different: they are "
            "compared in the same units"
        )
    scale = widest._replace(black=min(scale.black for scale in scales))
    return [np.ascontiguousarray(scale.to_levels(np.moveaxis(image, 0, -1)), np.float32) for image in pair], scale


def _pairwise(smoothness: str, weight: float, cutoff: float) -> Potts | TruncatedLinear | TruncatedQuadratic:
    cutoff = as_positive(cutoff, "cutoff", infinite=True)
    if smoothness == "potts":
        return Potts(weight)
    if smoothness == "linear":
        return TruncatedLinear(weight, cutoff)
    return TruncatedQuadratic(weight, cutoff * cutoff)  # ** would raise where this is inf
