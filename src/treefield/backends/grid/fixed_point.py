"""Costs as integers: the arithmetics of the dual, and which of them hold the costs of a model."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from treefield.backends.grid.costs import GridCosts

ARITHMETICS = ("int16", "float32", "float64")  # from the fastest to the most exact
_LIMITS = {"int16": 2.0**15 - 2, "float32": 2.0**22}  # the greatest integers that sums may reach
_WIDEST = {"int16": 2.0**15 - 1, "float32": 2.0**24}  # the greatest integers that positions of labels may reach
_LARGEST_INT16 = 181**2  # a square that int16 holds
_STEPS = 64  # units of int16 that the least pairwise cost must have: coarser units loosen the bound
_LOST = 1e-4  # the share of the pairwise costs that rounding down may take
_FINEST = 8  # bits after the point of a pairwise cost, before its weight, that integers can hold
_LOST_UNARY = {"int16": 1e-2, "float32": 1e-4}  # the same of the unary costs; where int16 is coarse, float32 follows
_SAMPLE = 1000  # sites
_BLOCK = 2**14  # values
_TINY = 1e-200
_NUDGE = 1 + 1e-12  # so that integers that rounding has lowered are not rounded down


def possible_arithmetics(grid: GridCosts) -> dict[str, float]:
    """The arithmetics that hold the costs of a model, with their scales, up to the first that is exact enough.

    float64 is of use only where float32 does not hold the costs.
    """
    scales = {}
    for name in ARITHMETICS:
        scale, reason = fixed_point(grid, name)
        if not reason:
            scales[name] = scale
            if name != "int16":
                break
    return scales


def exact_arithmetics(grid: GridCosts) -> dict[str, float]:
    """The same, and float64 at the end where costs are not integers: only in float64 can the gap close to rounding."""
    return possible_arithmetics(grid) if grid.is_whole else possible_arithmetics(grid) | {"float64": 1.0}


def fixed_point(grid: GridCosts, arithmetic: str) -> tuple[float, str]:
    """The factor that makes costs integers of an arithmetic, and "" or why it does not hold them."""
    if arithmetic == "float64":
        return 1.0, ""
    if grid.has_edge_tables:
        return 0.0, "there is a table for every edge"
    costs = raised_costs(grid)
    weights, largest = all_weights(grid), largest_weight(grid)
    cap = largest * float(costs.max())
    if not math.isfinite(cap):
        return 0.0, "some pairs are forbidden"
    unit = integer_scale(costs)
    positions = grid.rule(np.float64).positions()
    steps = integer_scale(positions)
    if unit == 0 or steps == 0:
        return 0.0, "its pairwise costs, without their weights, are no integers"
    if positions.max() * steps > _WIDEST[arithmetic]:
        return 0.0, "its labels lie too far apart"
    if 0 < cap < _TINY or cap > 1 / _TINY:
        return 0.0, f"its pairwise costs go up to {cap:g}"
    if cap == 0:
        fits = arithmetic == "float32" and costs.max() <= _LIMITS[arithmetic]  # they are multiplied by weights of 0
        return 1.0, "" if fits else "there are no pairwise costs"
    scale = _LIMITS[arithmetic] / (4 * len(grid.shape) * cap)
    if arithmetic == "float32":
        scale = 2.0 ** math.floor(math.log2(scale))
    else:
        reason = _int16_obstacle(grid, costs, max(unit, steps))
        if reason:
            return 0.0, reason
        scale = _int16_scale(weights, largest, scale)
        if largest * scale * float(costs[costs > 0].min()) < _STEPS:
            return 0.0, "its pairwise costs differ too much"
    if _is_lossy_for_weights(weights, scale, unit):
        return 0.0, "rounding would change the weights"
    if _is_lossy_for_unary(grid, scale, 2 * len(grid.shape) * cap, _LOST_UNARY[arithmetic]):
        return 0.0, "its unary costs differ too little compared with its pairwise costs"
    return float(scale), ""


def _int16_obstacle(grid: GridCosts, costs: np.ndarray, unit: float) -> str:
    """Why the message rule of a model does not work in int16; "" if it does."""
    if unit > 1 or costs.max() > _LARGEST_INT16 or grid.n_labels > _LARGEST_INT16:
        return "its pairwise costs, without their weights, are no small integers"
    if grid.kernel_grid().weights.min(initial=0.0) < 0:  # those of axes without edges, too: they choose the rule
        return "some weights are negative"
    if not grid.rule(np.dtype(np.int16)).fits_int16():
        return "its labels are too many, or unevenly spaced"
    return ""


def _int16_scale(weights: np.ndarray, largest: float, most: float) -> float:
    """A whole number, which keeps whole costs whole, unless that takes too much off the weights: then one that makes
    the largest whole."""
    if most >= 1 and not _is_lossy_for_weights(weights, math.floor(most)):
        return math.floor(most)
    return math.floor(largest * most) / largest * _NUDGE


def _is_lossy_for_weights(weights: np.ndarray, scale: float, unit: float = 1.0) -> bool:
    """Whether rounding down loses more than `_LOST` of the weights."""
    lost = total = 0.0
    for block in _blocks(weights):
        scaled = np.abs(block.astype(np.float64)) * scale
        lost += float((scaled - np.floor(scaled / unit) * unit).sum())
        total += float(scaled.sum())
    return lost > _LOST * total


def _blocks(flat: np.ndarray) -> Iterator[np.ndarray]:
    """Yield an array in blocks, so that temporary arrays stay small."""
    for start in range(0, len(flat), _BLOCK):
        yield flat[start : start + _BLOCK]


def _is_lossy_for_unary(grid: GridCosts, scale: float, reach: float, share: float) -> bool:
    """Whether rounding down takes more than a share off the differences of unary costs, as far as these count, in a
    sample of the sites."""
    costs = grid.unary.reshape(-1, grid.n_labels)
    costs = costs[:: max(1, len(costs) // _SAMPLE)].astype(np.float64)
    costs = costs[np.isfinite(costs.min(axis=1))]
    scaled = np.minimum(costs - costs.min(axis=1, keepdims=True), reach) * scale
    return bool((scaled - np.floor(scaled)).sum() > share * scaled.sum())


def raised_costs(grid: GridCosts) -> np.ndarray:
    """The values of the pairwise cost, without weights, the least made 0."""
    costs = grid.pairwise.costs(grid.n_labels)
    return costs - least_finite(costs)


def least_finite(costs: np.ndarray) -> float:
    """The least cost, 0 if all are forbidden."""
    least = float(costs.min())
    return least if math.isfinite(least) else 0.0


def integer_scale(costs: np.ndarray) -> float:
    """The least power of two, from 1 on, that makes costs integers; 0 if none does."""
    for bits in range(_FINEST + 1):
        if np.all(np.mod(costs * 2.0**bits, 1.0) == 0):
            return 2.0**bits
    return 0.0


def is_positive(grid: GridCosts) -> bool:
    """Whether no cost, and so no energy, is below 0."""
    values = [*pairwise_values(grid), all_weights(grid), grid.unary]
    return all(value.min(initial=0.0) >= 0 for value in values)


def pairwise_values(grid: GridCosts) -> list[np.ndarray]:
    """The values of the pairwise costs, without weights."""
    return grid.edge_tables_by_direction() if grid.has_edge_tables else [grid.pairwise.costs(grid.n_labels)]


def all_weights(grid: GridCosts) -> np.ndarray:
    """The weights of all edges, one after the other, or one for each axis; those of axes without edges left out."""
    layout = grid.kernel_grid()
    return layout.weights[np.array(grid.shape) > 1] if layout.uniform else layout.weights


def largest_weight(grid: GridCosts) -> float:
    """The greatest magnitude of a weight."""
    weights = all_weights(grid)
    return float(max(weights.max(initial=0.0), -weights.min(initial=0.0)))
