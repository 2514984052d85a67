"""The best of two labellings, component by component."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from treefield.moves.accept import not_worse
from treefield.protocols import Model
from treefield.validation import as_labelling, as_model


def merge(mrf: Model, x: ArrayLike, y: ArrayLike) -> np.ndarray:
    """The labelling that takes from `y` whatever does not raise the energy of `x`.

    The sites where the two differ fall into connected components, and the change of energy from `x` to `y` is the sum
    over them. So `y` need not be taken or left whole: each component is taken if it does not raise the energy (ties
    go to `y`), and left otherwise. The result is no worse than either, up to rounding in float64; fewer forbidden
    costs go before less energy. O(sites).

    Parameters
    ----------
    mrf : GridMRF or GraphMRF
    x, y : labellings

    Returns
    -------
    int32 array

    Examples
    --------
    >>> import numpy as np, treefield as tf
    >>> mrf = tf.GridMRF(np.array([[[0, 5], [2, 2], [5, 0]]]), tf.Potts(1))
    >>> tf.merge(mrf, [[0, 0, 0]], [[1, 0, 1]])
    array([[0, 0, 1]], dtype=int32)
    """
    as_model(mrf)
    merged = as_labelling(x, mrf.backend, "x")
    merge_into(mrf, merged, as_labelling(y, mrf.backend, "y", copy=False))
    return merged


def merge_into(mrf: Model, x: np.ndarray, y: np.ndarray) -> None:
    """The same in place on `x`, of labellings that are known to be valid."""
    numbers, finite, forbidden = mrf.backend.components(x, y)
    mrf.backend.apply_components(x, y, numbers, not_worse(finite, forbidden))
