"""The pairwise kinds as the kernels know them: parameters only, in named tuples whose type says which rule applies.

Fields ending in 64 are the same parameters in float64, for energies; the others are in the arithmetic of the messages.
"""

from typing import NamedTuple

import numpy as np


class PottsRule(NamedTuple):
    """[a != b], weights of at least 0. A message costs O(L)."""


class SignedPottsRule(NamedTuple):
    """[a != b], weights of any sign: the least cost among the *other* labels matters. O(L)."""


class Truncated(NamedTuple):
    """What the truncated kinds share: labels at positions v, ascending; weights of at least 0.

    `spacing` is the distance of neighbouring labels, 0 if they differ; `change` the least cost of two different labels.
    """

    values: np.ndarray
    cutoff: np.ndarray
    values64: np.ndarray
    cutoff64: np.ndarray
    spacing: np.ndarray
    change: np.ndarray


class LinearRule(NamedTuple):
    """min(|v_a - v_b|, cutoff): a distance transform, O(L)."""

    truncated: Truncated


class LinearWindowRule(NamedTuple):
    """The same for labels evenly spaced and a low cutoff: `costs` below it by the labels' distance. O(L x window)."""

    truncated: Truncated
    costs: np.ndarray


class WindowRule(NamedTuple):
    """min((v_a - v_b)**2, cutoff), labels evenly spaced: `costs` below the cutoff by their distance. O(L x window)."""

    truncated: Truncated
    costs: np.ndarray


class EnvelopeRule(NamedTuple):
    """The same by the lower envelope of parabolas, one lane at a time. O(L). `hull` and `starts` are work space."""

    truncated: Truncated
    hull: np.ndarray
    starts: np.ndarray


class TableRule(NamedTuple):
    """Any table, flat [first][second], any weights. O(L^2)."""

    table: np.ndarray
    table64: np.ndarray


class BinaryRule(NamedTuple):
    """A table of two labels: the compiler knows their number and unrolls every loop over them."""

    table: np.ndarray
    table64: np.ndarray


class EdgeTablesRule(NamedTuple):
    """A table per edge: [edge][first][second], flat, costs above `big` (forbidden ones) cut to it. O(L^2)."""

    tables: np.ndarray
    big: np.ndarray
