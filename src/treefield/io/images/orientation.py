"""The orientation of camera images: stored as the sensor lay, with a number that says which way is up."""

from __future__ import annotations

import numpy as np


def upright(array: np.ndarray, orientation: object) -> np.ndarray:
    """An image (M, N) or (M, N, channels) turned as EXIF orientations 1 to 8 ask; as it is for other values.

    Examples
    --------
    >>> import numpy as np
    >>> upright(np.array([[1, 2], [3, 4]]), 6)  # the camera was held upright: turn clockwise
    array([[3, 1],
           [4, 2]])
    """
    if not isinstance(orientation, int) or not 1 <= orientation <= 8:
        return array
    if orientation >= 5:  # rows were stored as columns
        array = np.swapaxes(array, 0, 1)
    if orientation in (3, 4, 7, 8):
        array = array[::-1]
    if orientation in (2, 3, 6, 7):
        array = array[:, ::-1]
    return np.ascontiguousarray(array)
