"""The contract of every run: the trace, the callback, the limits, the seed, the start."""

import pickle

import numpy as np
import pytest

import treefield as tf

SOLVERS = {"t_icm": tf.t_icm, "icm": tf.icm}


@pytest.fixture(scope="module")
def mrf():
    return tf.GridMRF(np.random.default_rng(0).random((40, 50, 4), dtype=np.float32), tf.Potts(0.4))


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_trace_has_a_row_for_every_sweep(mrf, solver):
    res = SOLVERS[solver](mrf, rng=0)
    trace = res.trace
    assert res.method == solver and res.success and res.status == 0 and "converged" in res.message
    assert list(trace["iteration"]) == list(range(res.nit + 1))
    assert np.all(np.diff(trace["seconds"]) >= 0) and np.all(np.diff(trace["energy"]) <= 0)
    assert trace["energy"][-1] == trace["best"][-1] == res.fun == mrf.energy(res.x)
    assert np.isnan(res.lower_bound) and np.isnan(res.gap) and np.isnan(trace["bound"]).all()
    assert res.x.dtype == np.int32 and res.x.shape == mrf.shape


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_callback_sees_every_sweep_and_can_stop(mrf, solver):
    seen = []

    def callback(intermediate_result):
        seen.append((intermediate_result.nit, intermediate_result.fun, mrf.energy(intermediate_result.x)))
        intermediate_result.x[:] = 0  # the callback's copy is its own
        if len(seen) == 3:
            raise StopIteration

    res = SOLVERS[solver](mrf, rng=0, callback=callback)
    assert [nit for nit, _, _ in seen] == [1, 2, 3] and all(fun == energy for _, fun, energy in seen)
    assert res.nit == 3 and res.status == tf.Status.STOPPED and res.fun == mrf.energy(res.x) == seen[-1][1]


def test_t_icm_stops_at_its_limits(mrf):
    assert tf.t_icm(mrf, rng=0, maxiter=2).nit == 2
    assert tf.t_icm(mrf, rng=0, maxiter=2).status == 1
    res = tf.t_icm(mrf, rng=0, time_limit=0.0)
    assert res.nit == 1 and res.status == 1 and res.fun == mrf.energy(res.x)


def test_t_icm_with_the_same_seed_gives_the_same_answer(mrf):
    runs = [tf.t_icm(mrf, order="random", rng=seed).x for seed in (3, 3, np.random.default_rng(3))]
    np.testing.assert_array_equal(runs[0], runs[1])
    np.testing.assert_array_equal(runs[0], runs[2])


def test_random_order_is_random_and_never_uses_global_state(mrf):
    x0 = np.zeros(mrf.shape, int)
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    energies = {tf.t_icm(mrf, x0, order="random", rng=seed, maxiter=1).fun for seed in range(5)}
    assert len(energies) > 1
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


def test_t_icm_starts_from_the_named_or_given_labelling(mrf):
    start = {name: tf.t_icm(mrf, name, rng=1, maxiter=0).x for name in ("random", "unary", "scan-line")}
    np.testing.assert_array_equal(start["unary"], mrf.unary.argmin(axis=-1))
    np.testing.assert_array_equal(start["scan-line"], tf.scan_line(mrf, nu=0.4).x)
    np.testing.assert_array_equal(start["random"], tf.t_icm(mrf, rng=1, maxiter=0).x)
    given = np.random.default_rng(5).integers(4, size=mrf.shape)
    np.testing.assert_array_equal(tf.t_icm(mrf, given, maxiter=0).x, given)


def test_icm_is_t_icm_on_single_sites(mrf):
    np.testing.assert_array_equal(tf.icm(mrf, rng=0).x, tf.t_icm(mrf, trees="sites", rng=0).x)


@pytest.mark.parametrize("trees", ["bands", "rows-columns"])
def test_one_sweep_of_trees_beats_icm_run_to_the_end(mrf, trees):
    x0 = np.random.default_rng(0).integers(4, size=mrf.shape)
    assert tf.t_icm(mrf, x0, trees=trees, maxiter=1).fun < tf.icm(mrf, x0).fun


@pytest.mark.parametrize(("shape", "bands"), [((41, 41), 20), ((1080, 3), None), ((1, 800), None)])
def test_a_sweep_over_partly_filled_bands_returns_the_change_of_energy(shape, bands):
    mrf = tf.GridMRF(np.random.default_rng(0).random((*shape, 2), dtype=np.float32), tf.Potts(0.5))
    x = np.zeros(shape, np.int32)
    change = mrf.backend.tree_set(bands=bands).sweep(x)
    assert mrf.energy(x) == pytest.approx(mrf.energy(np.zeros(shape, int)) + change)
    assert "converged" in tf.t_icm(mrf, rng=0, bands=bands, maxiter=100).message


@pytest.mark.parametrize("trees", ["bands", "alternating", "combs"])
@pytest.mark.parametrize("seed", range(4))
def test_t_icm_does_not_cycle_between_labellings_of_equal_energy(trees, seed):
    rng = np.random.default_rng(seed)
    mrf = tf.GridMRF(rng.integers(1, 8, (40, 40, 3)) / 10, tf.TruncatedLinear(0.1, 2))
    assert "converged" in tf.t_icm(mrf, rng=seed, trees=trees, maxiter=100).message


def test_tree_bp_is_exact_for_costs_and_positions_far_from_zero():
    rng = np.random.default_rng(0)
    unary = rng.integers(0, 9, (1, 9, 4)).astype(np.uint8)
    for far, near in (
        (tf.TruncatedLinear(1, np.inf, values=2e9 + np.arange(4)), tf.TruncatedLinear(1, np.inf)),
        (tf.Table(1e7 + np.eye(4)), tf.Table(np.eye(4))),
    ):
        best = tf.GridMRF(unary, near).energy(tf.tree_bp(tf.GridMRF(unary, near)).x)
        assert tf.GridMRF(unary, near).energy(tf.tree_bp(tf.GridMRF(unary, far)).x) == best
        for solve in (tf.t_icm, tf.scan_line):
            assert tf.GridMRF(unary, near).energy(solve(tf.GridMRF(unary, far)).x) == best


def test_a_callback_that_stops_at_convergence_sets_the_status(mrf):
    def stop(intermediate_result):
        if intermediate_result.nit == converged:
            raise StopIteration

    converged = tf.t_icm(mrf, rng=0).nit
    assert tf.t_icm(mrf, rng=0, callback=stop).status == 2


def test_scan_line_runs_along_the_given_axis():
    rng = np.random.default_rng(0)
    mrf = tf.GridMRF(rng.random((6, 7, 3)), tf.Potts(0.5))
    turned = tf.GridMRF(mrf.unary.transpose(1, 0, 2), tf.Potts(0.5))
    np.testing.assert_array_equal(tf.scan_line(mrf, axis=0).x, tf.scan_line(turned, axis=1).x.T)
    only_rows = tf.GridMRF(mrf.unary, tf.Potts(0.5), weights=(0, 1))
    assert only_rows.energy(tf.scan_line(mrf).x) == pytest.approx(tf.tree_bp(only_rows).fun)


def test_scan_line_without_unary_costs_keeps_only_what_they_forbid():
    unary = np.array([[[9.0, 0.0], [np.inf, 0.0], [9.0, 0.0]]])
    assert tf.scan_line(tf.GridMRF(unary, tf.Potts(1.0)), nu=0).x.tolist() == [[1, 1, 1]]
    assert tf.scan_line(tf.GridMRF(np.minimum(unary, 9), tf.Potts(1.0)), nu=0).x.tolist() == [[0, 0, 0]]


def test_t_icm_with_given_trees_changes_only_their_sites(mrf):
    snake = np.ravel_multi_index(
        (np.r_[np.arange(40), np.full(20, 39)], np.r_[np.zeros(40, int), np.arange(1, 21)]), mrf.shape
    )
    res = tf.t_icm(mrf, "unary", trees=[snake, np.arange(100, 150)], rng=0)
    changed = np.flatnonzero(res.x != mrf.unary.argmin(axis=-1))
    assert res.fun < res.trace["energy"][0] and set(changed) <= {*snake, *range(100, 150)}


def test_tree_bp_follows_the_edges_that_have_weight():
    rng = np.random.default_rng(0)
    down = np.zeros((3, 4))
    down[:, 0] = 1  # rows joined along the first column only: a comb
    mrf = tf.GridMRF(rng.random((4, 4, 2)), tf.Potts(0.3), weights=(down, 1))
    res = tf.tree_bp(mrf)
    energies = [mrf.energy(np.array(list(np.binary_repr(i, 16)), int).reshape(4, 4)) for i in range(0, 2**16, 7)]
    assert res.fun <= min(energies) and 0 <= res.gap <= 1e-10 and "exact" in res.message


def test_a_result_can_be_pickled_and_drawn(mrf):
    import matplotlib

    matplotlib.use("Agg")
    res = tf.t_icm(mrf, rng=0, maxiter=2)
    again = pickle.loads(pickle.dumps(res))
    np.testing.assert_array_equal(again.x, res.x)
    ax = again.plot()
    assert ax.get_xlabel() == "seconds" and len(ax.lines) == 1
