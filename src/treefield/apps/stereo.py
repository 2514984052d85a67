"""Depth from two views."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from treefield.apps import occlusions
from treefield.apps.matching import COSTS, contrast_weights, matching_costs
from treefield.apps.pictures import Scale, checked_image, checked_mask, grey_scale
from treefield.apps.problem import Problem, short
from treefield.models.grid import GridMRF
from treefield.models.pairwise import Potts, TruncatedLinear, TruncatedQuadratic
from treefield.results import MAPResult
from treefield.solvers.run import INTERRUPTED
from treefield.validation import as_choice, as_count, as_non_negative, as_positive, as_real_array

SMOOTHNESS = ("linear", "quadratic", "potts")
OCCLUSIONS = ("keep", "mark", "fill")

_WEIGHT = {"census": 4.0, "birchfield-tomasi": 2.5, "absolute": 4.0, "squared": 40.0}  # the last three per channel
_FLAT, _FACTOR = 8.0, 3.0


def stereo(
    left: Any,
    right: Any,
    *,
    num_disparities: int | None = None,
    min_disparity: int = 0,
    cost: str = "census",
    cost_volume: Any = None,
    smoothness: str = "linear",
    weight: float | None = None,
    cutoff: float = 4.0,
    contrast: float = _FLAT,
    contrast_factor: float = _FACTOR,
    mask: Any = None,
    subpixel: bool = False,
    occlusion: str = "keep",
    channel_axis: int | None = None,
    time_limit: float | None = None,
    tol: float | None = None,
    callback: Callable[[MAPResult], Any] | None = None,
    rng: Any = None,
    full_output: bool = False,
    **options: Any,
) -> Any:
    """Find the disparity of every pixel of the left image of a rectified pair: how many columns further left the right
    image shows the same.

    Parameters
    ----------
    left, right : (M, N) arrays, or with channels
        Of any real dtype, with the same shape.
    num_disparities : int
        How many disparities to look at, from `min_disparity` on; as many as columns at most.
    cost : "census", "birchfield-tomasi", "absolute" or "squared"
        How pixels are compared: by the pattern of 5 x 5 pixels around them, whatever the exposure; or by their values,
        truncated, with Birchfield and Tomasi's regard for sampling or without.
    cost_volume : (M, N, labels) array, optional
        Costs of your own instead, label l for disparity min_disparity + l: learned ones, for instance.
    smoothness : "linear", "quadratic" or "potts"
        The cost of neighbours whose disparities differ by d: weight * min(d, cutoff), weight * min(d**2, cutoff**2), or
        weight.
    weight : float, optional
        The default suits `cost`, and is a fifth of the mean of a `cost_volume` (above the least if some are negative).
    contrast, contrast_factor : float
        Neighbours whose values in the left image differ by less than `contrast` steps of grey (of 255) are that many
        times more strongly tied: depth changes where the picture does.
    mask : (M, N) array, optional
        True where the left image is to be trusted; elsewhere disparities come from around.
    subpixel : bool
        Whether to refine disparities to fractions, as float32.
    occlusion : "keep", "mark" or "fill"
        With "mark" and "fill" the right image's disparities are found, too, and where the two disagree by more than 1
        the pixel is NaN (then disparities are float32), or gets the nearest trusted disparity further back on its row.
    channel_axis : int, optional
        The axis of the colours; None for grey images.
    time_limit, tol, callback, rng
        As in `minimize`, for each of the two runs of an occlusion check; its other keywords may be given, too. The
        default of `tol` is 1e-3.
    full_output : bool
        Whether to return the result of `minimize`, too.

    Returns
    -------
    disparity : (M, N) array, int32 or float32
    res : MAPResult
        With `full_output`. `x` are labels, disparity - min_disparity; `mrf` is the model and `cost_volume` its costs,
        which may be given again.

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> scene = np.random.default_rng(0).integers(0, 256, (24, 40), dtype=np.uint8)
    >>> left, right = scene[:, :32], scene[:, 5:37]  # shifted by 5 columns
    >>> disparity = tf.stereo(left, right, num_disparities=8, rng=0)
    >>> int(np.median(disparity)), float((disparity == 5).mean()) > 0.8
    (5, True)
    """
    given: dict[str, Any] = {"cost": cost, "smoothness": smoothness, "weight": weight, "cutoff": cutoff}
    given |= {"contrast": contrast, "contrast_factor": contrast_factor, "channel_axis": channel_axis}
    as_choice(occlusion, "occlusion", OCCLUSIONS)
    if occlusion != "keep" and (cost_volume is not None or mask is not None):
        raise ValueError(f'occlusion="{occlusion}" matches both ways: it takes neither cost_volume nor mask')
    problem = matching(left, right, num_disparities, min_disparity, cost_volume=cost_volume, mask=mask, **given)
    options |= {"time_limit": time_limit, "tol": tol, "callback": callback, "rng": rng}
    res = problem.minimize(**options)
    res.cost_volume = problem.mrf.unary
    disparity = problem.output(res.x)
    refined = disparity
    if subpixel:
        refined = occlusions.between_labels(res.x, problem.mrf.unary) + np.float32(min_disparity)
    elif occlusion == "mark":
        refined = disparity.astype(np.float32)
    if occlusion != "keep" and res.status != INTERRUPTED:
        columns = _columns_axis(channel_axis, np.ndim(left))
        mirrored = [np.flip(np.asarray(image), axis=columns) for image in (right, left)]
        back = matching(mirrored[0], mirrored[1], num_disparities, min_disparity, **given)
        other = back.minimize(**options)
        if other.status == INTERRUPTED:
            res.status, res.success, res.message = other.status, other.success, other.message
        known = occlusions.seen_twice(disparity, back.output(other.x)[:, ::-1])
        if occlusion == "mark":
            refined = np.where(known, refined, np.float32(np.nan))
        else:
            refined = occlusions.fill_background(refined, known)
    return (refined, res) if full_output else refined


def _columns_axis(channel_axis: int | None, dimensions: int) -> int:
    """Which axis of an image is that of its columns."""
    last = dimensions - 1
    return last - 1 if channel_axis is not None and channel_axis % dimensions == last else last


def matching(
    left: Any,
    right: Any,
    num_disparities: int | None,
    min_disparity: int = 0,
    *,
    cost: str = "census",
    cost_volume: Any = None,
    smoothness: str = "linear",
    weight: float | None = None,
    cutoff: float = 4.0,
    contrast: float = _FLAT,
    contrast_factor: float = _FACTOR,
    mask: Any = None,
    channel_axis: int | None = None,
) -> Problem:
    """The problem that `stereo` solves."""
    as_choice(cost, "cost", COSTS)
    as_choice(smoothness, "smoothness", SMOOTHNESS)
    first = as_count(min_disparity, "min_disparity", -(2**31))
    pair = _checked_pair(left, right, channel_axis)
    rows, columns, channels = pair[0].shape
    if cost_volume is None:
        if num_disparities is None:
            raise TypeError("num_disparities is missing: how many disparities to look at, from min_disparity on")
        number = as_count(num_disparities, "num_disparities", 1)
        if first >= columns or first + number > columns or first <= -columns:
            raise ValueError(
                f"disparities {first} to {first + number - 1} do not fit into images of {columns} columns; "
                f"num_disparities may be at most {max(0, columns - max(first, 0))}"
            )
        volume = matching_costs(pair[0], pair[1], cost, range(first, first + number))
        strength = _WEIGHT[cost] * (1 if cost == "census" else channels)
    else:
        volume = _given_volume(cost_volume, (rows, columns), num_disparities)
        strength = _fifth_of_mean(volume)
    if first + volume.shape[-1] > 2**31:
        raise ValueError(f"min_disparity must be below {2**31 - volume.shape[-1]}, got {first}")
    if mask is not None:
        volume[~checked_mask(mask, "mask", (rows, columns))] = 0
    pairwise = _pairwise(smoothness, strength if weight is None else as_non_negative(weight, "weight"), cutoff)
    factor, flat = as_positive(contrast_factor, "contrast_factor"), as_non_negative(contrast, "contrast")
    weights = None if factor == 1 else contrast_weights(pair[0], flat, factor)
    return Problem(GridMRF(volume, pairwise, weights=weights), lambda x: (x + first).astype(np.int32))


def _given_volume(volume: Any, shape: tuple[int, int], labels: int | None) -> np.ndarray:
    array = np.array(as_real_array(volume, "cost_volume"))
    wanted = (*shape, labels if labels is not None else array.shape[-1] if array.ndim == 3 else "labels")
    if array.shape != wanted:
        raise ValueError(f"cost_volume has shape {array.shape}, expected {wanted}".replace("'", ""))
    if array.shape[-1] == 0:
        raise ValueError(f"cost_volume has shape {array.shape}: there must be at least one label")
    if array.dtype.kind == "f" and (np.isnan(array).any() or array.min() == -np.inf):
        raise ValueError("cost_volume holds NaN or -inf; every cost must be a number (use +inf for what cannot be)")
    return array


def _fifth_of_mean(volume: np.ndarray) -> float:
    """The default weight: never negative, even if costs are."""
    costs = volume[np.isfinite(volume)].astype(np.float64)
    return short((costs - min(0, costs.min())).mean() / 5) or 1.0 if costs.size else 1.0


def _checked_pair(left: Any, right: Any, channel_axis: int | None) -> list[np.ndarray]:
    """The two images as (M, N, C) float32 in 255 steps of grey."""
    for image, name in ((left, "left"), (right, "right")):
        shape = as_real_array(image, name).shape
        if len(shape) > 2 + (channel_axis is not None):
            hint = "; if these are colours, give channel_axis=-1" if channel_axis is None else " beside the channels"
            raise ValueError(f"{name} has shape {shape}, expected two dimensions{hint}")
    pair = [checked_image(image, name, channel_axis) for image, name in ((left, "left"), (right, "right"))]
    if pair[0].shape != pair[1].shape:
        raise ValueError(f"left has shape {np.shape(left)}, but right has {np.shape(right)}: they must be alike")
    scales = [grey_scale(image) for image in pair]
    scale = Scale(min(s.black for s in scales), max(s.unit for s in scales))
    return [np.ascontiguousarray(scale.grey(np.moveaxis(image, 0, -1)), np.float32) for image in pair]


def _pairwise(smoothness: str, weight: float, cutoff: float) -> Any:
    cutoff = as_positive(cutoff, "cutoff", infinite=True)
    if smoothness == "potts":
        return Potts(weight)
    if smoothness == "linear":
        return TruncatedLinear(weight, cutoff)
    return TruncatedQuadratic(weight, cutoff * cutoff)  # inf, which does not truncate, where ** would overflow
