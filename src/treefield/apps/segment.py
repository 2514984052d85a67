"""Cut an image into regions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from treefield.apps import colour_models
from treefield.apps.pictures import checked_image
from treefield.apps.problem import Problem
from treefield.apps.restoration import touched
from treefield.models.grid import GridMRF
from treefield.models.pairwise import Potts
from treefield.results import MAPResult
from treefield.validation import as_count, as_generator, as_non_negative, as_positive, as_real_array

_WEIGHT = 6.0  # nats
_CONTRAST = 0.5
_HIGHEST = 2**31 - 1  # labels are int32
_HEAVIEST = 1e30  # what float32 holds
_STEEPEST = 1e100
_LEAST_TIE = 0.05  # of the weight, across the strongest edges


def segment(
    image: Any,
    labels: Any = 2,
    *,
    weight: float = _WEIGHT,
    contrast: float = _CONTRAST,
    spacing: Any = None,
    channel_axis: int | None = None,
    time_limit: float | None = None,
    tol: float | None = None,
    callback: Callable[[MAPResult], Any] | None = None,
    rng: Any = None,
    full_output: bool = False,
    **options: Any,
) -> Any:
    """Cut an image into regions of similar colour, whose borders run along its edges.

    Parameters
    ----------
    image : (M, N) or (P, M, N) array, or with channels
        Of any real dtype.
    labels : int, or integer array of the image's shape without channels
        So many regions, whose colours k-means finds; or seeds, as `skimage.segmentation.random_walker` takes them: a
        pixel with a positive label keeps it and shows what colours that label has, 0 is to be found, -1 is left out.
    weight : float
        The cost of two neighbours with different labels where the image is flat, in nats: more gives smoother borders.
    contrast : float
        How soon an edge of the image makes a border cheap: the weight falls as exp(-contrast * d**2 / (2 * mean d**2))
        with the difference d of colours. 0 for the same weight everywhere.
    spacing : sequence of float, optional
        The size of a pixel along each axis, for volumes whose slices are further apart: neighbours that are further
        apart are less tied.
    channel_axis : int, optional
        The axis of the colours; None for grey images.
    time_limit, tol, callback, rng
        As in `minimize`, whose other keywords may be given, too; the default of `tol` is 1e-3. `rng` also draws the
        start of k-means.
    full_output : bool
        Whether to return the result of `minimize`, too.

    Returns
    -------
    labels : int32 array of the image's shape without channels
        From 1 on, from the darkest to the brightest region; or the seeds' labels, -1 where they are.
    res : MAPResult
        With `full_output`. Its labelling `x` counts the labels from 0; `mrf` is the model.

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> image = np.random.default_rng(0).normal(np.kron([[0.2, 0.8]], np.ones((8, 8))), 0.1).clip(0, 1)
    >>> labels = tf.segment(image, 2, rng=0)
    >>> bool((labels[:, :8] == 1).all() and (labels[:, 8:] == 2).all())
    True
    """
    rng = as_generator(rng)
    problem = segmenting(
        image, labels, weight=weight, contrast=contrast, spacing=spacing, channel_axis=channel_axis, rng=rng
    )
    return problem.solve(full_output, time_limit=time_limit, tol=tol, callback=callback, rng=rng, **options)


def segmenting(
    image: Any,
    labels: Any = 2,
    *,
    weight: float = _WEIGHT,
    contrast: float = _CONTRAST,
    spacing: Any = None,
    channel_axis: int | None = None,
    rng: Any = None,
) -> Problem:
    """The problem that `segment` solves."""
    array = np.moveaxis(checked_image(image, "image", channel_axis), 0, -1).astype(np.float64)
    rng = as_generator(rng)
    low, high = array.min(), array.max()
    array = (array - low) / ((high - low) or 1.0)
    shape, colours = array.shape[:-1], array.reshape(-1, array.shape[-1])
    strength = as_non_negative(weight, "weight")
    if strength > _HEAVIEST:
        raise ValueError(f"weight must be at most {_HEAVIEST:g}, got {strength:g}")
    ties = _ties(array, as_non_negative(contrast, "contrast"), _checked_spacing(spacing, len(shape)))
    if not isinstance(labels, list | tuple) and not np.ndim(labels):
        centres = colour_models.kmeans(colours, as_count(labels, "labels", 1), rng)
        unary = colour_models.around_centres(colours, centres)
        names, left_out = np.arange(1, len(centres) + 1), np.zeros(shape, bool)
    else:
        seeds = _checked_seeds(labels, shape)
        names, left_out = np.unique(seeds[seeds > 0]), seeds < 0
        flat = seeds.reshape(-1)
        unary = colour_models.from_seeds(colours, [colours[flat == name] for name in names], rng)
        firm = 2 * len(shape) * strength + colour_models.MOST
        unary[flat > 0] = np.where(flat[flat > 0][:, None] == names, 0, firm)
        unary[flat < 0] = 0
        ties = [_apart(tie, left_out, axis) for axis, tie in enumerate(ties)]
    weights = [np.float32(strength) * tie for tie in ties]  # one factor each: float32 holds it, which is faster
    mrf = GridMRF(unary.reshape(*shape, len(names)), Potts(1.0), weights=weights)
    return Problem(mrf, lambda x: np.where(left_out, -1, names[x]).astype(np.int32))


def _ties(image: np.ndarray, contrast: float, spacing: list[float]) -> list[np.ndarray]:
    """How strongly neighbours are tied along each axis: from 1 where the image is flat down to little across an edge,
    divided by their distance."""
    steps = [(np.diff(image, axis=axis) ** 2).sum(axis=-1) for axis in range(image.ndim - 1)]
    mean = sum(step.sum() for step in steps) / max(1, sum(step.size for step in steps))
    fall = min(contrast, _STEEPEST) / (2 * mean) if mean > 0 else 0.0
    nearest = min(spacing)
    return [
        ((_LEAST_TIE + (1 - _LEAST_TIE) * np.exp(-fall * step)) * nearest / distance).astype(np.float32)
        for step, distance in zip(steps, spacing, strict=True)
    ]


def _apart(tie: np.ndarray, left_out: np.ndarray, axis: int) -> np.ndarray:
    """No ties to what is left out."""
    return np.where(touched(left_out, axis), np.float32(0), tie)


def _checked_spacing(spacing: Any, dimensions: int) -> list[float]:
    if spacing is None:
        return [1.0] * dimensions
    array = as_real_array(spacing, "spacing")
    if array.shape != (dimensions,):
        raise ValueError(f"spacing must be {dimensions} numbers, one per axis, got shape {array.shape}")
    return [as_positive(value, "spacing") for value in array]


def _checked_seeds(labels: Any, shape: tuple[int, ...]) -> np.ndarray:
    seeds = as_real_array(labels, "labels")
    if seeds.dtype.kind not in "bui":
        raise TypeError(f"labels must be a number of regions or an array of integers, got dtype {seeds.dtype}")
    if seeds.shape != shape:
        raise ValueError(f"labels has shape {seeds.shape}, but the image's is {shape}")
    if not (seeds > 0).any():
        raise ValueError("labels holds no seed: some pixels must have a label from 1 on")
    if int(seeds.max()) > _HIGHEST:
        raise ValueError(f"labels holds {seeds.max()}, expected at most {_HIGHEST}")
    return seeds.astype(np.int64)
