"""Numbers as text."""

from __future__ import annotations

import decimal

import numpy as np

_MAX_INTEGER = 1e15  # beyond, repr is shorter than all digits


def format_number(value: float, *, exponent: bool = True, decimals: int | None = None) -> str:
    """A float as the shortest text that gives it back; integers have no decimal point.

    Without `exponent` it is a plain decimal, because some programs read no exponents. With `decimals` it is a plain
    decimal, rounded.

    Examples
    --------
    >>> from treefield.io.models.number_text import format_number
    >>> format_number(-0.0), format_number(1e-7), format_number(1e-7, exponent=False), format_number(2.75, decimals=1)
    ('0', '1e-07', '0.0000001', '2.8')
    """
    if abs(value) < _MAX_INTEGER and value == int(value):
        return str(int(value))
    if exponent and decimals is None:
        return repr(value)
    number = decimal.Decimal(repr(value))
    text = format(number if decimals is None else round(number, decimals), "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in ("-0", "") else text


def format_numbers(values: np.ndarray) -> str:
    """Floats as the shortest texts that give them back, separated by spaces."""
    return " ".join(map(format_number, values.ravel().tolist()))
