"""Divide an image into regions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Unpack, cast, overload

import numpy as np
from numpy.typing import ArrayLike

from treefield.apps import colour_models
from treefield.apps.contrast_ties import contrast_ties, edge_ends
from treefield.apps.image_arrays import as_channels_first
from treefield.apps.keywords import ChannelAxis, SegmentKeywords
from treefield.apps.memory import memory_left_by_costs
from treefield.apps.problem import Problem, check_options
from treefield.models.grid import GridMRF, as_lattice
from treefield.models.pairwise import Potts
from treefield.protocols import Callback, Seed
from treefield.results import MAPResult
from treefield.solvers.loop import Timer
from treefield.validation import as_count, as_generator, as_non_negative, as_positive, as_real_array

_REGIONS = 2  # the default of `labels`
_WEIGHT = 6.0  # nats
_CONTRAST = 0.5
_MAX_LABEL = 2**31 - 1  # labels are int32
_MAX_WEIGHT = 1e30  # float32 holds it
_MAX_SUM_ERROR = 0.02  # of probabilities in float16


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
    image: ArrayLike,
    labels: ArrayLike = 2,
    *,
    full_output: Literal[True],
    **keywords: Unpack[SegmentKeywords],
) -> tuple[np.ndarray, MAPResult]: ...
@overload
def segment(
    image: ArrayLike, labels: ArrayLike = 2, *, full_output: bool, **keywords: Unpack[SegmentKeywords]
) -> np.ndarray | tuple[np.ndarray, MAPResult]: ...
def segment(
    image: ArrayLike,
    labels: ArrayLike = _REGIONS,
    *,
    weight: float = _WEIGHT,
    contrast: float = _CONTRAST,
    spacing: Sequence[float] | np.ndarray | None = None,
    connectivity: Literal[1, 2] = 1,
    probabilities: ArrayLike | None = None,
    channel_axis: ChannelAxis = "auto",
    memory_limit: float | str | None = None,
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
    connectivity : 1 or 2
        1 for neighbours along the axes; 2 also for diagonal ones, at weights that are less the further they are apart,
        so that borders in all directions cost about the same. A straight border along an axis costs the same with both.
    probabilities : array of the image's shape without channels, and an axis of K classes, optional
        The probability of each class at each pixel, such as a network's scores after softmax. The cost of a pixel is
        then -log p, at most 20 above the best class's, instead of a model of its colour, and the image gives only the
        edges. Regions have the labels 1 to K; `labels` is left out, or holds seeds for some of them.
    channel_axis : int, optional
        The axis of the colours. By default there is none; an image of shape (M, N, 3) or (M, N, 4) then raises, unless
        None says that it is a volume.
    memory_limit : int or str, optional
        Bytes, or text such as "4 GB", for the costs, 4 bytes per pixel and label, and the search; by default 2.4 GB, or
        less if less is free. With less than the search has use for it is one without a bound, or a slower one; if the
        costs do not fit, MemoryError.
    time_limit : float, optional
        Seconds for the whole call, compilation left out.
    tol, callback, rng
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
    check_options(segment, options)
    rng = as_generator(rng)
    problem = segment_problem(
        image,
        labels,
        weight=weight,
        contrast=contrast,
        spacing=spacing,
        connectivity=connectivity,
        probabilities=probabilities,
        channel_axis=channel_axis,
        rng=rng,
        memory_limit=memory_limit,
        threads=cast("int | None", options.get("threads")),
    )
    return problem.solve(full_output, time_limit=time_limit, tol=tol, callback=callback, rng=rng, **options)


def segment_problem(
    image: ArrayLike,
    labels: ArrayLike = _REGIONS,
    *,
    weight: float = _WEIGHT,
    contrast: float = _CONTRAST,
    spacing: Sequence[float] | np.ndarray | None = None,
    connectivity: Literal[1, 2] = 1,
    probabilities: ArrayLike | None = None,
    channel_axis: ChannelAxis = "auto",
    rng: Seed = None,
    memory_limit: float | str | None = None,
    threads: int | None = None,
) -> Problem[GridMRF]:
    """The problem that `segment` solves."""
    timer = Timer()
    array = np.moveaxis(as_channels_first(image, "image", channel_axis), 0, -1)
    rng = as_generator(rng)
    shape, colours = array.shape[:-1], colour_models.Colours(array)
    strength = as_non_negative(weight, "weight")
    if strength > _MAX_WEIGHT:
        raise ValueError(f"weight must be at most {_MAX_WEIGHT:g}, got {strength:g}")
    lattice = as_lattice(shape, connectivity, False)
    limits = as_non_negative(contrast, "contrast"), _as_spacing(spacing, len(shape))
    classes = None if probabilities is None else _as_probabilities(probabilities, shape)
    seeds = is_left_out = None
    if not isinstance(labels, list | tuple) and not np.ndim(labels):
        count = _as_number_of_regions(labels, classes)
        names = np.arange(1, count + 1)
    else:
        seeds = _as_seeds(labels, shape, None if classes is None else classes.shape[-1])
        names = np.unique(seeds[seeds > 0]) if classes is None else np.arange(1, classes.shape[-1] + 1)
    memory = memory_left_by_costs(len(colours), len(names), 4, memory_limit, "fewer labels or a smaller image")
    ties = contrast_ties(array, colours.normalise, lattice.steps, *limits, threads)
    if classes is not None:
        unary = colour_models.costs_from_probabilities(classes, threads)
    elif seeds is not None:
        pixels = [np.flatnonzero(seeds == name) for name in names]
        unary = colour_models.costs_from_seeds(colours, pixels, rng, threads)
    else:
        centres = colour_models.kmeans_centres(colours, len(names), rng)
        unary, names = colour_models.costs_from_centres(colours, centres, threads), names[: len(centres)]
    if seeds is not None:
        flat, is_left_out = seeds.reshape(-1), seeds < 0
        prohibitive = 2 * len(shape) * strength + colour_models.MAX_COST
        unary[flat > 0] = np.where(flat[flat > 0][:, None] == names, 0, prohibitive)
        unary[flat < 0] = 0
        ends = (edge_ends(is_left_out, step) for step in lattice.steps)
        ties = [np.where(first | second, np.float32(0), tie) for (first, second), tie in zip(ends, ties, strict=True)]
    weights = [np.float32(strength) * tie for tie in ties]  # float32 holds one factor exactly, which is faster
    mrf = GridMRF(unary.reshape(*shape, len(names)), Potts(1.0), weights=weights, connectivity=connectivity)

    def output(x: np.ndarray) -> np.ndarray:
        regions = names.astype(np.int32)[x]
        return regions if is_left_out is None else np.where(is_left_out, np.int32(-1), regions)

    return Problem(mrf, output, memory=memory, preparation=timer.seconds())


def _as_number_of_regions(labels: ArrayLike, classes: np.ndarray | None) -> int:
    """How many regions there are, or an error; with classes, the default stands for all of them."""
    number = as_count(labels, "labels", 1)
    if classes is None:
        return number
    count = classes.shape[-1]
    if number not in (_REGIONS, count):
        raise ValueError(f"labels is {number}, but probabilities has {count} classes; leave labels out, or give seeds")
    return count


def _as_probabilities(probabilities: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    """Probabilities of classes at each pixel as a float64 array (M, N, K) or (P, M, N, K), or an error."""
    array = as_real_array(probabilities, "probabilities").astype(np.float64)
    if array.shape[:-1] != shape or array.size == 0:
        hint = "; give np.moveaxis(probabilities, 0, -1)" if array.shape[1:] == shape else ""
        expected = f"({', '.join(map(str, shape))}, classes)"
        raise ValueError(f"probabilities has shape {array.shape}, expected {expected}{hint}")
    if not (array.min() >= 0 and array.max() <= 1):  # NaN is neither
        raise ValueError(
            f"probabilities holds values from {array.min():g} to {array.max():g}, expected 0 to 1; of a network's "
            "scores give the softmax"
        )
    error = np.abs(array.sum(axis=-1) - 1).max()
    if error > _MAX_SUM_ERROR:
        raise ValueError(f"probabilities must sum to 1 at each pixel, but a sum differs from it by {error:.2g}")
    return array


def _as_spacing(spacing: ArrayLike | None, dimensions: int) -> list[float]:
    if spacing is None:
        return [1.0] * dimensions
    array = as_real_array(spacing, "spacing")
    if array.shape != (dimensions,):
        raise ValueError(f"spacing must be {dimensions} numbers, one per axis, got shape {array.shape}")
    return [as_positive(value, "spacing") for value in array]


def _as_seeds(labels: ArrayLike, shape: tuple[int, ...], classes: int | None) -> np.ndarray:
    """Seeds as an int64 array of the image's shape, or an error; with classes there need not be any."""
    seeds = as_real_array(labels, "labels")
    if seeds.dtype.kind not in "bui":
        raise TypeError(f"labels must be a number of regions or an array of integers, got dtype {seeds.dtype}")
    if seeds.shape != shape:
        raise ValueError(f"labels has shape {seeds.shape}, but the image's is {shape}")
    if classes is None and not (seeds > 0).any():
        raise ValueError("labels holds no seed: some pixels must have a label from 1 on")
    most = _MAX_LABEL if classes is None else classes
    if int(seeds.max()) > most:
        reason = "" if classes is None else ", the number of classes"
        raise ValueError(f"labels holds {seeds.max()}, expected at most {most}{reason}")
    return seeds.astype(np.int64)
