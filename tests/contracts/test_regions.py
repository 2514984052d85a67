"""The contracts of `Boxes`, `Balls` and `Marginals`, over the models that have them."""

import dataclasses

import numpy as np
import pytest

import naive_graph
from contracts.conformity import check_conforms
from contracts.implementations import GRAPHS, GRIDS, example
from treefield.protocols import Balls, Boxes, Marginals

every_grid = pytest.mark.parametrize("name", GRIDS)
every_graph = pytest.mark.parametrize("name", GRAPHS)
SEEDS = range(6)


def box_of(found, seed):
    """A random box, and its sites."""
    rng = np.random.default_rng(seed)
    shape = found.mrf.backend.boxes.shape
    low = rng.integers(0, shape)[None]
    high = rng.integers(low + 1, shape + 1)
    inside = np.zeros(shape, bool)
    inside[tuple(slice(a, b) for a, b in zip(low[0], high[0], strict=True))] = True
    return low, high, np.flatnonzero(inside)


def without_other_edges(found):
    """The model without its diagonal edges and those that close an axis, which the best label of a box leaves out."""
    places = np.array(np.unravel_index(np.arange(found.mrf.size), found.mrf.shape))
    pairs = list(zip(found.model.edges, found.model.tables, strict=True))
    kept = [(e, t) for e, t in pairs if np.abs(np.diff(places[:, list(e)])).sum() == 1]
    return found.model._replace(edges=[e for e, _ in kept], tables=[t for _, t in kept])


def constant_ranks(found, x, sites):
    """The rank of `x` with one label at all of these sites, for each label that all of them have."""
    return naive_graph.constant_ranks(found.model, x.reshape(-1).tolist(), set(sites.tolist()))


def check_best_constant(found, x, y, sites):
    """`y` is `x` but for the sites, whose one label costs least there."""
    assert len(set(y.reshape(-1)[sites].tolist())) == 1
    rank = naive_graph.rank(found.model, y.reshape(-1).tolist())
    least = min(constant_ranks(found, x, sites))
    assert rank == (least[0], pytest.approx(least[1], abs=1e-10))


def check_outside(x, y, sites):
    np.testing.assert_array_equal(np.delete(x.reshape(-1), sites), np.delete(y.reshape(-1), sites))


@every_grid
def test_boxes_have_the_members_of_the_protocol(name):
    boxes = example(name).mrf.backend.boxes
    check_conforms(boxes, Boxes)
    assert boxes.shape.tolist() == [1, 1, *example(name).mrf.shape][-3:]


@every_grid
def test_filled_boxes_get_their_label_and_nothing_else_changes(name):
    found = example(name)
    for seed in SEEDS:
        low, high, sites = box_of(found, seed)
        x = found.random(seed)
        y = x.copy()
        found.mrf.backend.boxes.fill(y, low, high, np.array([1], np.int32))
        assert (y.reshape(-1)[sites] == 1).all()
        check_outside(x, y, sites)


@every_grid
def test_best_label_of_a_box_is_the_constant_one_that_costs_least(name):
    found = example(name)
    along_axes = dataclasses.replace(found, model=without_other_edges(found))
    for seed in SEEDS:
        low, high, sites = box_of(found, seed)
        x = found.random(seed)
        y = x.copy()
        found.mrf.backend.boxes.fill_best(y, low, high)
        check_best_constant(along_axes, x, y, sites)
        check_outside(x, y, sites)


@every_grid
def test_scrambled_boxes_get_legal_labels_and_nothing_else_changes(name):
    found, seen = example(name), set()
    for seed in range(20):
        low, high, sites = box_of(found, seed)
        x = found.random(seed)
        y = x.copy()
        found.mrf.backend.boxes.scramble(y, low, high, np.uint64(seed))
        check_outside(x, y, sites)
        seen |= set(y.reshape(-1)[sites].tolist())
    assert seen == set(range(found.mrf.n_labels))


@every_graph
def test_balls_have_the_members_of_the_protocol(name):
    check_conforms(example(name).mrf.backend.balls, Balls)


@every_graph
def test_drawn_balls_are_connected_and_begin_at_their_centres(name):
    found = example(name)
    size = found.mrf.size
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        centres, sizes = rng.integers(size, size=4, dtype=np.int32), rng.integers(1, size + 1, 4)
        ends, sites = found.mrf.backend.balls.draw(centres, sizes)
        assert len(ends) == 4 and ends[-1] == len(sites)
        for centre, most, ball in zip(centres, sizes, np.split(sites, ends[:-1]), strict=True):
            assert ball[0] == centre and len(set(ball.tolist())) == len(ball) <= most
            (piece,) = naive_graph.pieces(found.model, ball.tolist())
            whole = next(p for p in naive_graph.pieces(found.model, range(size)) if centre in p)
            assert len(piece) == min(most, len(whole))


@every_graph
def test_neighbours_of_centres_share_an_edge_with_them(name):
    found = example(name)
    centres = np.arange(found.mrf.size, dtype=np.int32)
    for seed in SEEDS:
        near = found.mrf.backend.balls.neighbours(centres, np.random.default_rng(seed))
        for centre, other in zip(centres.tolist(), near.tolist(), strict=True):
            around = naive_graph.neighbours_of(found.model, centre)
            assert other in around if around else other == centre


@every_graph
def test_balls_are_filled_where_a_site_has_the_label(name):
    found = example(name)
    counts = found.mrf.backend.label_counts
    for seed in SEEDS:
        balls, x = found.mrf.backend.balls, found.random(seed)
        ends, sites = balls.draw(np.array([seed % found.mrf.size], np.int32), np.array([3]))
        for label in range(found.mrf.n_labels):
            y = x.copy()
            balls.fill(y, ends, sites, np.array([label], np.int32))
            np.testing.assert_array_equal(y[sites], np.where(label < counts[sites], label, x[sites]))
            check_outside(x, y, sites)


@every_graph
def test_best_label_of_a_ball_is_the_constant_one_that_costs_least(name):
    found = example(name)
    for seed in SEEDS:
        balls, x = found.mrf.backend.balls, found.random(seed)
        ends, sites = balls.draw(np.array([seed % found.mrf.size], np.int32), np.array([3]))
        y = x.copy()
        balls.fill_best(y, ends, sites)
        check_best_constant(found, x, y, sites)
        check_outside(x, y, sites)


@every_graph
def test_scrambled_balls_get_legal_labels_and_nothing_else_changes(name):
    found = example(name)
    counts = found.mrf.backend.label_counts
    for seed in SEEDS:
        x = found.random(seed)
        y, sites = x.copy(), np.array([0, found.mrf.size - 1], np.int32)
        found.mrf.backend.balls.scramble(y, sites, np.uint64(seed))
        assert (y >= 0).all() and (y < counts).all()
        check_outside(x, y, sites)


def line_marginals(found, x, axis):
    """For each site the least energy of its line for each of its labels, the other lines fixed."""
    places, marginals = np.arange(found.mrf.size).reshape(found.mrf.shape), {}
    for line in np.moveaxis(places, axis, -1).reshape(-1, found.mrf.shape[axis]).tolist():
        choices = np.array(list(np.ndindex(*[found.mrf.n_labels] * len(line))))
        every = np.repeat(x.reshape(1, -1), len(choices), axis=0)
        every[:, line] = choices
        energies = found.energies_of(every)
        for k, site in enumerate(line):
            marginals[site] = [energies[choices[:, k] == label].min() for label in range(found.mrf.n_labels)]
    return np.array([marginals[site] for site in range(found.mrf.size)])


def axes_of_open_lines(found):
    return [axis for axis, closed in enumerate(found.periodic) if not closed]


@every_grid
def test_marginals_have_the_members_of_the_protocol(name):
    check_conforms(example(name).mrf.backend.marginals(-1), Marginals)


@every_grid
def test_marginals_report_the_differences_between_the_two_best_labels(name):
    found = example(name)
    for axis in axes_of_open_lines(found):
        marginals = found.mrf.backend.marginals(axis)
        for seed in SEEDS:
            x = found.mrf.backend.best_labels() if "forbidden" in name else found.random(seed)
            y = x.copy()
            gaps, sites = marginals.draw(y, 0.0, 1.0, seed)
            two = np.sort(line_marginals(found, x, axis), axis=1)[:, :2]
            expected = (two[:, 1] - two[:, 0])[np.isfinite(two[:, 1])]
            assert sites == len(expected) and gaps == pytest.approx(expected.sum(), abs=1e-8)
            if found.mrf.backend.mask is None:  # costs without ties: no label is as good as the best
                np.testing.assert_array_equal(x, y)


@every_grid
def test_marginals_draw_the_best_labels_at_a_low_temperature(name):
    found = example(name)
    if found.mrf.backend.mask is not None:
        return
    for axis in axes_of_open_lines(found):
        for seed in SEEDS:
            x = found.mrf.backend.best_labels() if "forbidden" in name else found.random(seed)
            best = line_marginals(found, x, axis)
            y = x.copy()
            found.mrf.backend.marginals(axis).draw(y, 1e6, 1e-6, seed)
            can_change = np.isfinite(np.sort(best, axis=1)[:, 1])
            np.testing.assert_array_equal(y.reshape(-1)[can_change], best.argmin(axis=1)[can_change])
