"""The pairwise kinds as the kernels know them: parameters only, in named tuples whose type says which rule applies.

Fields ending in 64 are the same parameters in float64, for energies; the others are in the arithmetic of the messages.
Every rule states how far rounding can raise its messages, which the lower bound of the dual must allow for.
"""

import math
from typing import NamedTuple, Protocol

import numpy as np

_EPS = float(np.finfo(np.float64).eps)


class MessageError(NamedTuple):
    """How far a float64 message can be above the exact one: for an edge of weight w whose costs span C,
    `relative * C + absolute * abs(w)`."""

    relative: float
    absolute: float


class Rule(Protocol):
    """What the dual asks of a message rule."""

    def message_error(self, table: np.ndarray) -> MessageError:
        """The error of a message in float64; `table` is the exact pairwise cost [first label, second label]."""
        ...


_FEW_ROUNDINGS = MessageError(8 * _EPS, 0.0)


class PottsRule(NamedTuple):
    """[a != b], weights of at least 0. A message costs O(L)."""

    def message_error(self, table: np.ndarray) -> MessageError:
        return _FEW_ROUNDINGS


class SignedPottsRule(NamedTuple):
    """[a != b], weights of any sign: the least cost among the *other* labels matters. O(L)."""

    def message_error(self, table: np.ndarray) -> MessageError:
        return _FEW_ROUNDINGS


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

    def message_error(self, table: np.ndarray) -> MessageError:
        values, spacing = self.truncated.values, float(self.truncated.spacing[0])
        distances = np.abs(np.subtract.outer(values, values))
        if spacing > 0:
            distances = _steps_between(len(values)) * spacing
        used = np.minimum(distances, self.truncated.cutoff)
        # the transform adds up as many rounded steps as there are labels, there and back
        return MessageError((4 * len(values) + 8) * _EPS, _largest_difference(used, table))


class LinearWindowRule(NamedTuple):
    """The same for labels evenly spaced and a low cutoff: `costs` below it by the labels' distance. O(L x window)."""

    truncated: Truncated
    costs: np.ndarray

    def message_error(self, table: np.ndarray) -> MessageError:
        return _window_error(self.truncated, self.costs, table)


class WindowRule(NamedTuple):
    """min((v_a - v_b)**2, cutoff), labels evenly spaced: `costs` below the cutoff by their distance. O(L x window)."""

    truncated: Truncated
    costs: np.ndarray

    def message_error(self, table: np.ndarray) -> MessageError:
        return _window_error(self.truncated, self.costs, table)


class EnvelopeRule(NamedTuple):
    """The same by the lower envelope of parabolas, one lane at a time. O(L). `hull` and `starts` are work space."""

    truncated: Truncated
    hull: np.ndarray
    starts: np.ndarray

    def message_error(self, table: np.ndarray) -> MessageError:
        # The parabolas of two labels meet where rounding of their positions says; a label at that point may take the
        # wrong one, whose cost is higher by twice their distance, at most sqrt(cutoff), times the error of the point.
        values, cutoff = self.truncated.values64, float(self.truncated.cutoff64[0])
        span = float(np.ptp(values)) if len(values) else 0.0
        return MessageError(8 * _EPS, 128 * _EPS * math.sqrt(cutoff) * span)


class TableRule(NamedTuple):
    """Any table, flat [first][second], any weights. O(L^2)."""

    table: np.ndarray
    table64: np.ndarray

    def message_error(self, table: np.ndarray) -> MessageError:
        return _FEW_ROUNDINGS


class BinaryRule(NamedTuple):
    """A table of two labels: the compiler knows their number and unrolls every loop over them."""

    table: np.ndarray
    table64: np.ndarray

    def message_error(self, table: np.ndarray) -> MessageError:
        return _FEW_ROUNDINGS


class CappedTableRule(NamedTuple):
    """A table with forbidden pairs and edges of different weights: weight times cost is cut to `cap`, so that a
    forbidden pair costs the same on every edge. O(L^2)."""

    table: np.ndarray
    table64: np.ndarray
    cap: np.ndarray

    def message_error(self, table: np.ndarray) -> MessageError:
        return _FEW_ROUNDINGS


class EdgeTablesRule(NamedTuple):
    """A table per edge: [edge][first][second], flat. O(L^2). The arithmetic is that of `zero`."""

    tables: np.ndarray
    zero: np.ndarray

    def message_error(self, table: np.ndarray) -> MessageError:
        return _FEW_ROUNDINGS


class CappedEdgeTablesRule(NamedTuple):
    """The same with forbidden pairs: weight times cost is cut to `cap`. `largest` is the largest finite number."""

    tables: np.ndarray
    zero: np.ndarray
    cap: np.ndarray
    largest: np.ndarray

    def message_error(self, table: np.ndarray) -> MessageError:
        return _FEW_ROUNDINGS


def _steps_between(labels: int) -> np.ndarray:
    """How many labels lie between two, as a table."""
    return np.abs(np.subtract.outer(np.arange(labels), np.arange(labels)))


def _window_error(truncated: Truncated, costs: np.ndarray, table: np.ndarray) -> MessageError:
    labels = len(truncated.values)
    used = np.append(costs, np.full(labels, truncated.cutoff))[_steps_between(labels)]
    return MessageError(8 * _EPS, _largest_difference(used, table))


def _largest_difference(used: np.ndarray, table: np.ndarray) -> float:
    """How far the costs of a rule are from the exact ones: it takes nearly even spacing for even."""
    return float(np.abs(used - table).max(initial=0.0))
