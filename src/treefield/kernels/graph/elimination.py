"""Elimination of one site: its best label, and what that costs, for every labelling of its neighbours.

The labellings of the neighbours are numbered: the *low* ones of the last neighbours, which are contiguous, times the
*high* ones of the others.
"""

from typing import NamedTuple

import numpy as np

from treefield.kernels.simd.jit import inline_helper, kernel


class Site(NamedTuple):
    """What the site that is eliminated costs. Flat arrays:

    low, high       [label][low], [label][high]  its own costs and the edges to the last neighbours, and to the others
    starts          [table] where each table of sites that were eliminated before begins in the pool. The label of the
                    site is their last axis
    low_places      [table][low]   where in a table the labels of the last neighbours are
    high_places     [table][high]  and those of the others
    is_contiguous   [table]        whether ``low_places`` are 0, labels, 2 labels, ...
    """

    low: np.ndarray
    high: np.ndarray
    starts: np.ndarray
    low_places: np.ndarray
    high_places: np.ndarray
    is_contiguous: np.ndarray


@inline_helper
def _collect(site, pool, high, highs, lows, labels, total):
    """Sum all costs for one high number, [label][low]."""
    for label in range(labels):
        base = site.high[label * highs + high]
        for low in range(lows):
            total[label * lows + low] = base + site.low[label * lows + low]
    for table in range(len(site.starts)):
        start = site.starts[table] + site.high_places[table * highs + high]
        places = table * lows
        for label in range(labels):
            if site.is_contiguous[table]:
                for low in range(lows):
                    total[label * lows + low] += pool[start + low * labels + label]
            else:
                for low in range(lows):
                    total[label * lows + low] += pool[start + site.low_places[places + low] + label]


@inline_helper
def _decide_between_two(total, lows, pool, out, decisions, at):
    """The better of two labels; decisions are bits, eight to a byte."""
    for low in range(lows):
        pool[out + low] = min(total[low], total[lows + low])
    for byte in range(lows // 8):
        bits = 0
        for k in range(8):
            low = 8 * byte + k
            bits |= (1 if total[lows + low] < total[low] else 0) << k
        decisions[at // 8 + byte] = bits


@inline_helper
def _decide(total, lows, labels, pool, out, decisions, at):
    """The best label, the lowest among equals; a decision is a number."""
    for low in range(lows):
        pool[out + low] = total[low]
        decisions[at + low] = 0
    for label in range(1, labels):
        for low in range(lows):
            if total[label * lows + low] < pool[out + low]:
                pool[out + low] = total[label * lows + low]
                decisions[at + low] = label


@kernel
def eliminate_site(site, first, end, highs, lows, labels, pool, out, total, decisions):
    """Eliminate a site for the high numbers from `first` to before `end`.

    Writes the least costs [high][low] to the pool from `out` on, and the decisions; `total` is a workspace of
    ``labels * lows`` numbers. Decisions of two labels are bits where `lows` is a multiple of 8.
    O(labels x tables) for each labelling of the neighbours.
    """
    for high in range(first, end):
        _collect(site, pool, high, highs, lows, labels, total)
        if labels == 2 and lows % 8 == 0:
            _decide_between_two(total, lows, pool, out + high * lows, decisions, high * lows)
        else:
            _decide(total, lows, labels, pool, out + high * lows, decisions, high * lows)
