"""Schedules: every line once, and nothing that runs together touches."""

import numpy as np
import pytest

import naive
from treefield.backends.grid import schedules
from treefield.backends.grid.forests import combs

SHAPES = [(41, 41), (1, 1), (1, 7), (7, 1), (5, 6), (16, 17), (40, 33), (100, 70), (3, 4, 5), (1, 9, 2), (20, 3, 30)]


def plans(shape):
    for axis in range(len(shape)):
        yield schedules.rows_columns(shape, axis)
        yield schedules.alternating(shape, axis)
        for count in (None, 1, 5, 8, 20):
            yield schedules.bands(shape, axis, 3, count)


def coordinates(shape, axis, lines):
    return np.array(np.unravel_index(lines, schedules.cross_shape(shape, axis))).T


def lines_of(plan, steps):
    """The lines that these steps solve, -1 in the other lanes."""
    active = np.asarray(plan.active)[steps, None] >> np.arange(8) & 1
    return np.where(active, plan.lines[plan.blocks[steps]], -1)


def has_neighbours(a, b):
    return np.any(np.abs(a[:, None] - b[None, :]).sum(axis=-1) == 1)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", [None, 0])
def test_every_line_is_solved_once_and_lines_that_run_together_do_not_touch(shape, seed):
    for plan in plans(shape):
        assert np.all(np.diff((plan.lines >= 0).astype(int), axis=1) <= 0), "lanes in use come first"
        phases = plan.phases(None if seed is None else np.random.default_rng(seed))
        steps = np.concatenate([steps for queues in phases for steps in queues])
        solved = lines_of(plan, steps)
        assert sorted(solved[solved >= 0]) == list(range(np.prod(schedules.cross_shape(shape, plan.axis))))
        for step in steps:
            lines = lines_of(plan, [step])[0]
            assert lines.max() >= 0, "no step is empty"
            together = coordinates(shape, plan.axis, lines[lines >= 0])
            assert len(together) == 0 or not has_neighbours(together, together)
        for queues in phases:
            sites = [
                coordinates(shape, plan.axis, solved[solved >= 0]) for solved in (lines_of(plan, q) for q in queues)
            ]
            for i in range(len(sites)):
                for j in range(i):
                    if len(sites[i]) and len(sites[j]):
                        assert not has_neighbours(sites[i], sites[j]), "queues of one phase are independent"


def test_bands_depend_on_the_model_only_and_stay_deep():
    assert schedules.band_count(288, 16) == 8 and schedules.band_count(384, 16) == 8
    assert schedules.band_count(1000, 16) == 16 and schedules.band_count(500, 2) == 32


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1), (4, 6), (7, 7), (3, 4, 5)])
def test_combs_are_induced_forests_that_cover_the_grid(shape):
    trees = combs(shape)
    assert set(np.concatenate(trees)) == set(range(np.prod(shape)))
    for tree in trees:
        assert naive.is_induced_forest(shape, [tuple(map(int, np.unravel_index(i, shape))) for i in tree])
    if len(shape) == 2:
        assert all(2 * len(tree) >= np.prod(shape) for tree in trees[::2])
        expected = [sorted(np.ravel_multi_index(np.transpose(tree), shape)) for tree in naive.combs(shape)]
        assert [sorted(tree) for tree in trees] == expected
