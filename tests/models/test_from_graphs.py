"""Graphs of NetworkX and SciPy become models of the same energy."""

import itertools
import re

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import treefield as tf
from small import check_raises

KINDS = (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph)
TABLE = np.array([[0, 1, 5], [2, 0, 1], [7, 3, 0]])  # asymmetric
NAMES = ["b", ("a", 1), 3, frozenset({2}), "z"]


def small_graph(kind=nx.Graph, seed=0):
    """Nodes of many kinds, a self-loop, edges both ways and, where there can be, parallel ones."""
    rng = np.random.default_rng(seed)
    graph = kind()
    for name in NAMES:
        graph.add_node(name, unary=rng.integers(0, 9, 3).tolist())
    for i, j in [(1, 0), (0, 1), (2, 3), (3, 4), (4, 0), (2, 2), (3, 4)]:
        table = rng.integers(-3, 9, (3, 3))
        graph.add_edge(NAMES[i], NAMES[j], weight=float(rng.integers(-2, 5)), cost=table)
    return graph


def energy(graph, x, unary, edge_cost):
    """The energy, spelled out."""
    labels = dict(zip(graph.nodes, x, strict=True))
    total = sum(unary(node)[label] for node, label in labels.items())
    return total + sum(edge_cost(data)[labels[u], labels[v]] for u, v, data in graph.edges(data=True))


def labellings(sites, labels):
    return itertools.product(range(labels), repeat=sites)


@pytest.mark.parametrize("kind", KINDS)
def test_from_networkx_reads_edge_weights_of_a_shared_cost(kind):
    graph = small_graph(kind)
    for pairwise, table in ((tf.Potts(2), 2 * (1 - np.eye(3))), (TABLE, TABLE), (tf.Table(TABLE), TABLE)):
        mrf = tf.GraphMRF.from_networkx(graph, "unary", pairwise, offset=1.5)
        for x in labellings(5, 3):
            expected = energy(graph, x, lambda n: graph.nodes[n]["unary"], lambda d, t=table: d["weight"] * t)
            assert mrf.energy(x) == expected + 1.5


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weight", ["weight", None, "nothing of the kind"])
def test_from_networkx_reads_a_table_from_every_edge(kind, weight):
    graph = small_graph(kind)
    mrf = tf.GraphMRF.from_networkx(graph, pairwise="cost", weight=weight)
    for x in labellings(5, 3):
        expected = energy(
            graph,
            x,
            lambda n: graph.nodes[n]["unary"],
            lambda d: (d["weight"] if weight == "weight" else 1) * d["cost"],
        )
        assert mrf.energy(x) == expected


def test_from_networkx_accepts_unaries_in_four_forms():
    graph = small_graph()
    given = {node: graph.nodes[node]["unary"] for node in graph}
    ways = ["unary", given, given.__getitem__, list(given.values()), np.array(list(given.values()))]
    models = [tf.GraphMRF.from_networkx(graph, way, tf.Potts(1)) for way in ways]
    for mrf in models[1:]:
        assert [costs.tolist() for costs in mrf.unaries] == [costs.tolist() for costs in models[0].unaries]


def test_from_networkx_accepts_a_label_count_per_node():
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, {0: [0, 1], 1: [1, 0, np.inf], 2: [4]}, "unary")
    nx.set_edge_attributes(graph, {(0, 1): np.ones((2, 3)), (1, 2): [[1], [2], [3]]}, "pairwise")
    mrf = tf.GraphMRF.from_networkx(graph)
    assert mrf.label_counts.tolist() == [2, 3, 1]
    assert mrf.energy([0, 1, 0]) == 0 + 0 + 4 + 1 + 2
    assert mrf.energy([0, 2, 0]) == np.inf


def test_graphs_without_edges_are_converted():
    graph = nx.empty_graph(3)
    for pairwise in (tf.Potts(1), "pairwise"):
        mrf = tf.GraphMRF.from_networkx(graph, np.eye(3), pairwise)
        assert mrf.energy([1, 0, 0]) == 0 and len(mrf.edges) == 0
    assert tf.GraphMRF.from_scipy_sparse(sp.coo_array((3, 3)), np.eye(3), tf.Potts(1)).energy([0, 1, 2]) == 3


def test_labels_of_a_networkx_graph_map_back_to_its_nodes():
    graph = nx.relabel_nodes(nx.grid_2d_graph(3, 4), str)
    wanted = {node: site % 2 for site, node in enumerate(graph)}
    mrf = tf.GraphMRF.from_networkx(graph, lambda node: [wanted[node], 1 - wanted[node]], tf.Potts(0.1))
    assert dict(zip(graph, tf.t_icm(mrf, rng=0).x, strict=True)) == wanted


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"graph": np.eye(3)}, TypeError, "must be a networkx graph, got ndarray"),
        ({"graph": nx.Graph}, TypeError, "must be a networkx graph"),
        ({"graph": nx.Graph()}, ValueError, "no nodes"),
        ({"unary": "colour"}, ValueError, re.escape("node 'b' has no attribute 'colour' (nor have 4 others)")),
        ({"unary": {"b": [0, 1]}}, ValueError, "no entry in unary"),
        ({"unary": lambda node: 3}, ValueError, "unary of node 'b' must be the costs of its labels"),
        ({"unary": lambda node: "red"}, TypeError, "unary of node 'b' must hold real numbers"),
        ({"unary": lambda node: [np.nan, 0]}, ValueError, "unary of node 'b' holds NaN"),
        ({"unary": np.zeros((4, 3))}, ValueError, "each of the graph's 5 nodes, got 4 rows"),
        ({"unary": 7}, ValueError, "got a int"),
        ({"pairwise": "table"}, ValueError, "has no attribute 'table'"),
        ({"pairwise": "weight"}, ValueError, re.escape('give pairwise=Potts(1), weight="weight"')),
        ({"pairwise": {}}, TypeError, "set_edge_attributes"),
        ({"weight": "cost"}, ValueError, "must be a finite number, got shape"),
        ({"weight": 2.0}, TypeError, "weight must be the name of an edge attribute"),
    ],
)
def test_from_networkx_errors_name_the_node_or_the_edge(change, error, message):
    arguments = {"graph": small_graph(), "unary": "unary", "pairwise": tf.Potts(1)} | change
    check_raises(lambda: tf.GraphMRF.from_networkx(**arguments), error, message)


@pytest.mark.parametrize("value", [np.nan, np.inf, "heavy", None, [1, 2]])
def test_from_networkx_refuses_bad_edge_weights(value):
    graph = nx.path_graph(2)
    graph.edges[0, 1]["weight"] = value
    check_raises(
        lambda: tf.GraphMRF.from_networkx(graph, np.eye(2), tf.Potts(1)),
        (TypeError, ValueError),
        "'weight' of edge 0, 1",
    )


def random_weights(seed=0):
    """An upper triangle, dense."""
    rng = np.random.default_rng(seed)
    return np.triu(rng.integers(-3, 4, (6, 6)), 1)


@pytest.mark.parametrize(
    "layout", [sp.coo_array, sp.csr_array, sp.csc_matrix, sp.lil_matrix, sp.dok_array, sp.dia_array]
)
@pytest.mark.parametrize("shape", ["symmetric", "upper", "lower"])
def test_from_scipy_sparse_accepts_every_layout_symmetric_or_triangular(layout, shape):
    upper = random_weights()
    matrix = {"symmetric": upper + upper.T, "upper": upper, "lower": upper.T}[shape]
    unaries = np.random.default_rng(1).integers(0, 9, (6, 3))
    for pairwise, table in ((tf.Potts(1), 1 - np.eye(3)), (TABLE, TABLE)):
        mrf = tf.GraphMRF.from_scipy_sparse(layout(matrix), unaries, pairwise, offset=2)
        for x in np.random.default_rng(2).integers(0, 3, (50, 6)):
            expected = 2 + unaries[np.arange(6), x].sum()
            for i, j in itertools.combinations(range(6), 2):
                expected += upper[i, j] * (table[x[j], x[i]] if shape == "lower" else table[x[i], x[j]])
            assert mrf.energy(x) == expected
        assert len(mrf.edges) == np.count_nonzero(upper)


def test_from_scipy_sparse_drops_zeros_and_sums_duplicates_and_the_diagonal():
    row, column, data = [0, 0, 1, 2, 2], [1, 1, 2, 2, 0], [1.0, 2.0, 0.0, 5.0, 0.0]
    matrix = sp.coo_array((data, (row, column)), shape=(3, 3))
    mrf = tf.GraphMRF.from_scipy_sparse(matrix, np.zeros((3, 2)), np.array([[1, 4], [4, 2]]))
    assert mrf.edges.tolist() == [[0, 1]] and mrf.weights.tolist() == [3]
    assert mrf.energy([0, 1, 1]) == 3 * 4 + 5 * 2
    assert matrix.data.tolist() == data  # unchanged


def test_from_scipy_sparse_accepts_symmetry_up_to_rounding():
    matrix = sp.csr_array(np.array([[0, 0.1 + 0.2], [0.3, 0]]))
    assert tf.GraphMRF.from_scipy_sparse(matrix, np.zeros((2, 2)), tf.Potts(1)).weights.tolist() == [0.1 + 0.2]


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32])
def test_from_scipy_sparse_accepts_every_real_dtype(dtype):
    matrix = sp.csr_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype))
    mrf = tf.GraphMRF.from_scipy_sparse(matrix, [[0, 1], [0, 1, 2], [3, 0]], tf.Potts(2))
    assert mrf.energy([0, 2, 1]) == 6


@pytest.mark.parametrize(
    ("matrix", "error", "message"),
    [
        (np.eye(3), TypeError, re.escape("scipy.sparse array, such as coo_array(matrix), got ndarray")),
        (sp.coo_array, TypeError, "must be a scipy.sparse array"),
        (sp.coo_array((3, 4)), ValueError, re.escape("expected (sites, sites)")),
        (sp.coo_array((4, 4)), ValueError, re.escape("expected (3, 3): unaries has 3 sites")),
        (sp.coo_array((3, 3), dtype=complex), TypeError, "real numbers, got dtype complex128"),
        (sp.coo_array([[0, np.nan, 0], [0, 0, 0], [0, 0, 0]]), ValueError, "NaN or infinity"),
        (sp.coo_array([[0, 1, 0], [2, 0, 0], [0, 0, 0]]), ValueError, "neither symmetric nor triangular"),
        (sp.coo_array([[0, 1, 0], [0, 0, 0], [1, 0, 0]]), ValueError, "neither symmetric nor triangular"),
    ],
)
def test_from_scipy_sparse_refuses_bad_matrices(matrix, error, message):
    check_raises(lambda: tf.GraphMRF.from_scipy_sparse(matrix, np.zeros((3, 2)), tf.Potts(1)), error, message)


def test_from_scipy_sparse_refuses_bad_unaries():
    for unaries in (3, np.array(3.0), [1, 2, 3]):
        check_raises(
            lambda given=unaries: tf.GraphMRF.from_scipy_sparse(sp.eye_array(3), given, tf.Potts(1)),
            ValueError,
            "unaries",
        )
