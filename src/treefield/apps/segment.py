"""Divide an image into regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from treefield.apps import colour_models
from treefield.apps.image_arrays import as_channels_first
from treefield.apps.keywords import SegmentKeywords
from treefield.apps.problem import Problem
from treefield.apps.restoration import edges_touching
from treefield.models.grid import GridMRF
from treefield.models.pairwise import Potts
from treefield.protocols import Callback, Seed
from treefield.results import MAPResult
from treefield.validation import as_count, as_generator, as_non_negative, as_positive, as_real_array

_WEIGHT = 6.0  # nats
_CONTRAST = 0.5
_MAX_LABEL = 2**31 - 1  # labels are int32
_MAX_WEIGHT = 1e30  # float32 holds it
_MAX_CONTRAST = 1e100
_MIN_TIE = 0.05  # relative to the weight, across the strongest edges


@overload
def segment(
    image: ArrayLike,
    labels: ArrayLike = 2,
    *,
    full_output: Literal[False] = False,
    **keywords: Unpack[SegmentKeywords],
) -> np.ndarray: ...
@overload
def segment(
    image: ArrayLike, labels: ArrayLike = 2, *, full_output: Literal[True], **keywords: Unpack[SegmentKeywords]
) -> tuple[np.ndarray, MAPResult]: ...
@overload
def segment(
    image: ArrayLike, labels: ArrayLike = 2, *, full_output: bool, **keywords: Unpack[SegmentKeywords]
) -> np.ndarray | tuple[np.ndarray, MAPResult]: ...
def segment(
    image: ArrayLike,
    labels: ArrayLike = 2,
    *,
    weight: float = _WEIGHT,
    contrast: float = _CONTRAST,
    spacing: Sequence[float] | np.ndarray | None = None,
    channel_axis: int | None = None,
    time_limit: float | None = None,
    tol: float | None = None,
    callback: Callback | None = None,
    rng: Seed = None,
    full_output: bool = False,
    **options: object,
) -> np.ndarray | tuple[np.ndarray, MAPResult]:
    """Divide an image into regions of similar colour whose borders follow its edges.

    No parameter depends on the image's units: colours are compared relative to the range of its values.

    Parameters
    ----------
    image : (M, N) or (P, M, N) array, or with channels
        Of any real dtype.
    labels : int, or integer array of the image's shape without channels
        The number of regions, whose colours k-means finds. Or seeds, as in `skimage.segmentation.random_walker`: a
        pixel with a positive label keeps it, and its colour is an example for that label; pixels with 0 are labelled;
        pixels with -1 are left out.
    weight : float
        The cost, in nats, of two neighbours with different labels where the image is flat. More gives smoother borders.
    contrast : float
        How much less a border costs along an edge of the image: the weight is multiplied by
        exp(-contrast * d**2 / (2 * mean d**2)), d being the difference of two neighbours' colours. 0 for the same
        weight everywhere.
    spacing : sequence of float, optional
        The size of a pixel along each axis, for volumes whose slices are far apart: the weight is inversely
        proportional to the distance of the neighbours.
    channel_axis : int, optional
        The axis of the colours; None for grey images.
    time_limit, tol, callback, rng
        As in `minimize`, whose other keywords are accepted as well; the default of `tol` is 1e-3. `rng` also draws the
        start of k-means.
    full_output : bool
        Return the result of `minimize` as well.

    Returns
    -------
    labels : int32 array of the image's shape without channels
        From 1 on, from the darkest to the brightest region; or the labels of the seeds, and -1 for pixels left out.
    res : MAPResult
        Only with `full_output`. Its labelling `x` counts the labels from 0; `mrf` is the model.

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> image = np.random.default_rng(0).normal(np.kron([[0.2, 0.8]], np.ones((8, 8))), 0.1).clip(0, 1)
    >>> labels = tf.segment(image, 2, rng=0)
    >>> bool((labels[:, :8] == 1).all() and (labels[:, 8:] == 2).all())
    True
    """
    rng = as_generator(rng)
    problem = segment_problem(
        image, labels, weight=weight, contrast=contrast, spacing=spacing, channel_axis=channel_axis, rng=rng
    )
    return problem.solve(full_output, time_limit=time_limit, tol=tol, callback=callback, rng=rng, **options)


def segment_problem(
    image: ArrayLike,
    labels: ArrayLike = 2,
    *,
    weight: float = _WEIGHT,
    contrast: float = _CONTRAST,
    spacing: Sequence[float] | np.ndarray | None = None,
    channel_axis: int | None = None,
    rng: Seed = None,
) -> Problem[GridMRF]:
    """The problem that `segment` solves."""
    array = np.moveaxis(as_channels_first(image, "image", channel_axis), 0, -1).astype(np.float64)
    rng = as_generator(rng)
    low, high = array.min(), array.max()
    array = (array - low) / ((high - low) or 1.0)
    shape, colours = array.shape[:-1], array.reshape(-1, array.shape[-1])
    strength = as_non_negative(weight, "weight")
    if strength > _MAX_WEIGHT:
        raise ValueError(f"weight must be at most {_MAX_WEIGHT:g}, got {strength:g}")
    ties = _ties(array, as_non_negative(contrast, "contrast"), _as_spacing(spacing, len(shape)))
    if not isinstance(labels, list | tuple) and not np.ndim(labels):
        centres = colour_models.kmeans_centres(colours, as_count(labels, "labels", 1), rng)
        unary = colour_models.costs_from_centres(colours, centres)
        names, is_left_out = np.arange(1, len(centres) + 1), np.zeros(shape, bool)
    else:
        seeds = _as_seeds(labels, shape)
        names, is_left_out = np.unique(seeds[seeds > 0]), seeds < 0
        flat = seeds.reshape(-1)
        unary = colour_models.costs_from_seeds(colours, [colours[flat == name] for name in names], rng)
        prohibitive = 2 * len(shape) * strength + colour_models.MAX_COST
        unary[flat > 0] = np.where(flat[flat > 0][:, None] == names, 0, prohibitive)
        unary[flat < 0] = 0
        ties = [np.where(edges_touching(is_left_out, axis), np.float32(0), tie) for axis, tie in enumerate(ties)]
    weights = [np.float32(strength) * tie for tie in ties]  # float32 holds one factor exactly, which is faster
    mrf = GridMRF(unary.reshape(*shape, len(names)), Potts(1.0), weights=weights)
    return Problem(mrf, lambda x: np.where(is_left_out, -1, names[x]).astype(np.int32))


def _ties(image: np.ndarray, contrast: float, spacing: list[float]) -> list[np.ndarray]:
    """The factors of the weight along each axis: 1 where the image is flat, less across an edge and with distance."""
    steps = [(np.diff(image, axis=axis) ** 2).sum(axis=-1) for axis in range(image.ndim - 1)]
    mean = sum(step.sum() for step in steps) / max(1, sum(step.size for step in steps))
    rate = min(contrast, _MAX_CONTRAST) / (2 * mean) if mean > 0 else 0.0
    nearest = min(spacing)
    return [
        ((_MIN_TIE + (1 - _MIN_TIE) * np.exp(-rate * step)) * nearest / distance).astype(np.float32)
        for step, distance in zip(steps, spacing, strict=True)
    ]


def _as_spacing(spacing: ArrayLike | None, dimensions: int) -> list[float]:
    if spacing is None:
        return [1.0] * dimensions
    array = as_real_array(spacing, "spacing")
    if array.shape != (dimensions,):
        raise ValueError(f"spacing must be {dimensions} numbers, one per axis, got shape {array.shape}")
    return [as_positive(value, "spacing") for value in array]


def _as_seeds(labels: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    seeds = as_real_array(labels, "labels")
    if seeds.dtype.kind not in "bui":
        raise TypeError(f"labels must be a number of regions or an array of integers, got dtype {seeds.dtype}")
    if seeds.shape != shape:
        raise ValueError(f"labels has shape {seeds.shape}, but the image's is {shape}")
    if not (seeds > 0).any():
        raise ValueError("labels holds no seed: some pixels must have a label from 1 on")
    if int(seeds.max()) > _MAX_LABEL:
        raise ValueError(f"labels holds {seeds.max()}, expected at most {_MAX_LABEL}")
    return seeds.astype(np.int64)
