"""Jumps on graphs: balls, heat, segments, and the mixture of them."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_graph
import treefield as tf
from small import check_memory_survives_json, check_raises
from small_graphs import graphs, grid_graph, random_graph, random_labels, spin_glass
from treefield.moves import BallJump, BoxJump, HeatJump, MessageJump, MixedJump, PerComponent, SegmentJump, UniformJump

LABELS = ("scramble", "best", "neighbour", "random")
JUMPS = {
    **{f"{label} balls": BallJump(label, size=(1, 5)) for label in LABELS},
    "large balls": BallJump("random", size=(50, 90), density=2.0),
    "heat": HeatJump(sweeps=(2, 6)),
    "heat in trees": HeatJump(sweeps=(2, 6), trees=True),
    "given heat": HeatJump(sweeps=(3, 3), temperatures=(5, 0.1)),
    "segments": SegmentJump("neighbour", share=1.0),
    "shifted segments": SegmentJump("shift", share=1.0),
    "uniform": UniformJump(0.5),
    "mixed": MixedJump(),
}


@pytest.mark.parametrize("name", JUMPS)
def test_a_graph_jump_returns_a_labelling_and_follows_the_seed(name):
    @settings(max_examples=25)
    @given(graphs(), st.integers(0, 99))
    def check(case, seed):
        mrf, x = case.mrf(), random_labels(case, seed)
        before, found = x.copy(), []
        for _ in range(2):
            found.append(copy.deepcopy(JUMPS[name])(x, mrf, np.random.default_rng(seed)))
        y = found[0]
        np.testing.assert_array_equal(*found)
        np.testing.assert_array_equal(x, before)
        assert y.dtype == np.int32 and y.shape == x.shape and not np.shares_memory(x, y)
        assert (y >= 0).all() and (y < mrf.label_counts).all()

    check()


@pytest.mark.parametrize("name", JUMPS)
def test_a_graph_jump_changes_some_labels(name):
    case = random_graph(5, "potts", "any", sites=40)
    mrf, x, rng = case.mrf(), random_labels(case, 0), np.random.default_rng(0)
    assert sum((copy.deepcopy(JUMPS[name])(x, mrf, rng) != x).any() for _ in range(20)) > 10


# --- balls ----------------------------------------------------------------------------------------------------------


def distances(mrf, centre):
    """How many edges each site is away from the centre."""
    found, front = {centre: 0}, [centre]
    edges = mrf.edges.tolist()
    while front:
        i = front.pop(0)
        for a, b in edges:
            for j in [b] if a == i else [a] if b == i else []:
                if j not in found:
                    found[j] = found[i] + 1
                    front.append(j)
    return found


@pytest.mark.parametrize("size", [1, 4, 9, 200])
def test_a_ball_has_the_sites_nearest_to_its_centre(size):
    for mrf in (grid_graph((6, 7)), spin_glass(40, 3)):
        jump = BallJump(size=(size, size), density=3.0)
        centres, sizes = jump._draw(mrf.size, np.random.default_rng(0))
        ends, sites = mrf.backend.balls.draw(centres, sizes)
        for centre, ball in zip(centres, np.split(sites, ends[:-1]), strict=True):
            away = distances(mrf, int(centre))
            found = sorted(away[int(i)] for i in ball)
            assert ball[0] == centre and len(set(ball.tolist())) == len(ball)
            assert found == sorted(away.values())[: len(ball)] and len(ball) == min(size, len(away))


@settings(max_examples=60)
@given(graphs(), st.integers(0, 99), st.integers(1, 5))
def test_the_best_label_of_a_ball_equals_that_of_brute_force(case, seed, size):
    mrf, x = case.mrf(), random_labels(case, seed)
    jump = BallJump("best", size=(size, size), density=1e-9)  # one ball
    _, sites = mrf.backend.balls.draw(*jump._draw(mrf.size, np.random.default_rng(seed)))
    y = jump(x, mrf, np.random.default_rng(seed))
    sites = sites.tolist()
    outside = np.setdiff1d(np.arange(mrf.size), sites)
    np.testing.assert_array_equal(y[outside], x[outside])
    assert len(set(y[sites].tolist())) == 1
    ranks = naive_graph.constant_ranks(case.merged, x.tolist(), sites)
    chosen, best = ranks[y[sites[0]]], min(ranks)
    assert chosen == (best[0], best[1] if case.integer else pytest.approx(best[1], rel=1e-9, abs=1e-9))
    if case.integer:
        assert y[sites[0]] == ranks.index(best)  # the lowest of equal ones


@pytest.mark.parametrize("label", ["neighbour", "random"])
def test_a_ball_of_one_label_leaves_sites_that_lack_it(label):
    mrf = tf.GraphMRF([[0, 0], [0] * 5, [0] * 3, [0] * 5], [(0, 1), (1, 2), (2, 3)], tf.Potts(1))
    x, rng, seen = np.array([0, 4, 1, 3], np.int32), np.random.default_rng(0), set()
    for _ in range(300):
        y = BallJump(label, size=(4, 4), density=1e-9)(x, mrf, rng)
        if (y != x).any():
            (new,) = set(y[y != x].tolist())
            seen.add(new)
            expected = np.where(new < mrf.label_counts, new, x)
            np.testing.assert_array_equal(y, expected)
    assert seen == ({0, 1, 3, 4} if label == "neighbour" else {0, 1, 2, 3, 4})


def test_scrambled_sites_take_all_of_their_labels():
    mrf = tf.GraphMRF([[0, 0], [0] * 5, [0]], [(0, 1), (1, 2)], tf.Potts(1))
    rng = np.random.default_rng(0)
    ends = np.array([BallJump(size=(3, 3))(np.zeros(3, np.int32), mrf, rng) for _ in range(400)])
    assert [set(column) for column in ends.T.tolist()] == [{0, 1}, {0, 1, 2, 3, 4}, {0}]


# --- heat and segments ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trees", [False, True])
def test_heat_jumps_lead_to_labellings_of_low_energy(trees):
    mrf, rng = grid_graph((10, 10), 3), np.random.default_rng(0)
    jump, x = HeatJump(sweeps=(30, 60), trees=trees), mrf.backend.random_labels(rng)
    energies = [mrf.energy(jump(x, mrf, rng)) for _ in range(5)]
    assert max(energies) < mrf.energy(x) - 200
    assert min(energies) < 1.15 * tf.minimize(mrf, rng=0).fun


@pytest.mark.parametrize("trees", [False, True])
def test_a_heat_jump_can_change_to_another_model(trees):
    jump = HeatJump(sweeps=(3, 9), trees=trees)
    for mrf in (grid_graph((4, 4), 3), spin_glass(9), grid_graph((4, 4), 3)):
        x = np.zeros(mrf.size, np.int32)
        fresh = HeatJump(sweeps=(3, 9), trees=trees)
        found = [each(x, mrf, np.random.default_rng(1)) for each in (jump, fresh)]
        np.testing.assert_array_equal(*found)
        assert jump.work(mrf) == fresh.work(mrf) > 0
        again = pickle.loads(pickle.dumps(jump))
        np.testing.assert_array_equal(again(x, mrf, np.random.default_rng(1)), found[0])


def test_a_segment_takes_the_label_across_its_border():
    mrf = tf.GraphMRF(np.zeros((6, 4)), [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)], tf.Potts(1))
    x, rng = np.array([0, 0, 3, 3, 2, 2], np.int32), np.random.default_rng(0)
    expected = {0: {0, 3}, 2: {0, 3, 2}, 4: {2, 3}}
    seen = {first: set() for first in expected}
    for _ in range(200):
        y = SegmentJump("neighbour", share=0.5)(x, mrf, rng)
        for first, found in seen.items():
            assert y[first] == y[first + 1]
            found.add(int(y[first]))
    assert seen == expected


@settings(max_examples=30)
@given(graphs(), st.integers(0, 99))
def test_segments_are_connected_sites_of_one_label(case, seed):
    mrf, x = case.mrf(), random_labels(case, seed) // 3
    edges = [tuple(edge) for edge in mrf.edges.tolist()]
    model = naive_graph.Model([[0.0]] * mrf.size, [(i, j) for i, j in edges if x[i] == x[j]], [])
    numbers, count = mrf.backend.segments(x)
    pieces = naive_graph.pieces(model, range(mrf.size))
    assert count == len(pieces)
    for number, piece in enumerate(pieces):
        assert np.flatnonzero(numbers == number).tolist() == piece


# --- mixtures -------------------------------------------------------------------------------------------------------


def test_a_mixture_has_the_jumps_that_suit_the_model():
    jump, rng = MixedJump(), np.random.default_rng(0)
    graph, grid = grid_graph((4, 4)), tf.GridMRF(np.zeros((4, 4, 2)), tf.Potts(1))
    jump(np.zeros(16, np.int32), graph, rng)
    assert {type(inner) for inner in jump.jumps} == {BallJump, SegmentJump, HeatJump}
    assert sorted(inner.trees for inner in jump.jumps if isinstance(inner, HeatJump)) == [False, True]
    jump(np.zeros((4, 4), np.int32), grid, rng)
    assert {type(inner) for inner in jump.jumps} == {BoxJump, SegmentJump}
    own = MixedJump([UniformJump()])
    own(np.zeros(16, np.int32), graph, rng)
    assert [type(inner) for inner in own.jumps] == [UniformJump]


def test_the_state_of_a_mixture_on_a_graph_survives_json():
    check_memory_survives_json(MixedJump, grid_graph((6, 6), 3))


def test_a_mixture_tries_all_its_jumps_and_searches_with_them():
    mrf, jump, rng = grid_graph((7, 7), 4), MixedJump(), np.random.default_rng(0)
    x = mrf.backend.random_labels(rng)
    for _ in range(12):
        jump(x, mrf, rng)
    assert (jump.uses > 0).all()
    res = tf.t_ils(mrf, jump=jump, accept=PerComponent(), maxiter=60, rng=0)
    assert res.fun == tf.minimize(mrf, tol=0, rng=0).fun


# --- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: BallJump("worst"), ValueError, "label must be one of 'scramble', .*, got 'worst'"),
        (lambda: BallJump(size=(5, 3)), ValueError, r"size must ascend, got \(5, 3\)"),
        (lambda: BallJump(size=(0, 3)), ValueError, r"size\[0\] must be at least 1, got 0"),
        (lambda: BallJump(size=3), ValueError, "size must be two integers.*got 3"),
        (lambda: BallJump(density=0), ValueError, "density must be above 0, got 0"),
        (lambda: HeatJump(sweeps=(0, 3)), ValueError, r"sweeps\[0\] must be at least 1, got 0"),
        (lambda: HeatJump(sweeps=5), ValueError, "sweeps must be two integers, the smallest and the largest number of"),
        (lambda: HeatJump(temperatures=3), ValueError, "temperatures must be two numbers, hot and cold, got 3"),
        (lambda: HeatJump(temperatures=(1, 2)), ValueError, "temperatures must be above 0 and must not rise"),
        (lambda: HeatJump(temperatures=(1, 0)), ValueError, "temperatures must be above 0 and must not rise"),
    ],
)
def test_a_graph_jump_with_a_parameter_out_of_range_is_refused(make, error, message):
    check_raises(make, error, message)


def test_jumps_of_grids_are_refused_on_graphs_and_the_other_way_round():
    graph, grid = grid_graph((4, 4)), tf.GridMRF(np.zeros((4, 4, 2)), tf.Potts(1))
    rng, x = np.random.default_rng(0), np.zeros(16, np.int32)
    check_raises(lambda: BoxJump()(x, graph, rng), TypeError, "BoxJump is for grids, got a GraphMRF; use BallJump")
    check_raises(lambda: MessageJump()(x, graph, rng), TypeError, "MessageJump")
    check_raises(
        lambda: BallJump()(x.reshape(4, 4), grid, rng), TypeError, r"BallJump is for graphs; on a GridMRF use BoxJump"
    )
    for jump in (BallJump(), HeatJump(), SegmentJump()):
        for wrong in (np.zeros(15, np.int32), np.zeros(16), np.full(16, 2, np.int32)):
            check_raises(lambda jump=jump, wrong=wrong: jump(wrong, graph, rng), ValueError, "x (must be|holds labels)")
