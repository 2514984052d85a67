"""Messages on graphs: belief propagation against naive messages, and bounds that no energy is below."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_graph
import treefield as tf
from small import check_raises
from small_graphs import KINDS, graphs, grid_graph, random_graph

EPS = np.finfo(np.float64).eps


def capped(case, mrf):
    """The merged naive model with what stands in for forbidden costs."""
    model = case.merged
    unaries = [[min(cost, mrf.backend.forbidden_cost) for cost in costs] for costs in model.unaries]
    tables = [[[min(cost, mrf.backend.forbidden_cost) for cost in row] for row in table] for table in model.tables]
    return model._replace(unaries=unaries, tables=tables)


def messages_of(beliefs, mrf):
    """{(from, to): message}."""
    graph, messages, found = mrf.backend.kernel_graph, beliefs._messages, {}
    for i in range(mrf.size):
        for k in range(graph.starts[i], graph.starts[i + 1]):
            start = messages.starts[k]
            found[int(graph.neighbours[k]), i] = messages.values[start : start + mrf.label_counts[i]].tolist()
    return found


def check_messages(beliefs, mrf, expected):
    scale = 1 + (mrf.backend.scale if math.isinf(mrf.backend.forbidden_cost) else mrf.backend.forbidden_cost)
    for pair, message in messages_of(beliefs, mrf).items():
        assert message == pytest.approx(expected[pair], rel=1e-9, abs=1e-11 * scale)


# --- belief propagation ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("damping", [0.0, 0.4])
@pytest.mark.parametrize("schedule", ["parallel", "sequential"])
def test_graph_messages_equal_the_naive_ones(schedule, damping):
    @settings(max_examples=40)
    @given(graphs(most=10**4))
    def check(case):
        mrf = case.mrf()
        model, beliefs = capped(case, mrf), mrf.backend.beliefs()
        expected = naive_graph.no_messages(model)
        for _ in range(3):
            before = messages_of(beliefs, mrf)
            if schedule == "parallel":
                change = beliefs.update_all(damping)
                expected = naive_graph.parallel_bp(model, expected, damping)
                after = messages_of(beliefs, mrf)
                moved = (abs(a - b) for pair in after for a, b in zip(after[pair], before[pair], strict=True))
                assert change == pytest.approx(max(moved, default=0.0))
            else:
                beliefs.update_in_turn(damping)
                expected = naive_graph.sequential_bp(model, expected, damping)
            check_messages(beliefs, mrf, expected)
        if case.integer and damping == 0:  # sums are exact, ties included
            x, y = np.zeros((2, mrf.size), np.int32)
            beliefs.decode(x)
            assert x.tolist() == [found.index(min(found)) for found in naive_graph.beliefs(model, expected)]
            beliefs.decode_in_turn(y)
            assert y.tolist() == naive_graph.decoded_in_turn(model, expected)

    check()


@pytest.mark.parametrize("schedule", ["parallel", "sequential"])
def test_beliefs_on_trees_become_min_marginals(schedule):
    @settings(max_examples=40)
    @given(graphs(shapes=["tree"]))
    def check(case):
        mrf = case.mrf()
        model, beliefs = capped(case, mrf), mrf.backend.beliefs()
        update = beliefs.update_all if schedule == "parallel" else beliefs.update_in_turn
        for _ in range(mrf.size):
            update(0.0)
        tolerance = 1e-9 * (
            1 + mrf.backend.scale if math.isinf(mrf.backend.forbidden_cost) else mrf.backend.forbidden_cost
        )
        assert update(0.0) <= tolerance
        messages = dict(naive_graph.no_messages(model)) | messages_of(beliefs, mrf)
        found = naive_graph.beliefs(model, messages)
        marginals = naive_graph.min_marginals(model)
        for own, exact in zip(found, marginals, strict=True):
            expected = [value - min(exact) for value in exact]
            assert [value - min(own) for value in own] == pytest.approx(expected, abs=tolerance)
        x = np.zeros(mrf.size, np.int32)
        beliefs.decode_in_turn(x)
        least = naive_graph.minimum(case.merged)[0]
        rank = naive_graph.rank(case.merged, x.tolist())
        assert rank == (least[0], pytest.approx(least[1], abs=1e-9 * (1 + mrf.backend.scale)))

    check()


# --- bounds ---------------------------------------------------------------------------------------------------------


def slack(model, integer):
    """How much more than the sum of floats the least energy may really be."""
    if integer:
        return 0.0
    _, x = naive_graph.minimum(model)
    terms = [abs(term) for term in naive_graph.terms(model, list(x)) if term < math.inf]
    return 2 * EPS * (len(terms) + 1) * (abs(model.offset) + sum(terms))


def check_bound(mrf, model, integer, iterations=8):
    """The bound never falls and is never above the least energy; returns both."""
    dual, x, last = mrf.backend.dual(), np.empty(mrf.size, np.int32), -math.inf
    least = naive_graph.least_energy(model)
    for _ in range(iterations):
        bound = dual.iterate(x)
        assert bound == dual.bound >= last
        assert mrf.energy(x) >= least - slack(model, integer)
        last = bound
    assert last <= least + slack(model, integer)
    return last, least


@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_of_a_graph_is_at_most_its_least_energy(kind):
    @settings(max_examples=40)
    @given(graphs(kinds=[kind]))
    def check(case):
        mrf = case.mrf()
        bound, least = check_bound(mrf, case.model, case.integer)
        if mrf.backend.is_whole and math.isinf(mrf.backend.forbidden_cost):
            assert bound == math.floor(bound)
        assert -math.inf < bound <= least

    check()


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["potts", "tables", "spins"]), st.sampled_from([0.0, 1e9, -1e12]))
def test_the_bound_of_a_graph_holds_for_costs_of_any_magnitude(seed, kind, offset):
    case, rng = random_graph(seed, kind, "any", integer=False), np.random.default_rng(seed)
    unaries = [costs * 10 ** rng.uniform(-6, 6) for costs in case.unaries]
    weights = rng.choice((-1, 1), len(case.edges)) * 10 ** rng.uniform(-6, 6, len(case.edges))
    mrf = tf.GraphMRF(unaries, case.edges, case.pairwise, weights=weights, offset=offset)
    tables = [table.tolist() for table in tables_with(case, weights)]
    model = naive_graph.Model([costs.tolist() for costs in unaries], case.model.edges, tables, offset)
    check_bound(mrf, model, integer=False, iterations=6)


def tables_with(case, weights):
    """The explicit tables of a case with other weights."""
    counts, pairwise = [len(costs) for costs in case.unaries], case.pairwise
    if isinstance(pairwise, list):
        return [weight * table for weight, table in zip(weights, pairwise, strict=True)]
    whole = pairwise.weight * pairwise.table(max(counts)) if isinstance(pairwise, tf.Potts) else pairwise
    whole = np.asarray(getattr(whole, "V", whole))
    return [w * whole[: counts[i], : counts[j]] for (i, j), w in zip(case.model.edges, weights, strict=True)]


@settings(max_examples=60)
@given(graphs(shapes=["tree"]))
def test_the_bound_of_a_tree_reaches_its_least_energy(case):
    mrf = case.mrf()
    bound, least = check_bound(mrf, case.model, case.integer, iterations=30)
    if least < math.inf:
        scale = 1 + mrf.backend.scale if math.isinf(mrf.backend.forbidden_cost) else mrf.backend.forbidden_cost
        assert bound == pytest.approx(least, rel=1e-9, abs=1e-9 * scale)


def test_a_bound_of_whole_costs_is_rounded_up():
    """A triangle whose edges all want their ends to differ: the bound of its chains is a fraction."""
    triangle = [(0, 1), (1, 2), (2, 0)]
    whole = tf.GraphMRF(np.array([[0, 0], [0, 0], [0, 1]]), triangle, tf.Potts(-3), offset=-7)
    scaled = tf.GraphMRF(whole.unaries, triangle, tf.Potts(-3), offset=-7.5)
    bounds = [mrf.backend.dual().iterate(np.empty(3, np.int32)) for mrf in (whole, scaled)]
    assert whole.backend.is_whole and not scaled.backend.is_whole
    assert bounds[0] == math.ceil(bounds[1] + 0.5 - 1e-9) and bounds[1] <= bounds[0] - 0.5


def test_the_bound_of_a_grid_graph_is_within_two_percent():
    for seed in range(3):
        graph = grid_graph((7, 7), 3, seed)
        least = tf.minimize(graph)
        assert least.method == "elimination"
        assert 0.98 * least.fun <= tf.trw(graph, maxiter=60, tol=0).lower_bound <= least.fun


@pytest.mark.parametrize("arithmetic", ["int16", "float32"])
def test_graphs_refuse_the_arithmetics_of_grids(arithmetic):
    message = f"arithmetic='{arithmetic}' goes with grids"
    check_raises(lambda: tf.trw(grid_graph((3, 3)), arithmetic=arithmetic), ValueError, message)


def test_the_float64_dual_of_a_graph_cannot_be_refined():
    assert tf.trw(grid_graph((3, 3)), arithmetic="float64", maxiter=3).nit <= 3
    assert not grid_graph((3, 3)).backend.dual().refine(0.0)
