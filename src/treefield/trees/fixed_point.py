"""Costs as integers: the arithmetics of the dual, and which of them hold the costs of a model."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from treefield.kernels.kinds import EnvelopeRule, TableRule

ARITHMETICS = ("int16", "float32", "float64")  # from the fastest to the most exact
_LIMITS = {"int16": 2.0**15 - 2, "float32": 2.0**22}  # the greatest integers that sums may reach
_LARGEST_INT16 = 181**2  # a square that int16 holds
_STEPS = 64  # the least pairwise cost must be so many units of int16: a coarser grid loosens the bound
_LOST = 1e-4  # the share of the pairwise costs that rounding down may take
_FINEST = 8  # bits after the point of a pairwise cost, before its weight, that integers can hold
_TINY = 1e-200
_NUDGE = 1 + 1e-12  # lets what is whole but for rounding not be rounded down


def possible(mrf: Any) -> list[str]:
    """The arithmetics that hold the costs of a model, up to the first that is exact enough for all: float64 is of use
    only where float32 does not hold them."""
    found = []
    for name in ARITHMETICS:
        if not fixed_point(mrf, name)[1]:
            found.append(name)
            if name != "int16":
                break
    return found


def fixed_point(mrf: Any, arithmetic: str) -> tuple[float, str]:
    """The factor that makes costs integers of an arithmetic, and "" or why it does not hold them."""
    if arithmetic == "float64":
        return 1.0, ""
    if mrf.has_edge_tables:
        return 0.0, "there is a table for every edge"
    table = raised_table(mrf)
    weights = np.abs(all_weights(mrf))
    largest = float(weights.max(initial=0.0))
    cap = largest * float(table.max())
    if not math.isfinite(cap):
        return 0.0, "some pairs are forbidden"
    unit = unit_of(table)
    positions = getattr(mrf.rule(np.float64), "truncated", None)
    if unit == 0 or (positions is not None and unit_of(positions.values64 - positions.values64[0]) == 0):
        return 0.0, "its pairwise costs, without their weights, are no integers"
    if 0 < cap < _TINY or cap > 1 / _TINY:
        return 0.0, f"its pairwise costs go up to {cap:g}"
    if cap == 0:
        return 1.0, "" if arithmetic == "float32" else "there are no pairwise costs"
    scale = _LIMITS[arithmetic] / (4 * len(mrf.shape) * cap)
    if arithmetic == "float32":
        scales = [2.0 ** math.floor(math.log2(scale))]
    else:
        reason = _no_int16(mrf, table, unit)
        if reason:
            return 0.0, reason
        # whole costs stay whole; or else the largest weight, and so those that divide it, become whole
        scales = [math.floor(scale), math.floor(largest * scale) / largest * _NUDGE]
        if largest * scales[1] * float(table[table > 0].min()) < _STEPS:
            return 0.0, "its pairwise costs differ too much"
    for scale in scales:
        scaled = weights * scale
        if scale > 0 and (scaled - np.floor(scaled / unit) * unit).sum() <= _LOST * scaled.sum():
            return float(scale), ""
    return 0.0, "rounding would change the weights"


def _no_int16(mrf: Any, table: np.ndarray, unit: float) -> str:
    """Why the message rule of a model does not work in int16, or ""."""
    if unit > 1 or table.max() > _LARGEST_INT16 or mrf.labels > _LARGEST_INT16:
        return "its pairwise costs, without their weights, are no small integers"
    if all_weights(mrf).min(initial=0.0) < 0:
        return "some weights are negative"
    rule = mrf.rule(np.dtype(np.int16))
    if isinstance(rule, EnvelopeRule) or (isinstance(rule, TableRule) and mrf.labels**2 > _LIMITS["int16"]):
        return "its labels are too many, or unevenly spaced"
    return ""


def raised_table(mrf: Any) -> np.ndarray:
    """The table of the pairwise cost, its least entry made 0."""
    table = mrf.pairwise.table(mrf.labels)
    return table - table.min()


def unit_of(table: np.ndarray) -> float:
    """The least power of two, from 1 on, that makes a table integers; 0 if none does."""
    for bits in range(_FINEST + 1):
        if np.all(np.mod(table * 2.0**bits, 1.0) == 0):
            return 2.0**bits
    return 0.0


def is_whole(mrf: Any) -> bool:
    """Whether all costs, and so all energies, are integers."""
    tables = mrf.pairwise.tables if mrf.has_edge_tables else [mrf.pairwise.table(mrf.labels)]
    values = [*tables, all_weights(mrf), *mrf.unary]
    return all(value.dtype.kind in "ui" or bool(np.all(value == np.floor(value))) for value in values)


def all_weights(mrf: Any) -> np.ndarray:
    """The weights of all edges, one after the other, or one for each axis; those of axes without edges left out."""
    grid = mrf.kernel_grid()
    used = np.array([n > 1 for n in mrf.shape])
    return np.asarray(grid.weights[used] if grid.uniform else grid.weights, np.float64)
