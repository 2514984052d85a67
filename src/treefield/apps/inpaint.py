"""Fill the holes of an image."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from treefield.apps.pictures import channels_back, checked_image, checked_mask
from treefield.apps.problem import Problem
from treefield.apps.restoration import Costs, filling
from treefield.results import MAPResult

DEFAULTS: dict[str, Any] = {"smoothness": "quadratic", "cutoff": 60.0}  # a ramp is filled by a ramp, an edge by an edge


def inpaint(
    image: Any,
    mask: Any,
    *,
    denoise: bool = False,
    levels: Any = 256,
    data: str = "squared",
    tau: float | None = None,
    smoothness: str = DEFAULTS["smoothness"],
    weight: float | None = None,
    cutoff: float = DEFAULTS["cutoff"],
    sigma: float | None = None,
    channel_axis: int | None = None,
    time_limit: float | None = None,
    tol: float | None = None,
    callback: Callable[[MAPResult], Any] | None = None,
    rng: Any = None,
    full_output: bool = False,
    **options: Any,
) -> Any:
    """Fill the holes of an image from around them, smoothly, but for edges that lead into them.

    Parameters
    ----------
    image : (M, N) or (P, M, N) array, or with channels
        Of any real dtype; what is in the holes does not matter.
    mask : array of the image's shape without channels
        True (not 0) where there is a hole, as in `skimage.restoration.inpaint_biharmonic`.
    denoise : bool
        Whether to take the noise from the rest of the image at the same time. Otherwise it stays as it is.
    levels, data, tau, smoothness, weight, cutoff, sigma, channel_axis
        As in `treefield.denoise`, but with other defaults.
    time_limit, tol, callback, rng, full_output
        As in `treefield.denoise`, and so are other keywords.

    Returns
    -------
    restored : array of the image's shape and dtype
    res : MAPResult
        With `full_output`. Its labelling `x` is of levels, channels one below the other; `mrf` is the model.

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> image = np.kron([[50, 200]], np.ones((9, 9))).astype(np.uint8)
    >>> mask = np.zeros(image.shape, bool)
    >>> mask[3:6, 5:13] = True
    >>> bool((tf.inpaint(np.where(mask, 0, image), mask, rng=0) == image).all())
    True
    """
    costs = Costs(data, tau, smoothness, weight, cutoff, sigma)
    problem = inpainting(image, mask, keep=not denoise, levels=levels, costs=costs, channel_axis=channel_axis)
    return problem.solve(full_output, time_limit=time_limit, tol=tol, callback=callback, rng=rng, **options)


def inpainting(
    image: Any,
    mask: Any,
    *,
    keep: bool = True,
    levels: Any = 256,
    costs: Costs | None = None,
    channel_axis: int | None = None,
) -> Problem:
    """The problem that `inpaint` solves."""
    array, dtype = checked_image(image, "image", channel_axis, hole=mask), np.asarray(image).dtype
    hole = checked_mask(mask, "mask", array.shape[1:])
    problem = filling(array, hole, keep, levels, Costs(**DEFAULTS) if costs is None else costs)
    return Problem(problem.mrf, lambda x: channels_back(problem.output(x), channel_axis, dtype), problem.start)
