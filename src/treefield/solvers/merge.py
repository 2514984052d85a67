"""The best of two labellings, component by component."""

from __future__ import annotations

from typing import Any

import numpy as np

from treefield.moves.accept import not_worse
from treefield.validation import as_labelling, check_model


def merge(mrf: Any, x: Any, y: Any) -> np.ndarray:
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
    check_model(mrf)
    x = as_labelling(x, mrf, "x")
    y = as_labelling(y, mrf, "y", copy=False)
    merge_into(mrf, x, y)
    return x


def merge_into(mrf: Any, x: np.ndarray, y: np.ndarray) -> None:
    """The same in place on `x`, of labellings that are known to be valid."""
    numbers, finite, forbidden = mrf.components(x, y)
    mrf.apply_components(x, y, numbers, not_worse(finite, forbidden))
