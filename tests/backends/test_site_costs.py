"""Conditional costs that are updated between labellings equal those that are recomputed."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_graph
import treefield as tf
from small import check_raises
from small_graphs import KINDS, graphs, random_graph, random_labels
from treefield.backends.graph import site_costs as graph_costs
from treefield.backends.graph.site_costs import PlannedForests, site_costs
from treefield.backends.graph.tree_sets import drawn_forest, drawn_trees

LARGE = {
    "linear": "any",
    "asymmetric": "sparse",
    "tables": "any",
    "potts": "ring",
    "spins": "any",
}  # more than 32 sites


def forests_of(mrf, rng, kept=True):
    """Two cuts into trees that may touch, and two forests whose trees do not."""
    orders = [rng.permutation(mrf.size).astype(np.int32) for _ in range(4)]
    drawn = [drawn_trees(mrf.backend, order, bool(turned)) for turned, order in enumerate(orders[:2])]
    drawn += [drawn_forest(mrf.backend, order) for order in orders[2:]]
    return [PlannedForests([forest], number if kept else -1) for number, forest in enumerate(drawn)]


def uncached(forests):
    """The same forests without cached messages."""
    return [PlannedForests([forest.forest]) for forest in forests]


def trees_of(forest):
    return np.split(forest.sites, forest.forest.trees[1:-1])


def kept_costs(costs, mrf, i):
    """The cached costs of a site's labels, less that of the first."""
    if isinstance(costs, graph_costs._SpinCosts):
        return [0.0, costs._state.rises[i]]
    start, count = costs._state.starts[i], mrf.label_counts[i]
    found = costs._state.costs[start : start + count]
    return (found - found[0]).tolist()


def check_kept(costs, case, mrf, x):
    """The costs that are kept are those of all labels given x; forbidden ones cost `big` each."""
    model, big = case.merged, 0.0 if math.isinf(mrf.backend.forbidden_cost) else mrf.backend.forbidden_cost
    for i in range(mrf.size):
        expected = [forbidden * big + finite for forbidden, finite in naive_graph.label_ranks(model, x.tolist(), i)]
        expected = [cost - expected[0] for cost in expected]
        assert kept_costs(costs, mrf, i) == pytest.approx(expected, rel=1e-9, abs=1e-9 * (1 + mrf.backend.scale))


def rank_of(mrf, x):
    finite, forbidden = mrf.backend.energy_parts(x)
    return forbidden * (0.0 if math.isinf(mrf.backend.forbidden_cost) else mrf.backend.forbidden_cost) + finite


def check_change(mrf, before, after, change, integer):
    """The change of energy is exact."""
    expected = rank_of(mrf, after) - rank_of(mrf, before)
    assert change == (expected if integer else pytest.approx(expected, rel=1e-9, abs=1e-9 * (1 + mrf.backend.scale)))


def scramble(x, mrf, rng, share):
    chosen = rng.random(mrf.size) < share
    x[chosen] = mrf.backend.random_labels(rng)[chosen]


def chained(case):
    """Weak unary costs, so that what one site has matters to those far from it."""
    unaries = [
        np.where(np.isinf(costs), costs, np.round(costs / 4, 0 if case.integer else 9)) for costs in case.unaries
    ]
    model = case.model._replace(unaries=[costs.tolist() for costs in unaries])
    return dataclasses.replace(case, unaries=unaries, model=model)


# --- what is kept ---------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(graphs(most=10**4), st.integers(0, 2**32 - 1))
def test_conditional_costs_equal_those_of_the_labelling_after_any_operation(case, seed):
    mrf, rng = case.mrf(), np.random.default_rng(seed)
    costs, x = site_costs(mrf.backend), random_labels(case, seed)
    forests = forests_of(mrf, rng)
    pool = PlannedForests([forest.forest for forest in forests])
    for turn in range(8):
        before, order = x.copy(), rng.permutation(mrf.size).astype(np.int32)
        with costs.for_labelling(x):
            if turn % 4 == 0:
                change = costs.update(order)
                np.testing.assert_array_equal(costs._x, naive_graph.icm(case.merged, before.tolist(), order.tolist()))
            elif turn % 4 == 1:
                change = costs.draw(order, np.array([2.0, 0.5]), int(rng.integers(2**63)))
            elif turn % 4 == 2:
                change = costs.draw_trees(pool, np.array([3.0, 0.7, 1.0]), int(rng.integers(2**63)))
            else:
                change = costs.solve(forests[rng.integers(4)])
            np.testing.assert_array_equal(x, before)  # until all is done
        check_kept(costs, case, mrf, x)
        check_change(mrf, before, x, change, case.integer)
        assert change <= 0 or turn % 4 in (1, 2)
        scramble(x, mrf, rng, 0.3)


@settings(max_examples=60)
@given(graphs(), st.integers(0, 2**32 - 1))
def test_cached_forest_solution_equals_full_recomputation(case, seed):
    mrf, rng = case.mrf(), np.random.default_rng(seed)
    costs, x = site_costs(mrf.backend), random_labels(case, seed)
    forests = forests_of(mrf, rng)
    for _ in range(15):
        scramble(x, mrf, rng, rng.choice((0.0, 0.1, 0.5)))
        number = rng.integers(len(forests))
        before, afresh = x.copy(), x.copy()
        with costs.for_labelling(x):
            change = costs.solve(forests[number])
        with site_costs(mrf.backend).for_labelling(afresh) as fresh:
            expected = fresh.solve(uncached(forests)[number])
        np.testing.assert_array_equal(x, afresh)
        assert change == expected <= 0
        check_change(mrf, before, x, change, case.integer)
        if number >= 2:  # trees that do not touch
            rank = naive_graph.rank(case.merged, x.tolist())
            for tree in trees_of(forests[number]):
                best = naive_graph.best_on(case.merged, x.tolist(), tree.tolist())
                assert rank == (best[0], best[1] if case.integer else pytest.approx(best[1], rel=1e-9, abs=1e-9))


@pytest.mark.parametrize("integer", [True, False])
@pytest.mark.parametrize("kind", LARGE)
def test_wide_graph_update_equals_full_recomputation(kind, integer):
    """With few changed sites the costs are updated instead of recomputed, and changes spread along a tree."""
    for seed in range(4):
        case = chained(random_graph(seed, kind, "sparse", kind == "tables", integer, sites=120))
        mrf, rng = case.mrf(), np.random.default_rng(seed)
        costs, x = site_costs(mrf.backend), random_labels(case, seed)
        forests, gained = forests_of(mrf, rng), 0
        afresh = uncached(forests)
        for turn in range(60):
            before, number = x.copy(), rng.integers(len(forests))
            with costs.for_labelling(x):
                if turn % 11 == 0:
                    costs.update(np.arange(mrf.size, dtype=np.int32))
                    continue
                if turn % 11 == 1:
                    costs.draw_trees(afresh[2], np.array([0.5]), turn)
                    continue
                change = costs.solve(forests[number])
            y = before.copy()
            with site_costs(mrf.backend).for_labelling(y) as fresh:
                expected = fresh.solve(afresh[number])
            np.testing.assert_array_equal(x, y)
            assert change == expected
            check_change(mrf, before, x, change, case.integer)
            gained += change < 0
            outside = np.setdiff1d(np.arange(mrf.size), forests[rng.integers(2, 4)].sites)
            for i in rng.choice(outside, min(2, len(outside)), replace=False):
                x[i] = rng.integers(mrf.label_counts[i])
        assert gained > 5
        with costs.for_labelling(x):
            check_kept(costs, case, mrf, x)


def test_unchanged_sites_are_not_recomputed():
    case = random_graph(0, "table", "ring", sites=100)
    mrf, x = case.mrf(), random_labels(case, 0)
    costs, (forest, *_) = site_costs(mrf.backend), forests_of(mrf, np.random.default_rng(0))
    with costs.for_labelling(x):
        while costs.solve(forest) < 0:
            pass
        assert not (costs._dirty & forest.dirty_bit).any()
        forest.workspace.h[:] = np.nan  # what is not looked at does no harm
        assert costs.solve(forest) == 0
    x[7] = 1 - x[7] if x[7] < 2 else 0
    with costs.for_labelling(x):
        neighbours = naive_graph.neighbours_of(case.merged, 7)
        assert np.flatnonzero(costs._dirty & forest.dirty_bit).tolist() == sorted([7, *neighbours])


@settings(max_examples=40)
@given(graphs(kinds=["spins"]), st.integers(0, 99))
def test_kernels_for_spins_equal_those_for_any_number_of_labels(case, seed):
    mrf, rng = case.mrf(), np.random.default_rng(seed)
    pair = graph_costs._SpinCosts(mrf.backend), graph_costs._LabelCosts(mrf.backend)
    assert type(site_costs(mrf.backend)) is type(pair[0])
    forests, x = forests_of(mrf, rng, kept=False), random_labels(case, seed)
    for number in (0, 1, 2, 3, None):
        found = []
        for costs in pair:
            y = x.copy()
            with costs.for_labelling(y):
                order = np.arange(mrf.size, dtype=np.int32)
                change = costs.update(order) if number is None else costs.solve(forests[number])
            found.append((change, y))
        assert found[0][0] == (found[1][0] if case.integer else pytest.approx(found[1][0], rel=1e-9, abs=1e-9))
        x = found[0][1]
        scramble(x, mrf, rng, 0.3)


# --- sampling -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["potts", "spins"])
def test_graph_sampling_at_infinite_temperature_draws_all_allowed_labels_alike(kind):
    labels = 2 if kind == "spins" else 4
    unaries = np.tile(np.arange(labels) * 5.0, (3, 1))
    unaries[1, labels - 1] = np.inf
    mrf = tf.GraphMRF(unaries, [(0, 1), (1, 2)], tf.Potts(3))
    sampler, rng, x = mrf.backend.sampler(), np.random.default_rng(0), np.zeros(3, np.int32)
    counts = np.zeros((3, labels))
    for _ in range(2000):
        sampler.sample(x, math.inf, rng)
        counts[np.arange(3), x] += 1
    assert counts[1, labels - 1] == 0
    for i in (0, 2):
        assert (np.abs(counts[i] - 2000 / labels) < 120).all()
    assert (np.abs(counts[1, :-1] - 2000 / (labels - 1)) < 120).all()


def test_graph_sampling_leaves_a_forbidden_label_where_it_can():
    forbidding = np.array([[np.inf, 0, 0], [0, np.inf, 0], [0, 0, np.inf]])
    ring = [(i, (i + 1) % 7) for i in range(7)]
    mrf, rng = tf.GraphMRF(np.zeros((7, 3)), ring, forbidding), np.random.default_rng(0)
    for sampler in (mrf.backend.sampler(), mrf.backend.tree_sampler()):
        x = np.zeros(7, np.int32)
        for _ in range(20):
            sampler.cool(x, np.full(3, 1.0), rng)
        for _ in range(50):
            sampler.cool(x, np.full(1, 1.0), rng)
            assert mrf.energy(x) == 0


@settings(max_examples=30)
@given(graphs(), st.integers(0, 99))
def test_graph_sampling_at_temperature_0_is_icm(case, seed):
    mrf, x = case.mrf(), random_labels(case, seed)
    expected = naive_graph.icm(case.merged, x.tolist(), range(mrf.size))
    mrf.backend.sampler().sample(x, 0, np.random.default_rng(0))
    assert x.tolist() == expected


@pytest.mark.parametrize("labels", [2, 3])
def test_sampled_labels_have_their_boltzmann_frequencies(labels):
    rng = np.random.default_rng(labels)
    unaries, table = rng.uniform(-1, 1, (2, labels)), rng.uniform(-1, 1, (labels, labels))
    mrf = tf.GraphMRF(unaries, [(0, 1)], table)
    draws = 6000
    counts, x, sampler = np.zeros((labels, labels)), np.zeros(2, np.int32), mrf.backend.sampler()
    for _ in range(draws):
        sampler.sample(x, 1.0, rng)
        sampler.sample(x, 1.0, rng)  # one in between: draws are less alike
        counts[tuple(x)] += 1
    odds = np.exp(-(unaries[0][:, None] + unaries[1] + table))
    expected = draws * odds / odds.sum()
    assert ((counts - expected) ** 2 / expected).sum() < 5 * (labels**2 - 1)


@pytest.mark.parametrize("labels", [2, 3])
def test_sampled_trees_have_about_their_boltzmann_frequencies(labels):
    """Noise on every cost is not quite the model's distribution; on single sites it is."""
    unaries = np.random.default_rng(labels).uniform(-1, 1, (4, labels))
    mrf = tf.GraphMRF(unaries, [], tf.Potts(1))
    counts, x, sampler = np.zeros((4, labels)), np.zeros(4, np.int32), mrf.backend.tree_sampler()
    rng, draws = np.random.default_rng(0), 4000
    for _ in range(draws):
        sampler.cool(x, np.ones(1), rng)
        counts[np.arange(4), x] += 1
    odds = np.exp(-unaries)
    expected = draws * odds / odds.sum(axis=1, keepdims=True)
    assert ((counts - expected) ** 2 / expected).sum() < 5 * 4 * (labels - 1)


def test_graph_sampling_refuses_a_bad_temperature():
    mrf, x = tf.GraphMRF(np.eye(2), [(0, 1)], tf.Potts(1)), np.zeros(2, np.int32)
    for temperature, error in ((-1, ValueError), (np.nan, ValueError), ("hot", TypeError)):
        check_raises(
            lambda given=temperature: mrf.backend.sampler().sample(x, given, None), error, "temperature must be"
        )


@pytest.mark.parametrize("kind", KINDS)
def test_graph_sampling_with_the_same_seed_draws_the_same_labels(kind):
    case = random_graph(1, kind, "any", integer=False)
    mrf = case.mrf()
    for sampler in (mrf.backend.sampler, mrf.backend.tree_sampler):
        found = []
        for seed in (0, 0, 1):
            x = np.zeros(mrf.size, np.int32)
            change = sampler().cool(x, np.full(5, 4.0), np.random.default_rng(seed))
            check_change(mrf, np.zeros(mrf.size, np.int32), x, change, integer=False)
            found.append((change, x.tolist()))
        assert found[0] == found[1]
