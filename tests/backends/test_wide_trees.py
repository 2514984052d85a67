"""Wide trees of graphs: cuts of all sites into induced subgraphs with small profiles, each solved exactly."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_graph
import treefield as tf
from naive_treewidth import pathwidth
from small import check_raises
from small_graphs import graphs, grid_graph, random_labels, spin_glass
from treefield.backends.graph import wide_trees


def check_sweep(case, mrf, trees, x, rng=None, *, reverse=False):
    """Sweep once, in place. Fail unless the trees cut all sites, are narrow, and have their best labels, in turn."""
    model, before = case.merged, x.copy()
    energy = mrf.energy(before)
    change = trees.sweep(x, rng, reverse=reverse)
    assert change <= 0
    if math.isfinite(energy):
        assert change == pytest.approx(mrf.energy(x) - energy, rel=1e-9, abs=1e-9)
    numbers = trees._front.trees
    assert (trees._front.places == 2).all() and sorted(set(numbers.tolist())) == list(range(numbers.max() + 1))
    y = before
    for tree in range(numbers.max() + 1):
        sites = np.flatnonzero(numbers == tree)
        assert pathwidth(mrf.edges.tolist(), sites.tolist()) <= trees.width
        forbidden, least = naive_graph.best_on(model, y.tolist(), sites.tolist())
        y[sites] = x[sites]
        found = naive_graph.rank(model, y.tolist())
        assert found[0] == forbidden and found[1] == pytest.approx(least, rel=1e-9, abs=1e-9)
    return numbers


# --- each tree against enumeration ------------------------------------------------------------------------------------


@settings(max_examples=150)
@given(graphs(), st.integers(0, 99), st.booleans())
def test_sweep_gives_every_wide_tree_its_best_labels(case, seed, reverse):
    mrf = case.mrf()
    for width in range(1, min(mrf.size, 4) + 1):
        trees, x = mrf.backend.tree_set("wide", width=width), random_labels(mrf, seed)
        check_sweep(case, mrf, trees, x, reverse=reverse)
        check_sweep(case, mrf, trees, random_labels(mrf, seed + 1), np.random.default_rng(seed), reverse=reverse)


@settings(max_examples=60)
@given(graphs(), st.integers(0, 99))
def test_a_profile_of_all_sites_gives_the_optimum(case, seed):
    mrf = case.mrf()
    x = random_labels(mrf, seed)
    mrf.backend.tree_set("wide", width=mrf.size).sweep(x, np.random.default_rng(seed))
    forbidden, least = naive_graph.minimum(case.merged)[0]
    found = naive_graph.rank(case.merged, x.tolist())
    assert found[0] == forbidden and found[1] == pytest.approx(least, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("labels", [2, 3, 9, 70])
def test_wide_trees_find_what_elimination_finds(labels):
    rng = np.random.default_rng(labels)
    rows = {2: 7, 3: 7, 9: 3, 70: 1}[labels]
    grid = tf.GridMRF(rng.normal(size=(rows, 9, labels)), rng.normal(size=(labels, labels)))
    graph = grid.to_graph()
    x = random_labels(graph, 0)
    trees = graph.backend.tree_set("wide", width=rows + 1)
    for _ in range(20):
        trees.sweep(x, rng)
    least = graph.energy(graph.backend.eliminate(2.0**30, 2.0**30, 1))
    assert graph.energy(x) == pytest.approx(least, rel=1e-9)


@pytest.mark.parametrize("room", [1, 100, 160])
def test_trees_end_where_their_decisions_have_no_room(monkeypatch, room):
    rng = np.random.default_rng(0)
    mrf = tf.GraphMRF(rng.normal(size=(60, 2)), [(i, (i + 1) % 60) for i in range(60)], tf.Potts(-0.5))
    least = mrf.energy(mrf.backend.eliminate(2.0**20, 2.0**30, 1))
    for few, is_cut in ((room, True), (2**22, False)):
        monkeypatch.setattr(wide_trees, "_FEW_DECISIONS", few)
        trees, x = mrf.backend.tree_set("wide", width=2), random_labels(mrf, 0)
        energy = mrf.energy(x)
        change = trees.sweep(x)
        assert change == pytest.approx(mrf.energy(x) - energy, rel=1e-9, abs=1e-9)
        assert (trees._front.trees.max() > 0) == is_cut  # a ring has a profile of two sites
        assert is_cut or mrf.energy(x) == pytest.approx(least, rel=1e-9)


# --- how trees grow ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 4, 8])
def test_trees_are_large_on_grids(width):
    mrf = grid_graph((40, 40))
    trees, rng = mrf.backend.tree_set("wide", width=width), np.random.default_rng(0)
    sizes = []
    for _ in range(5):
        trees.sweep(random_labels(mrf, 0), rng)
        sizes.append(np.bincount(trees._front.trees).max())
    assert np.mean(sizes) >= 20 * width


def test_wider_trees_lead_lower_on_a_spin_glass():
    mrf = spin_glass(400, 4)
    ends = []
    for width in (1, 4, 8):
        res = [tf.t_icm(mrf, trees="wide", width=width, rng=seed) for seed in range(5)]
        ends.append(np.mean([r.fun for r in res]))
        assert all(r.fun == mrf.energy(r.x) for r in res)
    assert ends[0] > ends[1] > ends[2]


def test_trees_of_a_sweep_are_drawn_afresh():
    mrf = spin_glass(100, 4)
    trees, rng, seen = mrf.backend.tree_set("wide", width=3), np.random.default_rng(0), set()
    for _ in range(5):
        trees.sweep(random_labels(mrf, 0), rng)
        seen.add(trees._front.trees.tobytes())
    assert len(seen) > 1
    first, second = (random_labels(mrf, 0) for _ in range(2))
    assert trees.sweep(first) == trees.sweep(second)  # without a generator they stay
    np.testing.assert_array_equal(first, second)


# --- widths -----------------------------------------------------------------------------------------------------------


def test_the_usual_width_has_at_most_256_states():
    for labels, width in ((2, 8), (3, 5), (4, 4), (16, 2), (17, 1), (300, 1), (1, 1)):
        mrf = tf.GraphMRF(np.zeros((20, labels)), [(0, 1)], tf.Potts(1))
        assert mrf.backend.tree_set("wide").width == width


@pytest.mark.parametrize(
    ("width", "error", "message"),
    [
        (0, ValueError, "width must be at least 1, got 0"),
        (1.5, TypeError, r"width must be an integer, got 1\.5"),
        (True, TypeError, "width must be an integer, got True"),
        (51, ValueError, "width=51 is more than the graph's 50 sites; the largest width that fits is 50"),
        (40, ValueError, r"width=40 needs 3\*\*40 states .* the largest width that fits is 14"),
    ],
)
def test_a_width_that_does_not_fit_is_refused(width, error, message):
    mrf = tf.GraphMRF(np.zeros((50, 3)), [(i, i + 1) for i in range(49)], tf.Potts(1))
    check_raises(lambda: tf.t_icm(mrf, trees="wide", width=width), error, message)


def test_the_workspace_is_no_larger_than_predicted():
    for labels, width in ((2, 3), (2, 14), (3, 8), (8, 4), (40, 2), (200, 1)):
        mrf = tf.GraphMRF(np.zeros((20, labels)), [(0, 1)], tf.Potts(1))
        tables = mrf.backend.tree_set("wide", width=width)._tables
        used = sum(getattr(tables, name).nbytes for name in ("costs", "high", "decisions"))
        assert used <= wide_trees.table_bytes(labels, width)


def test_periodic_and_dense_grids_have_wide_trees():
    rng = np.random.default_rng(0)
    for shape, options in (((8, 9, 3), {"connectivity": 2, "periodic": True}), ((4, 5, 6, 2), {"connectivity": 2})):
        mrf = tf.GridMRF(rng.normal(size=shape), tf.Potts(-0.7), **options)
        res = tf.t_icm(mrf, trees="wide", width=4, rng=0)
        assert res.fun == mrf.energy(res.x) <= tf.t_icm(mrf, trees="sites", rng=0).fun


def test_more_than_256_labels_are_solved_exactly():
    unary = np.random.default_rng(0).random((4, 300))
    unary[:, 280] = -5
    mrf = tf.GraphMRF(unary, [(0, 1), (1, 2), (2, 3), (3, 0)], tf.Potts(1))
    assert tf.t_icm(mrf, np.zeros(4, int), trees="wide", rng=0).fun == -20


def test_too_many_labels_for_any_width_are_refused():
    mrf = tf.GraphMRF(np.zeros((4, 1000)), [(0, 1), (1, 2), (2, 3), (3, 0)], tf.Potts(1))
    with pytest.raises(ValueError, match='1000 labels needs more than 1024 MB even for width=1; use trees="trees"'):
        mrf.backend.tree_set("wide")
