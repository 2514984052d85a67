"""Sweeps of ribbons, watched phase by phase and compared with enumeration."""

import math
from typing import NamedTuple

import numpy as np
import pytest

import naive_graph
import naive_lattice
import naive_ribbons
import treefield as tf
from contracts.implementations import Example
from strategies import MAX_LABELLINGS

FORBIDDEN = 1e6  # more than all other costs of a small model together


class Phase(NamedTuple):
    """The ribbons that are solved at once, and all labels before and after."""

    axis: int
    sizes: tuple
    offsets: tuple
    start: int
    before: np.ndarray
    after: np.ndarray


def watch(trees):
    """A list that gets every phase of the sweeps to come."""
    phases, drawn = [], []
    solve, draw = trees._solve, trees._offsets

    def watched_draw(bar, rng):
        drawn.append(draw(bar, rng))
        return drawn[-1]

    def watched_solve(flat, turns, check):
        for turn, offsets in zip(turns, drawn[-len(turns) :], strict=True):
            turn.layout.changes[:] = 0.0
            for groups in turn.phases:
                before = flat.copy()
                solve(flat, [turn._replace(phases=[groups])], check)
                phases.append(Phase(turn.bar.axis, turn.bar.sizes, offsets, turn.start, before, flat.copy()))
        return sum(turn.layout.changes.sum() for turn in turns)

    trees._offsets, trees._solve = watched_draw, watched_solve
    return phases


def as_example(mrf, unary, edges, mask=None, periodic=None):
    """A model and its explicit costs, forbidden ones as a large number. `edges` are those of `naive_lattice`."""
    shape = unary.shape[:-1]
    unary = np.minimum(np.asarray(unary, np.float64), FORBIDDEN)
    if mask is not None:
        unary = np.where(mask[..., None], unary, 0.0)
    pairs = [tuple(int(np.ravel_multi_index(i, shape)) for i in edge[:2]) for edge in edges]
    tables = [np.minimum(table, FORBIDDEN).tolist() for _, _, table in edges]
    model = naive_graph.Model(unary.reshape(-1, unary.shape[-1]).tolist(), pairs, tables)
    return Example(mrf, model, periodic or (False,) * len(shape))


def from_strategy(case):
    """The example of a random model of `strategies`."""
    return as_example(case.mrf(), case.unary, naive_lattice.edges(case.unary.shape[:-1], case.tables))


def from_lattice(case):
    """The example of a random model of `lattices`."""
    return as_example(case.mrf, case.unary, case.edges, case.mask, case.mrf.periodic)


def widths(example):
    """Every width that fits."""
    free = [n - ring for n, ring in zip(example.mrf.shape, example.periodic, strict=True)]
    return range(1, max(math.prod(free) // n for n in free) + 1)


def check_sweep(example, trees, x, rng=None, *, reverse=False):
    """Sweep once, in place. Fail unless each ribbon of each phase has its best labels, and nothing else has changed."""
    shape, seen = example.mrf.shape, watch(trees)
    start = example.energy(x)
    change = trees.sweep(x, rng, reverse=reverse)
    end = example.energy(x)
    if max(abs(start), abs(end)) < FORBIDDEN / 2:
        assert change == pytest.approx(end - start, rel=1e-9, abs=1e-9)
    assert change <= 0
    del trees._solve, trees._offsets
    axes = list(dict.fromkeys(phase.axis for phase in seen))
    assert axes == (list(range(len(shape)))[::-1] if len(axes) > 1 else axes)
    for axis in axes:
        own = [phase for phase in seen if phase.axis == axis]
        _, sizes, offsets, column, *_ = own[0]
        if rng is None:
            assert (offsets, column) == (sizes, 0)
        phases = naive_ribbons.phases(shape, axis, sizes, offsets, example.periodic, column)
        assert len(phases) == len(own)
        for phase, ribbons in zip(own, phases[::-1] if reverse else phases, strict=True):
            check_phase(example, phase, [[int(np.ravel_multi_index(i, shape)) for i in sites] for sites in ribbons])


def check_phase(example, phase, ribbons):
    costs = example.mrf.backend
    rounding = 1e-6 * max(1.0, costs.scale) if costs.dtype == np.float32 else 1e-8
    solved = np.zeros(phase.before.size, bool)
    for sites in filter(None, ribbons):
        solved[sites] = True
        found = phase.before.copy()
        found[sites] = phase.after[sites]
        least = least_energy(example, phase.before, sites)
        assert example.energy(found) == pytest.approx(least, rel=0, abs=rounding), (phase, sites)
    np.testing.assert_array_equal(phase.before[~solved], phase.after[~solved])


def least_energy(example, x, sites):
    """The least energy over all labels of some sites while the others keep theirs."""
    labels = example.mrf.n_labels
    if labels ** len(sites) <= MAX_LABELLINGS:
        y = x.copy()
        example.solve(y, sites)
        return example.energy(y)
    # too many to enumerate: by elimination, all other labels of the other sites made dear
    stays = np.full(len(x), True)
    stays[sites] = False
    changed = stays[:, None] & (x[:, None] != np.arange(labels))
    unaries = np.array(example.model.unaries) + FORBIDDEN * changed
    graph = tf.GraphMRF(unaries, np.array(example.model.edges), np.array(example.model.tables))
    return float(graph.energy(graph.backend.eliminate(2.0**30, 2.0**30, 1)))


def random_labels(mrf, seed=0):
    return mrf.backend.random_labels(np.random.default_rng(seed))


def eliminated(mrf):
    graph = mrf.to_graph()
    return float(graph.energy(graph.backend.eliminate(2.0**30, 2.0**30, 1)))


def energy_after_sweeps(mrf, trees, x, sweeps=3):
    """Sweep in place; fail unless each returned change is that of the energy and none is positive."""
    for _ in range(sweeps):
        before = mrf.energy(x)
        change = trees.sweep(x)
        assert change <= 0
        assert change == pytest.approx(mrf.energy(x) - before, rel=1e-9, abs=1e-6)
    return mrf.energy(x)
