"""Trees and forests of graphs: induced, as large as can be, and solved exactly."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_graph
import treefield as tf
from small import check_raises
from small_graphs import graphs, grid_graph, random_graph, random_labels, spin_glass
from treefield.backends.graph import tree_sets as induced
from treefield.backends.graph.tree_sets import NAMES, block_order, drawn_forest, drawn_trees
from treefield.errors import CycleError

RING = [(i, (i + 1) % 6) for i in range(6)]
WEAK = tf.GraphMRF(np.random.default_rng(0).integers(0, 9, (6, 3)), RING, tf.Potts(2))


def edges_of(mrf):
    """The naive graph of a model, of which only the edges matter."""
    return naive_graph.Model([[0.0]] * mrf.size, [tuple(edge) for edge in mrf.edges.tolist()], [])


def check_planned(mrf, forest):
    """Parents come before their children, are joined to them by the link, and children are known to their parents."""
    ends = mrf.backend.kernel_graph.edges.reshape(-1, 2)
    starts = set(forest.trees[:-1].tolist())
    children = {p: [] for p in range(len(forest.sites))}
    for p, (site, parent, link) in enumerate(zip(forest.sites, forest.parents, forest.links, strict=True)):
        assert (parent < 0) == (p in starts) and parent < p
        if parent >= 0:
            assert ends[link >> 1, link & 1] == site and ends[link >> 1, 1 - (link & 1)] == forest.sites[parent]
            children[int(parent)].append(p)
    for p, expected in children.items():
        found, q = [], forest.first_children[p]
        while q >= 0:
            found.append(int(q))
            q = forest.next_siblings[q]
        assert sorted(found) == expected


# --- drawing --------------------------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(graphs(), st.integers(0, 99))
def test_a_drawn_forest_equals_the_greedy_one(case, seed):
    mrf = case.mrf()
    order = np.random.default_rng(seed).permutation(mrf.size).astype(np.int32)
    forest, model = drawn_forest(mrf.backend, order), edges_of(mrf)
    assert sorted(forest.sites.tolist()) == sorted(naive_graph.greedy_forest(model, order.tolist()))
    assert len(forest.trees) - 1 == len(naive_graph.pieces(model, forest.sites.tolist()))
    check_planned(mrf, forest)


@pytest.mark.parametrize("mrf", [grid_graph((30, 30)), grid_graph((6, 7, 8)), spin_glass(200, 6)], ids=repr)
def test_a_drawn_forest_is_large_and_maximal(mrf):
    rng, model = np.random.default_rng(0), edges_of(mrf)
    for order in (np.arange(mrf.size, dtype=np.int32), block_order(mrf.size, rng)):
        forest = drawn_forest(mrf.backend, order)
        sites = forest.sites.tolist()
        assert naive_graph.is_forest(model, sites)
        left = sorted(set(range(mrf.size)) - set(sites))
        for i in rng.choice(left, 5, replace=False):
            assert not naive_graph.is_forest(model, [*sites, int(i)])
    if mrf.size == 900:
        assert len(sites) / 900 >= 0.6


@settings(max_examples=50)
@given(graphs(), st.integers(0, 99), st.booleans())
def test_drawn_trees_are_a_partition_into_induced_trees(case, seed, turned):
    mrf = case.mrf()
    model, order = edges_of(mrf), np.random.default_rng(seed).permutation(mrf.size).astype(np.int32)
    forest = drawn_trees(mrf.backend, order, turned)
    check_planned(mrf, forest)
    assert sorted(forest.sites.tolist()) == list(range(mrf.size))
    for tree in np.split(forest.sites, forest.trees[1:-1]):
        assert naive_graph.is_forest(model, tree.tolist()) and len(naive_graph.pieces(model, tree.tolist())) == 1


def test_drawn_trees_have_at_most_128_sites():
    mrf = grid_graph((30, 30))
    for turned in (False, True):
        forest = drawn_trees(mrf.backend, np.arange(900, dtype=np.int32), turned)
        sizes = np.diff(forest.trees)
        assert sizes.max() == 128 and sizes.sum() == 900
        model = edges_of(mrf)
        for tree in np.split(forest.sites, forest.trees[1:-1]):
            assert naive_graph.is_forest(model, tree.tolist())


def test_reversed_neighbours_give_other_trees():
    mrf = grid_graph((12, 12))
    first, second = (drawn_trees(mrf.backend, np.arange(144, dtype=np.int32), turned) for turned in (False, True))
    assert first.parents.tolist() != second.parents.tolist() or first.sites.tolist() != second.sites.tolist()


@pytest.mark.parametrize("size", [1, 2, 7, 300])
def test_a_block_order_has_every_site_once(size):
    for seed in range(20):
        order = block_order(size, np.random.default_rng(seed))
        assert order.dtype == np.int32 and sorted(order.tolist()) == list(range(size))


def test_sites_in_no_forest_are_swept_one_by_one(monkeypatch):
    monkeypatch.setattr(induced, "_MOST_FORESTS", 1)
    case = random_graph(0, "tables", "dense", integer=False, sites=12)
    mrf, x = case.mrf(), random_labels(case, 0)
    trees = mrf.backend.tree_set("forests")
    assert len(trees.shares) == 1 and 0 < trees.shares[0] < 1
    while trees.sweep(x) < 0:
        pass
    assert naive_graph.icm(case.merged, x.tolist(), range(12)) == x.tolist()


# --- sweeping -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_sweep_of_a_graph_never_raises_the_energy_and_sweeps_end(name):
    @settings(max_examples=25)
    @given(graphs(), st.integers(0, 99), st.sampled_from(["fixed", "random"]))
    def check(case, seed, order):
        mrf, rng, x = case.mrf(), np.random.default_rng(seed), random_labels(case, seed)
        trees = mrf.backend.tree_set(name, order=order)
        for number in range(60):
            before = mrf.backend.energy_parts(x)[::-1]
            change = trees.sweep(x, rng, reverse=number % 2 == 1)
            assert change <= 0 and mrf.backend.energy_parts(x)[1] <= before[0]
            after = mrf.backend.energy_parts(x)[::-1]
            assert after[0] < before[0] or after[1] <= before[1] + 1e-9
            if change == 0 and not name.startswith("random"):
                break
        assert change == 0  # no sweep gains anything any more: no site would like another label
        ranks = [naive_graph.label_ranks(case.merged, x.tolist(), i) for i in range(mrf.size)]
        own = naive_graph.rank(case.merged, x.tolist())
        for forbidden, finite in map(min, ranks):
            assert forbidden >= own[0] and (forbidden > own[0] or finite >= own[1] - 1e-9)

    check()


@settings(max_examples=40)
@given(graphs(), st.integers(0, 99))
def test_when_sweeps_end_every_tree_is_at_its_best(case, seed):
    mrf, x = case.mrf(), random_labels(case, seed)
    for name in ("trees", "forests"):
        trees = mrf.backend.tree_set(name)
        while trees.sweep(x) < 0:
            pass
        rank = naive_graph.rank(case.merged, x.tolist())
        for forest in trees._forests:
            for tree in np.split(forest.sites, forest.forest.trees[1:-1]):
                best = naive_graph.best_on(case.merged, x.tolist(), tree.tolist())
                assert rank == (best[0], pytest.approx(best[1], rel=1e-9, abs=1e-9))


def test_a_used_tree_set_sweeps_like_a_new_one():
    for mrf in (grid_graph((9, 9), 4), spin_glass(81)):
        rng = np.random.default_rng(0)
        for name in ("trees", "forests"):
            kept = mrf.backend.tree_set(name)
            for _ in range(10):
                x = mrf.backend.random_labels(rng)
                y = x.copy()
                assert kept.sweep(x) == mrf.backend.tree_set(name).sweep(y)
                np.testing.assert_array_equal(x, y)


def test_random_trees_follow_the_seed():
    mrf, found = grid_graph((8, 8), 3), {}
    for name in ("random-trees", "random-forests"):
        for seed in (0, 0, 1, 2):
            x, rng = np.zeros(64, np.int32), np.random.default_rng(seed)
            trees = mrf.backend.tree_set(name)
            trees.sweep(x, rng)
            found.setdefault((name, seed), []).append(x.tolist())
        assert found[name, 0][0] == found[name, 0][1]
        assert found[name, 0] != found[name, 1] or found[name, 0] != found[name, 2]


def test_a_random_order_follows_the_seed():
    """Of two trees that touch, the first decides."""
    mrf = tf.GraphMRF([[1, 0], [0, 1]], [(0, 1)], tf.Potts(5))
    ends = set()
    for seed in range(10):
        x = np.array([1, 0], np.int32)
        for _ in range(2):
            y = x.copy()
            mrf.backend.tree_set([[0], [1]], order="random").sweep(y, np.random.default_rng(seed))
            ends.add(tuple(y.tolist()))
    assert ends == {(0, 0), (1, 1)}


# --- the user's trees -----------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(graphs(), st.integers(0, 99))
def test_given_trees_are_solved_or_their_cycle_is_refused(case, seed):
    mrf, rng = case.mrf(), np.random.default_rng(seed)
    sites = rng.permutation(mrf.size)[: rng.integers(1, mrf.size + 1)]
    x = random_labels(case, seed)
    if not naive_graph.is_forest(edges_of(mrf), sites.tolist()):
        message = rf"trees\[0\] has a cycle: its {len(sites)} sites and all edges between them must form trees"
        check_raises(lambda: mrf.backend.tree_set([sites]), CycleError, message)
        return
    mrf.backend.tree_set([sites]).sweep(x)
    rank, best = (
        naive_graph.rank(case.merged, x.tolist()),
        naive_graph.best_on(case.merged, x.tolist(), sites.tolist()),
    )
    assert rank == (best[0], pytest.approx(best[1], rel=1e-9, abs=1e-9))


@pytest.mark.parametrize(
    ("trees", "options", "error", "message"),
    [
        ("bands", {}, ValueError, "trees of a graph must be one of 'trees', .*'sites', or a list.*got 'bands'"),
        ([[0, 1], range(6)], {}, CycleError, r"trees\[1\] has a cycle: its 6 sites"),
        ([[0, 6]], {}, ValueError, r"trees\[0\] names sites 0 to 6, but the model has sites 0 to 5"),
        ([[0, 0]], {}, ValueError, r"trees\[0\] names a site twice"),
        ([[0.5]], {}, ValueError, r"trees\[0\] must be a non-empty 1-D array of flat site indices"),
        ([], {}, ValueError, "trees is an empty list"),
        (np.arange(3), {}, TypeError, "trees must be a name or a list of site-index arrays"),
        (3, {}, TypeError, "trees must be a name or a list of site-index arrays"),
        (None, {"order": "up"}, ValueError, "order must be one of 'fixed', 'random', got 'up'"),
        (None, {"bands": 8}, ValueError, "bands=8 goes with grids: a graph has no rows"),
        (None, {"memory": "low"}, ValueError, 'memory="low" goes with grids'),
        (None, {"memory": "little"}, ValueError, "memory must be one of"),
        (None, {"threads": 0}, ValueError, "threads must be at least 1"),
    ],
)
def test_an_unknown_or_bad_tree_set_of_a_graph_is_refused(trees, options, error, message):
    check_raises(lambda: WEAK.backend.tree_set(trees, **options), error, message)
    check_raises(lambda: tf.t_icm(WEAK, trees=trees, **options), error, message)


def test_a_labelling_that_cannot_be_changed_in_place_is_refused():
    for trees in (WEAK.backend.tree_set(), WEAK.backend.tree_set("sites")):
        for x in (np.zeros(6), np.zeros(6, np.int64), np.zeros(5, np.int32), np.zeros(12, np.int32)[::2], [0] * 6):
            check_raises(lambda trees=trees, x=x: trees.sweep(x), ValueError, "x must be a C-contiguous int32 array")
        frozen = np.zeros(6, np.int32)
        frozen.flags.writeable = False
        check_raises(lambda trees=trees, x=frozen: trees.sweep(x), ValueError, "x is read-only")
        beyond = np.full(6, 3, np.int32)
        check_raises(lambda trees=trees, x=beyond: trees.sweep(x), ValueError, "x holds labels from 3 to 3")


# --- whole trees ----------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(graphs(shapes=["tree"]))
def test_tree_bp_is_exact_on_trees_of_a_graph(case):
    res = tf.tree_bp(case.mrf())
    (forbidden, finite), _ = naive_graph.minimum(case.merged)
    if forbidden:
        assert res.fun == np.inf and not res.success
    else:
        assert res.fun == (finite if case.integer else pytest.approx(finite, rel=1e-12, abs=1e-12))
        assert res.fun == case.mrf().energy(res.x) and res.lower_bound <= res.fun
        assert res.fun - res.lower_bound <= (0 if case.integer else 1e-10 * (1 + abs(res.fun)))


@pytest.mark.parametrize("edges", [RING, [*RING, (0, 3)], [(0, 1), (1, 2), (2, 0)]])
def test_tree_bp_refuses_graphs_with_cycles(edges):
    mrf = tf.GraphMRF(np.zeros((6, 2)), edges, tf.Potts(1))
    check_raises(lambda: tf.tree_bp(mrf), CycleError, "tree_bp needs a model without cycles, but this one of 6 sites")


def test_tree_bp_solves_long_chains():
    rng = np.random.default_rng(0)
    unaries, table = rng.integers(0, 9, (20_000, 3)), rng.integers(0, 5, (3, 3))
    chain = tf.GraphMRF(unaries, [(i, i + 1) for i in range(19_999)], table)
    assert tf.tree_bp(chain).fun == naive_graph.chain_minimum(unaries.tolist(), [table.tolist()] * 19_999)
