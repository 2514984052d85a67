"""Graph models: what they cost, what they keep, what they refuse."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import naive_graph
import treefield as tf
from small import check_raises
from small_graphs import KINDS, graphs, random_labels
from strategies import ALL_KINDS, KIND_DTYPES, random_case

POTTS, TABLE = tf.Potts(2), np.array([[0, 1], [5, 2]])


def near(value):
    return pytest.approx(value, rel=1e-12, abs=1e-11)


# --- costs ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_energy_of_a_graph_equals_the_naive_one(kind):
    @settings(max_examples=50)
    @given(graphs(kinds=[kind]), st.integers(0, 99))
    def check(case, seed):
        mrf, x = case.mrf(), random_labels(case, seed)
        expected = naive_graph.energy(case.model, x.tolist())
        assert mrf.energy(x) == (expected if case.integer else near(expected))
        finite, forbidden = mrf.backend.energy_parts(x)
        assert (forbidden, near(finite)) == naive_graph.rank(case.merged, x.tolist())

    check()


@pytest.mark.parametrize("kind", KINDS)
def test_a_graph_returns_the_costs_it_was_given(kind):
    @settings(max_examples=30)
    @given(graphs(kinds=[kind]))
    def check(case):
        mrf, model = case.mrf(), case.merged
        assert mrf.label_counts.tolist() == [len(costs) for costs in model.unaries]
        for costs, expected in zip(mrf.unaries, model.unaries, strict=True):
            assert costs.dtype == np.float64 and costs.tolist() == near(expected)
        tables = dict(zip(model.edges, model.tables, strict=True))
        kept = {tuple(edge): mrf.edge_costs(e) for e, edge in enumerate(mrf.edges.tolist())}
        assert len(kept) == len(mrf.edges) and kept.keys() <= tables.keys()
        for edge, table in tables.items():
            np.testing.assert_allclose(kept.get(edge, np.zeros_like(table)), table, rtol=1e-12, atol=1e-11)
        if mrf.pairwise is not None:
            assert len(mrf.weights) == len(mrf.edges)

    check()


def test_parallel_edges_are_merged():
    edges = [(0, 1), (1, 2), (0, 1), (1, 0)]
    mrf = tf.GraphMRF(np.zeros((3, 2)), edges, POTTS, weights=[1, 2, 3, 4])
    assert mrf.edges.tolist() == [[0, 1], [1, 2]] and mrf.weights.tolist() == [8, 2]
    asymmetric = tf.GraphMRF(np.zeros((3, 2)), edges, TABLE, weights=[1, 2, 3, 4])
    assert asymmetric.edges.tolist() == [[0, 1], [1, 2]] and asymmetric.pairwise is None and asymmetric.weights is None
    np.testing.assert_array_equal(asymmetric.edge_costs(0), 4 * TABLE + 4 * TABLE.T)
    alike = tf.GraphMRF(np.zeros((3, 2)), edges[:3], TABLE, weights=[1, 2, 3])  # all in one direction
    assert alike.weights.tolist() == [4, 2] and repr(alike.pairwise) == repr(tf.Table(TABLE))


def test_edges_of_weight_zero_are_dropped():
    forbidding = tf.Table([[0, np.inf], [np.inf, 0]])
    for pairwise in (POTTS, forbidding, [forbidding] * 4, np.array([forbidding.V] * 4)):
        mrf = tf.GraphMRF(np.zeros((3, 2)), [(0, 1), (1, 2), (2, 2), (1, 2)], pairwise, weights=[0, 1, 0, 0])
        assert mrf.edges.tolist() == [[1, 2]] and mrf.energy([1, 0, 0]) == 0
    opposite = tf.GraphMRF(np.zeros((2, 2)), [(0, 1), (1, 0)], POTTS, weights=[3, -3])
    assert len(opposite.edges) == 0 and opposite.energy([0, 1]) == 0
    assert len(tf.GraphMRF(np.zeros((2, 2)), [(0, 1)], tf.Potts(0)).edges) == 0


def test_an_edge_from_a_site_to_itself_is_a_unary_cost():
    mrf = tf.GraphMRF([[1, 1], [0, 0]], [(0, 0), (0, 0), (0, 1)], TABLE, weights=[2, -1, 1])
    assert mrf.edges.tolist() == [[0, 1]] and mrf.unaries[0].tolist() == [1 + 0, 1 + 2]
    own = tf.GraphMRF([[1, 1], [0, 0]], [(0, 0)], [np.array([[3, 9], [9, np.inf]])])
    assert own.unaries[0].tolist() == [4, np.inf] and own.energy([1, 0]) == np.inf


def test_a_table_that_is_given_for_many_edges_is_kept_once():
    tables = [TABLE, TABLE.copy()] * 50
    mrf = tf.GraphMRF(np.zeros((101, 2)), [(i, i + 1) for i in range(100)], tables)
    assert mrf.backend.kernel_graph.tables.size < 20


def test_a_function_of_two_labels_becomes_the_table_of_a_graph():
    mrf = tf.GraphMRF(np.zeros((2, 3)), [(0, 1)], lambda a, b: 10 * a + b)
    np.testing.assert_array_equal(mrf.edge_costs(0), [[0, 1, 2], [10, 11, 12], [20, 21, 22]])


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (lambda: tf.GraphMRF([[0, 1], [0, 1, 2]], [(0, 1)], tf.Potts(5)), "edges=1, labels=2..3, pairwise=Potts(5)"),
        (lambda: tf.GraphMRF(np.zeros((2, 4)), [], tf.Potts(5)), "edges=0, labels=4, pairwise=Potts(5)"),
        (lambda: tf.GraphMRF(np.zeros((2, 2)), [(0, 1)], [TABLE]), "edges=1, labels=2, pairwise=tables of their own"),
        (
            lambda: tf.GraphMRF(np.zeros((2, 2)), [(0, 1)], tf.TruncatedLinear(1, 3), weights=[2]),
            "edges=1, labels=2, pairwise=TruncatedLinear(1, 3), weighted",
        ),
    ],
)
def test_the_repr_of_a_graph_names_its_parts(model, expected):
    assert repr(model()) == f"GraphMRF(sites=2, {expected})"


@pytest.mark.parametrize(
    ("unaries", "pairwise", "options", "whole"),
    [
        (np.eye(2), tf.Potts(2), {}, True),
        (np.eye(2), tf.Potts(0.5), {}, False),
        (np.eye(2), tf.Potts(0.1), {"weights": [10]}, False),  # 0.1 * 10 is whole only because it is rounded
        (np.eye(2), tf.TruncatedLinear(1, 9, values=[0.1, 1.1]), {}, False),
        (np.eye(2), tf.Potts(2), {"weights": [0.25]}, False),
        (np.eye(2), tf.Potts(2), {"offset": 1.5}, False),
        (np.eye(2), tf.Potts(2), {"offset": -3}, True),
        (np.eye(2) / 2, tf.Potts(2), {}, False),
        (np.array([[0, np.inf], [0, 1]]), tf.Potts(2), {}, True),
        (np.eye(2), np.array([[0, np.inf], [1, 2]]), {}, True),
        (np.eye(2), np.array([[0, np.inf], [1, 2.5]]), {}, False),
        (np.eye(2), [np.array([[0, 0.5], [1, 2]])], {}, False),
        (np.eye(2), tf.TruncatedLinear(1, 0.5), {}, False),
        (np.eye(2), tf.TruncatedLinear(1, 1, values=[0, 0.5]), {}, False),
        (np.eye(2), tf.TruncatedQuadratic(1, 9), {}, True),
    ],
)
def test_is_whole_says_whether_every_energy_is_an_integer(unaries, pairwise, options, whole):
    assert tf.GraphMRF(unaries, [(0, 1)], pairwise, **options).backend.is_whole is whole


# --- grids ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 2), (1, 5), (1, 1)])
@pytest.mark.parametrize("kind", ALL_KINDS)
def test_a_grid_is_a_graph_of_the_same_energies(kind, shape):
    for integer, seed in itertools.product((True, False), range(3)):
        case = random_case(seed, kind, shape, 3, KIND_DTYPES[kind][0], integer)
        mrf = case.mrf()
        graph = mrf.to_graph()
        assert graph.size == mrf.size and graph.n_labels == mrf.n_labels
        for x in np.random.default_rng(seed).integers(3, size=(5, *shape)):
            expected = naive.energy(case.unary, case.tables, x)
            assert graph.energy(x.reshape(-1)) == pytest.approx(expected, rel=1e-6, abs=1e-5)
            assert graph.energy(x.reshape(-1)) == near(mrf.energy(x))


def test_to_graph_keeps_the_forbidden_costs_of_a_grid():
    for kind in ("table", "edge-tables"):
        case = random_case(1, kind, (3, 4), 3, "float32", forbidden=True)
        mrf, energies = case.mrf(), []
        for x in np.random.default_rng(0).integers(3, size=(200, 3, 4)):
            energies.append(mrf.energy(x))
            assert mrf.to_graph().energy(x.reshape(-1)) == energies[-1]
        assert math.inf in energies


# --- components -----------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(graphs(), st.integers(0, 99), st.integers(0, 2**9 - 1))
def test_components_of_a_graph_equal_the_naive_ones(case, seed, choice):
    mrf, model = case.mrf(), case.merged
    x, y = random_labels(case, seed), random_labels(case, seed + 1)
    numbers, finite, forbidden = mrf.backend.components(x, y)
    # where a pair's costs add up to nothing the naive model still has an edge
    kept = {frozenset(edge) for edge in mrf.edges.tolist()}
    edges = [edge for edge in model.edges if frozenset(edge) in kept]
    tables = [table for edge, table in zip(model.edges, model.tables, strict=True) if frozenset(edge) in kept]
    pieces, changes = naive_graph.components(model._replace(edges=edges, tables=tables), x.tolist(), y.tolist())
    expected = np.full(mrf.size, -1)
    for number, piece in enumerate(pieces):
        expected[piece] = number
    np.testing.assert_array_equal(numbers, expected)
    assert forbidden.tolist() == [change[0] for change in changes]
    assert finite.tolist() == near([change[1] for change in changes])
    taken = np.array([choice >> number & 1 for number in range(len(pieces))], np.bool_)
    z = x.copy()
    mrf.backend.apply_components(z, y, numbers, taken)
    wanted = {i for piece, take in zip(pieces, taken, strict=True) if take for i in piece}
    np.testing.assert_array_equal(z, [y[i] if i in wanted else x[i] for i in range(mrf.size)])


# --- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        ([0, 0], ValueError, r"x has shape \(2,\), but the model's is \(3,\)"),
        ([[0, 0, 0]], ValueError, r"x has shape \(1, 3\), but the model's is \(3,\)"),
        ([0, 0, 4], ValueError, "x holds labels from 0 to 4, expected 0 to 3"),
        ([-1, 0, 0], ValueError, "x holds labels from -1 to 0, expected 0 to 3"),
        ([0, 3, 3], ValueError, r"x\[1\] is label 3, but the site has the labels 0 to 2"),
        ([0.0, 0, 0], TypeError, "x must be an array of integer labels, got dtype float64"),
        ([0, [1], 0], TypeError, "x must be an array of integer labels, but its rows differ"),
    ],
)
def test_a_graph_refuses_a_bad_labelling(x, error, message):
    mrf = tf.GraphMRF([[0, 1], [0, 1, 2], [0, 1, 2, 3]], [(0, 1)], POTTS)
    check_raises(lambda: mrf.energy(x), error, message)
    check_raises(lambda: tf.merge(mrf, [0, 0, 0], x), error, message.replace("x", "y", 1))


EDGE = [(0, 1)]


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((3, EDGE, POTTS), {}, ValueError, r"unaries has shape \(\), expected \(sites, labels\)"),
        (([1, 2], EDGE, POTTS), {}, ValueError, r"unaries has shape \(2,\), expected \(sites, labels\)"),
        (([], EDGE, POTTS), {}, ValueError, r"unaries has shape \(0,\)"),
        ((np.zeros((2, 0)), EDGE, POTTS), {}, ValueError, r"unaries has shape \(2, 0\)"),
        (([[1, 2], []], EDGE, POTTS), {}, ValueError, r"unaries\[1\] must be the costs of at least one label"),
        (([[1, 2], [[1]]], EDGE, POTTS), {}, ValueError, r"unaries\[1\] must be.*got shape \(1, 1\)"),
        (([[1, 2], ["a"]], EDGE, POTTS), {}, TypeError, r"unaries\[1\] must hold real numbers"),
        ((np.full((2, 2), np.nan), EDGE, POTTS), {}, ValueError, "unaries holds NaN"),
        (([[0, 1], [0, -np.inf]], EDGE, POTTS), {}, ValueError, "unaries holds -inf"),
        (([[0, 2**60], [0, 1]], EDGE, POTTS), {}, ValueError, r"unaries\[0\] holds integers up to.*2\*\*53"),
        ((np.eye(2) * 1e307, EDGE, POTTS), {}, ValueError, "costs are too large: over 2 sites"),
        ((np.eye(2), [(0, 2)], POTTS), {}, ValueError, "edges name sites 0 to 2, but the model has sites 0 to 1"),
        ((np.eye(2), [(-1, 0)], POTTS), {}, ValueError, "edges name sites -1 to 0"),
        ((np.eye(2), [(0.0, 1.0)], POTTS), {}, TypeError, "edges must be an .* of integers, got dtype float64"),
        ((np.eye(2), [0, 1], POTTS), {}, ValueError, r"edges must be an \(m, 2\) array.*got shape \(2,\)"),
        ((np.eye(2), [(0, 1, 1)], POTTS), {}, ValueError, r"edges must be an \(m, 2\) array.*shape \(1, 3\)"),
        (
            (np.eye(2), EDGE, POTTS),
            {"weights": [1, 2]},
            ValueError,
            r"weights has shape \(2,\), expected a number or \(1,\)",
        ),
        ((np.eye(2), EDGE, POTTS), {"weights": [np.inf]}, ValueError, "weights must be finite.*forbids pairs"),
        ((np.eye(2), EDGE, POTTS), {"weights": [np.nan]}, ValueError, "weights must be finite"),
        ((np.eye(2), EDGE, POTTS), {"weights": ["1"]}, TypeError, "weights must hold real numbers"),
        ((np.eye(2), EDGE, POTTS), {"offset": np.inf}, ValueError, "offset must be finite, got inf"),
        ((np.eye(2), EDGE, POTTS), {"offset": "1"}, TypeError, "offset must be a number, got '1'"),
        ((np.eye(2), EDGE, None), {}, TypeError, "pairwise must be a table, a list.*got NoneType"),
        ((np.eye(2), EDGE, tf.EdgeTables([np.zeros((0, 2, 2, 2)), np.zeros((1, 1, 2, 2))])), {}, TypeError, "grids"),
        ((np.eye(2), EDGE, []), {}, ValueError, "pairwise has 0 tables, but there are 1 edges"),
        ((np.eye(2), EDGE, np.zeros((2, 2, 2))), {}, ValueError, "pairwise has 2 tables, but there are 1 edges"),
        ((np.eye(2), EDGE, [np.zeros((2, 3))]), {}, ValueError, r"pairwise\[0\] has shape \(2, 3\), expected \(2, 2\)"),
        ((np.eye(2), EDGE, [np.zeros((2, 2, 1))]), {}, ValueError, r"pairwise\[0\] must be a table.*\(2, 2, 1\)"),
        ((np.eye(2), EDGE, np.eye(3)), {}, ValueError, r"pairwise has shape \(3, 3\), expected \(2, 2\): edge 0 joins"),
        ((np.eye(2), EDGE, [TABLE * np.nan]), {}, ValueError, r"pairwise\[0\] holds NaN"),
        ((np.eye(2), EDGE, np.full((1, 2, 2), -np.inf)), {}, ValueError, "pairwise holds -inf"),
        ((np.eye(2), EDGE, np.zeros((1, 2))), {}, ValueError, r"pairwise has shape \(1, 2\), expected \(2, 2\)"),
    ],
)
def test_bad_arguments_of_a_graph_are_refused(arguments, options, error, message):
    check_raises(lambda: tf.GraphMRF(*arguments, **options), error, message)


@pytest.mark.parametrize("edges", [[(0, 1)], [(0, 1), (1, 2)], [(0, 1), (0, 1)], [(0, 1), (1, 0)], [(0, 0)]])
@pytest.mark.parametrize("own", [False, True])
def test_a_graph_refuses_a_negative_weight_of_a_forbidden_pair(edges, own):
    table = np.array([[np.inf, 1], [3, 0]])
    weights = np.array([-1, 1])[: len(edges)]
    pairwise = [table] * len(edges) if own else table
    check_raises(
        lambda: tf.GraphMRF(np.zeros((3, 2)), edges, pairwise, weights=weights),
        ValueError,
        r"a negative weight \(-1\) times a forbidden \(\+inf\) cost of pairwise",
    )
