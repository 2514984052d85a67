"""Take the noise from an image."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from treefield.apps.pictures import channels_back, checked_image
from treefield.apps.problem import Problem
from treefield.apps.restoration import Costs, restoring
from treefield.results import MAPResult


def denoise(
    image: Any,
    *,
    levels: Any = 256,
    data: str = "squared",
    tau: float | None = None,
    smoothness: str = "linear",
    weight: float | None = None,
    cutoff: float = 100.0,
    sigma: float | None = None,
    channel_axis: int | None = None,
    time_limit: float | None = None,
    tol: float | None = None,
    callback: Callable[[MAPResult], Any] | None = None,
    rng: Any = None,
    full_output: bool = False,
    **options: Any,
) -> Any:
    """Take Gaussian noise, salt and pepper, or both, from an image.

    Every pixel gets one of `levels` intensities: near to what was seen, and near to its neighbours'. Both costs are
    truncated: a pixel that is something else altogether is replaced, and an edge stays sharp. Costs are in steps of
    grey, 255 from black to white: 1 for 8-bit images, 1/255 for floats between 0 and 1, otherwise 1/255 of the image's
    range.

    Parameters
    ----------
    image : (M, N) or (P, M, N) array, or with channels
        Of any real dtype.
    levels : int or array
        How many intensities, over the image's range (256 are all there are in 8 bits), or a list of them.
    data : "squared" or "absolute"
        The cost of differing by d from what was seen: min(d**2, tau) or min(d, tau).
    tau : float, optional
        By default from the share of pixels that look like salt and pepper, and from the values these have: a pixel of
        such a value is easily replaced, others are not.
    smoothness : "linear", "quadratic" or "potts"
        The cost of neighbours that differ by d: weight * min(d, cutoff), weight * min(d**2, cutoff**2), or weight.
    weight : float, optional
        By default from the noise: stronger noise needs more smoothing.
    cutoff : float
        The difference from which on an edge costs no more.
    sigma : float, optional
        The noise's standard deviation in steps of grey; estimated if not given.
    channel_axis : int, optional
        The axis of the colours, each of which is restored by itself; None for grey images.
    time_limit, tol, callback, rng
        As in `minimize`, whose other keywords may be given, too: `method`, `maxiter`, `threads`, `progress`, ... The
        default of `tol` is 1e-3.
    full_output : bool
        Whether to return the result of `minimize`, too.

    Returns
    -------
    restored : array of the image's shape and dtype
    res : MAPResult
        With `full_output`. Its labelling `x` is of levels, channels one below the other; `mrf` is the model.

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> clean = np.kron([[50, 200], [120, 80]], np.ones((16, 16))).astype(np.uint8)
    >>> noisy = np.clip(np.random.default_rng(0).normal(clean, 15), 0, 255).astype(np.uint8)
    >>> restored = tf.denoise(noisy, rng=0)
    >>> [float(np.abs(image - 1.0 * clean).mean().round()) for image in (noisy, restored)]
    [12.0, 4.0]
    """
    costs = Costs(data, tau, smoothness, weight, cutoff, sigma)
    problem = denoising(image, levels=levels, costs=costs, channel_axis=channel_axis)
    return problem.solve(full_output, time_limit=time_limit, tol=tol, callback=callback, rng=rng, **options)


def denoising(image: Any, *, levels: Any = 256, costs: Costs | None = None, channel_axis: int | None = None) -> Problem:
    """The problem that `denoise` solves."""
    array, dtype = checked_image(image, "image", channel_axis), np.asarray(image).dtype
    problem = restoring(array, levels, Costs() if costs is None else costs)
    return Problem(problem.mrf, lambda x: channels_back(problem.output(x), channel_axis, dtype))
