"""Fill the holes of an image."""

from __future__ import annotations

import dataclasses
from typing import Literal, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from treefield.apps.filling import hole_problem
from treefield.apps.image_arrays import as_channels_first, as_mask, from_channels_first
from treefield.apps.keywords import ChannelAxis, Data, InpaintKeywords, Smoothness
from treefield.apps.memory import memory_left_by_costs
from treefield.apps.problem import Problem, check_options
from treefield.apps.restoration import Costs, fill_problem, intensity_levels
from treefield.models.grid import GridMRF
from treefield.protocols import Callback, Seed
from treefield.results import MAPResult
from treefield.solvers.loop import Timer

_REMEDY = "fewer levels, or a smaller image or part of it"
_SMOOTHNESS: Smoothness = "quadratic"  # a ramp is continued as a ramp


@overload
def inpaint(
    image: ArrayLike, mask: ArrayLike, *, full_output: Literal[False] = False, **keywords: Unpack[InpaintKeywords]
) -> np.ndarray: ...
@overload
def inpaint(
    image: ArrayLike, mask: ArrayLike, *, full_output: Literal[True], **keywords: Unpack[InpaintKeywords]
) -> tuple[np.ndarray, MAPResult]: ...
@overload
def inpaint(
    image: ArrayLike, mask: ArrayLike, *, full_output: bool, **keywords: Unpack[InpaintKeywords]
) -> np.ndarray | tuple[np.ndarray, MAPResult]: ...
def inpaint(
    image: ArrayLike,
    mask: ArrayLike,
    *,
    denoise: bool = False,
    levels: ArrayLike = 256,
    data: Data | None = None,
    tau: float | None = None,
    smoothness: Smoothness = _SMOOTHNESS,
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
    """Fill the holes of an image smoothly from their borders, and continue the edges that lead into them.

    Only the pixels of the holes are searched, so time and memory depend on the size of the holes, not of the image;
    with `denoise` on that of the image.

    Parameters
    ----------
    image : (M, N) or (P, M, N) array, or with channels
        Of any real dtype. The values in the holes are ignored.
    mask : array of the image's shape without channels
        True (not 0) in the holes, as in `skimage.restoration.inpaint_biharmonic`.
    denoise : bool
        Remove the noise from the rest of the image at the same time. Otherwise the rest does not change.
    levels : int or array
        The number of intensities, spread over the values within 8 pixels of the holes' bounding boxes (with `denoise`
        over the image's range), or a list of them. A list is kept to: the filling has no other values.
    smoothness : "linear", "quadratic" or "potts"
        As in `treefield.denoise`. With "quadratic", the default, and a number of levels, the filling is the mean of the
        best labelling and of the biharmonic filling, which continues slopes; but not in holes that a continued edge
        cuts into large pieces, and not with `denoise`.
    data, tau, weight, sigma, channel_axis
        As in `treefield.denoise`, in the image's own units. Without `denoise` there is no data cost: `data`, `tau` and
        `sigma` have no effect, and `weight`, 1 by default, scales all energies.
    cutoff : float, optional
        As in `treefield.denoise`, in the image's own units. By default 60/255 of the range from black to white.
    tol : float, optional
        As in `minimize`. By default 1e-3, without `denoise` 0.02 if the holes have 1000 pixels, in all channels, or
        more.
    memory_limit : int or str, optional
        Bytes, or text such as "4 GB", for the costs, up to 4 bytes per pixel of the holes (with `denoise` of the image)
        and level, and the search; by default 2.4 GB, or less if less is free. With less than the search has use for it
        is one without a bound, or a slower one; if the costs do not fit, MemoryError.
    time_limit : float, optional
        Seconds for the whole call, compilation left out.
    callback, rng, full_output
        As in `treefield.denoise`. Other keywords of `minimize` are accepted as well; `x0` is a labelling of the model.

    Returns
    -------
    restored : array of the image's shape and dtype
    res : MAPResult
        Only with `full_output`. Its labelling `x` holds indices of the levels, with the channels stacked along the
        first axis; `mrf` is the model. Energies are in grey levels: 255 from black to white for every dtype.
        Without `denoise` the model has the bounding boxes of all holes in one grid, each with a rim of one pixel, and
        its sites, ``mrf.mask``, are the pixels of the holes. Energy and bound are those of all edges that have an end
        in a hole.

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> image = np.kron([[50, 200]], np.ones((9, 9))).astype(np.uint8)
    >>> mask = np.zeros(image.shape, bool)
    >>> mask[3:6, 5:13] = True
    >>> bool((tf.inpaint(np.where(mask, 0, image), mask, rng=0) == image).all())
    True
    """
    check_options(inpaint, options)
    costs = Costs(data, tau, smoothness, weight, cutoff, sigma)
    problem = inpaint_problem(
        image,
        mask,
        keep_known=not denoise,
        levels=levels,
        costs=costs,
        channel_axis=channel_axis,
        memory_limit=memory_limit,
    )
    return problem.solve(full_output, time_limit=time_limit, tol=tol, callback=callback, rng=rng, **options)


def inpaint_problem(
    image: ArrayLike,
    mask: ArrayLike,
    *,
    keep_known: bool = True,
    levels: ArrayLike = 256,
    costs: Costs | None = None,
    channel_axis: ChannelAxis = "auto",
    memory_limit: float | str | None = None,
) -> Problem[GridMRF]:
    """The problem that `inpaint` solves."""
    timer = Timer()
    array, dtype = as_channels_first(image, "image", channel_axis, hole=mask), np.asarray(image).dtype
    hole = as_mask(mask, "mask", array.shape[1:])
    if hole.all():
        raise ValueError("mask covers the whole image: there is nothing to fill it from")
    if not keep_known:
        known = array[:, ~hole]
        extremes = np.array([known.min(), known.max()], array.dtype)
        count, itemsize = len(intensity_levels(extremes, levels)), 2 if array.dtype.itemsize == 1 else 4
        memory_left_by_costs(array.size, count, itemsize, memory_limit, _REMEDY)
    build = hole_problem if keep_known else fill_problem
    problem = build(array, hole, levels, Costs(smoothness=_SMOOTHNESS) if costs is None else costs)
    mrf = problem.mrf
    memory = memory_left_by_costs(mrf.size, mrf.n_labels, mrf.unary.itemsize, memory_limit, _REMEDY)

    def output(x: np.ndarray) -> np.ndarray:
        return from_channels_first(problem.output(x), channel_axis, dtype)

    return dataclasses.replace(problem, output=output, memory=memory, preparation=timer.seconds())
