"""Grey levels: the scale, 255 from black to white, on which images of every dtype are compared.

Parameters of the applications are in the image's own units: 0..255 for uint8, 0..1 for floats between 0 and 1. They are
converted to grey levels, in which the models are built, here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from treefield.validation import warn_caller


class GreyScale(NamedTuple):
    """The conversion of one image's values to grey levels.

    Attributes
    ----------
    black : float
        The value of grey level 0.
    unit : float
        The size of one grey level in the image's own units.
    image : str
        The name of the image in error messages, such as "a uint8 image".
    white : int or None
        The greatest value of the image's range; None if the range is that of its values.
    """

    black: float
    unit: float
    image: str
    white: int | None = None

    def to_levels(self, values: np.ndarray) -> np.ndarray:
        """Values of the image in grey levels, float64."""
        return np.subtract(values, self.black, dtype=np.float64) / self.unit

    def from_levels(self, grey: np.ndarray, low: float, high: float, dtype: np.dtype) -> np.ndarray:
        """Grey levels as values of the image's dtype, rounded if that is an integer, from `low` to `high`."""
        values = np.clip(self.black + self.unit * grey.astype(np.float64), low, high)
        return (np.round(values) if dtype.kind in "bui" else values).astype(dtype)

    def difference(self, value: float, name: str) -> float:
        """The difference of intensity `value`, a parameter in the image's own units, in grey levels.

        A value that is obviously in other units raises ValueError if the dtype shows it, and warns if only the image's
        values do: an image of 0..255 as float may be black.
        """
        if self.white is not None and self.white > 1 and 0 < value < 1:
            raise ValueError(
                f"{name}={value:g} is less than one grey level of {self.image}, expected 0..{self.white}; did you mean "
                f"{round(value * self.white, 1):g}?"
            )
        if self.white == 1 and value > 1:
            warn_caller(
                f"{name}={value:g} is more than the whole range of {self.image}, expected 0..1; did you mean "
                f"{value / 255:.3g}?"
            )
        return value / self.unit

    def times_unit(self, value: float, power: int) -> float:
        """value * unit**power, step by step, since the power alone may overflow."""
        for _ in range(abs(power)):
            value = value * self.unit if power > 0 else value / self.unit
        return value


def grey_scale(array: np.ndarray) -> GreyScale:
    """The scale of an image: the size of one grey level in its own units.

    1 for uint8, 1/255 for booleans and for floats between 0 and 1, otherwise 1/255 of the range of the image's values.
    """
    name = f"a {array.dtype} image"
    if array.dtype == np.uint8:
        return GreyScale(0.0, 1.0, name, 255)
    low, high = float(array.min()), float(array.max())
    if array.dtype == np.bool_ or (array.dtype.kind == "f" and low >= 0 and high <= 1):
        return GreyScale(0.0, 1 / 255, f"{name} in 0..1", 1)
    white = 65535 if array.dtype == np.uint16 else None
    return GreyScale(low, (high - low) / 255 or 1.0, name, white)
