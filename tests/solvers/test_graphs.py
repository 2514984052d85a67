"""Every solver on graphs: its promises, against brute force on small ones."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_graph
import treefield as tf
from small import check_raises, check_same
from small_graphs import KINDS, graphs, grid_graph, random_labels, spin_glass
from treefield.moves import BallJump, HeatJump, MixedJump, PerComponent

SOLVERS = {
    "icm": (tf.icm, {}),
    "t_icm": (tf.t_icm, {}),
    "t_icm, forests": (tf.t_icm, {"trees": "forests"}),
    "t_icm, random trees": (tf.t_icm, {"trees": "random-trees", "maxiter": 5}),
    "t_ils": (tf.t_ils, {"maxiter": 15}),
    "t_ils, mixed": (tf.t_ils, {"maxiter": 15, "jump": MixedJump(), "accept": PerComponent()}),
    "loopy_bp": (tf.loopy_bp, {"maxiter": 8}),
    "loopy_bp, in turn": (
        tf.loopy_bp,
        {"maxiter": 8, "schedule": "sequential", "decoding": "sequential", "damping": 0.3},
    ),
    "trw": (tf.trw, {"maxiter": 15}),
    "anneal": (tf.anneal, {"maxiter": 15}),
    "genetic": (tf.genetic, {"maxiter": 3, "population": 4}),
    "minimize": (tf.minimize, {"maxiter": 15}),
    "minimize, t_ils": (tf.minimize, {"maxiter": 15, "method": "t_ils"}),
}
SEARCHES = {
    "t_ils": (tf.t_ils, {}),
    "t_ils, mixed": (tf.t_ils, {"jump": MixedJump(), "accept": PerComponent()}),
    "t_ils, random trees": (tf.t_ils, {"trees": "random-trees", "jump": BallJump(size=(2, 6))}),
    "t_ils, forests": (tf.t_ils, {"trees": "forests", "jump": HeatJump(sweeps=(2, 5), trees=True)}),
    "anneal": (tf.anneal, {"schedule": "log"}),
    "genetic": (tf.genetic, {"population": 4}),
    "genetic, balls": (tf.genetic, {"population": 4, "mutation": BallJump("random", size=(2, 6))}),
}
THREADED = {name: each for name, each in SOLVERS.items() if each[0] in (tf.t_icm, tf.t_ils, tf.genetic, tf.minimize)}


def check_result(case, mrf, res):
    """Fail unless the result of a solver is consistent."""
    model = case.model
    least, exact = naive_graph.least_energy(model), case.integer
    tolerance = 0 if exact else 1e-9 * (1 + abs(least) if least < math.inf else 1)
    assert res.x.dtype == np.int32 and res.x.shape == mrf.shape and (res.x < mrf.label_counts).all()
    assert res.fun == mrf.energy(res.x) == res.trace["best"][-1]
    expected = naive_graph.energy(model, res.x.tolist())
    assert res.fun == (expected if exact else pytest.approx(expected, rel=1e-9, abs=1e-9))
    assert res.fun >= least - tolerance
    assert math.isnan(res.lower_bound) or res.lower_bound <= min(least + tolerance, res.fun)
    assert (np.diff(res.trace["best"][np.isfinite(res.trace["best"])]) <= 0).all()
    assert (res.status == tf.Status.INFEASIBLE) == (res.fun == math.inf) == ("forbidden" in res.message)


@pytest.mark.parametrize("name", SOLVERS)
def test_a_solver_of_graphs_returns_a_consistent_result(name):
    solver, options = SOLVERS[name]

    @settings(max_examples=30)
    @given(graphs(), st.integers(0, 99))
    def check(case, seed):
        mrf = case.mrf()
        check_result(case, mrf, solver(mrf, rng=seed, **options))
        check_result(case, mrf, solver(mrf, random_labels(case, seed), rng=seed, **options))

    check()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("exact", [True, False])
def test_minimize_finds_the_least_energy_of_small_graphs(monkeypatch, kind, exact):
    if not exact:
        monkeypatch.setattr("treefield.solvers.minimize.solve_by_elimination", lambda *_: None)

    @settings(max_examples=20)
    @given(graphs(kinds=[kind]))
    def check(case):
        res = tf.minimize(case.mrf(), rng=0, tol=0, maxiter=None if exact else 60)
        least = naive_graph.least_energy(case.model)
        assert res.fun == (least if case.integer else pytest.approx(least, rel=1e-9, abs=1e-9))
        rounding = 0.0 if case.integer else 1e-9 * (1 + abs(res.fun))
        assert not exact or res.lower_bound == res.fun or 0 <= res.fun - res.lower_bound <= rounding

    check()


@settings(max_examples=40)
@given(graphs(), st.integers(0, 99))
def test_merge_takes_the_best_components_on_graphs(case, seed):
    mrf = case.mrf()
    x, y = random_labels(case, seed), random_labels(case, seed + 1)
    z = tf.merge(mrf, x, y)
    rank = naive_graph.rank(case.merged, z.tolist())
    _, changes = naive_graph.components(case.merged, x.tolist(), y.tolist())
    start = naive_graph.rank(case.merged, x.tolist())
    gains = [change for change in changes if change <= (0, 0.0)]
    expected = start[0] + sum(c[0] for c in gains), start[1] + sum(c[1] for c in gains)
    if len(mrf.edges) == len(case.merged.edges):  # else there are more, smaller components
        assert rank == (expected[0], pytest.approx(expected[1], rel=1e-9, abs=1e-9))
    for other in (x, y):
        worse = naive_graph.rank(case.merged, other.tolist())
        assert rank <= (worse[0], worse[1] + 1e-9)


# --- the same again -------------------------------------------------------------------------------------------------


def own_tables():
    rng = np.random.default_rng(2)
    counts, edges = rng.integers(1, 6, 40), rng.integers(40, size=(90, 2))
    tables = [rng.uniform(-1, 5, (counts[i], counts[j])) for i, j in edges]
    return tf.GraphMRF([rng.uniform(0, 5, count) for count in counts], edges, tables)


MODELS = {"labels": grid_graph((7, 8), 4, 1), "spins": spin_glass(60), "own tables": own_tables()}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", SOLVERS)
def test_solvers_of_graphs_with_the_same_seed_give_the_same_answer(no_elimination, name, model):
    solver, options = SOLVERS[name]
    first, second = (solver(MODELS[model], rng=5, **options) for _ in range(2))
    check_same(first, second)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", THREADED)
def test_solvers_of_graphs_do_not_depend_on_the_number_of_threads(no_elimination, name, model):
    solver, options = THREADED[name]
    first, second = (solver(MODELS[model], rng=5, threads=threads, **options) for threads in (1, 2))
    check_same(first, second)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", SEARCHES)
def test_a_resumed_search_on_a_graph_equals_an_uninterrupted_one(path, name, model):
    solver, options = SEARCHES[name]
    whole = solver(MODELS[model], maxiter=20, rng=0, **options)
    for stop in (0, 1, 7):
        assert solver(MODELS[model], maxiter=stop, rng=0, checkpoint=path, **options).nit == stop
    check_same(solver(MODELS[model], "unary", maxiter=20, rng=99, checkpoint=path, **options), whole)


def test_a_checkpoint_of_another_graph_is_refused(path):
    tf.t_ils(MODELS["spins"], maxiter=3, rng=0, checkpoint=path)
    other = spin_glass(60, seed=1)
    check_raises(lambda: tf.t_ils(other, maxiter=5, checkpoint=path), ValueError, "another model")


# --- odd graphs -----------------------------------------------------------------------------------------------------

ODD = {
    "one site": tf.GraphMRF([[3, 1, 2]], [], tf.Potts(1)),
    "one label": tf.GraphMRF(np.ones((4, 1)), [(0, 1), (1, 2), (2, 0)], tf.Potts(5), offset=2),
    "one site of one label": tf.GraphMRF([[7.5]], [(0, 0)], tf.Potts(1)),
    "no edges": tf.GraphMRF(np.random.default_rng(0).integers(0, 9, (20, 3)), [], tf.Potts(1)),
    "no edges, tables": tf.GraphMRF([[1, 0], [2, 3, 1]], np.zeros((0, 2), int), []),
    "isolated": tf.GraphMRF(np.eye(5), [(1, 3), (3, 4), (4, 1)], tf.Potts(0.1)),
    "disconnected": tf.GraphMRF(np.eye(6)[:, :3], [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)], tf.Potts(0.25)),
    "spins without edges": tf.GraphMRF(np.array([[1, 0], [0, 1], [0, 0]]), [], tf.Potts(1)),
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", SOLVERS)
def test_odd_graphs_are_solved(no_elimination, name, odd):
    mrf, (solver, options) = ODD[odd], SOLVERS[name]
    res = solver(mrf, rng=0, **options)
    model = naive_graph.Model(
        [costs.tolist() for costs in mrf.unaries],
        [tuple(edge) for edge in mrf.edges.tolist()],
        [mrf.edge_costs(e).tolist() for e in range(len(mrf.edges))],
        mrf.offset,
    )
    if math.prod(mrf.label_counts.tolist()) > 2000:
        least = sum(min(costs) for costs in model.unaries)
    else:
        least = naive_graph.least_energy(model)
    assert res.fun == mrf.energy(res.x) >= least and res.status in (tf.Status.CONVERGED, tf.Status.LIMIT)
    if name not in ("icm", "loopy_bp", "anneal"):
        assert res.fun == least


@pytest.mark.parametrize("name", SOLVERS)
def test_solvers_report_graphs_that_forbid_everything(name):
    forbidding = np.array([[np.inf, 0], [0, np.inf]])
    mrf = tf.GraphMRF(np.zeros((3, 2)), [(0, 1), (1, 2), (2, 0)], forbidding)
    solver, options = SOLVERS[name]
    res = solver(mrf, rng=0, **options)
    assert res.fun == math.inf and res.status == 4 and not res.success
    assert "the labelling has infinite energy: it holds 1 forbidden costs" in res.message or name == "loopy_bp"


def test_minimize_finds_a_colouring():
    """Nothing costs anything, but neighbours must differ."""
    rng = np.random.default_rng(0)
    colours = rng.integers(3, size=60)
    edges = [(i, j) for i, j in rng.integers(60, size=(220, 2)) if colours[i] != colours[j]]
    mrf = tf.GraphMRF(np.zeros((60, 3)), edges, np.where(np.eye(3), np.inf, 0))
    res = tf.minimize(mrf, rng=0, maxiter=300)
    assert res.fun == 0 and res.lower_bound == 0


# --- limits ---------------------------------------------------------------------------------------------------------


def test_a_memory_limit_too_small_for_a_graph_is_refused(no_elimination):
    mrf = MODELS["labels"]
    check_raises(lambda: tf.minimize(mrf, memory_limit=100), ValueError, "memory_limit = 100 bytes is too little")
    sizes = mrf.backend.search_bytes()
    with_dual, without = (size + 12 * 4 * mrf.size for size in sizes.values())
    assert with_dual > without
    assert not math.isnan(tf.minimize(mrf, memory_limit=with_dual, maxiter=2).lower_bound)
    assert math.isnan(tf.minimize(mrf, memory_limit=with_dual - 1, maxiter=2).lower_bound)
    check_raises(lambda: tf.minimize(mrf, memory_limit=without - 1), ValueError, "is too little")


@pytest.mark.parametrize("name", [name for name, (_, options) in SOLVERS.items() if "maxiter" in options])
def test_the_callback_of_a_graph_solver_sees_every_iteration_and_can_stop(no_elimination, name):
    mrf, (solver, options) = MODELS["own tables"], SOLVERS[name]
    seen = []

    def callback(intermediate_result):
        seen.append(intermediate_result.fun)
        assert intermediate_result.fun == mrf.energy(intermediate_result.x)
        if len(seen) == 3:
            raise StopIteration

    res = solver(mrf, rng=0, callback=callback, **options | {"maxiter": 9})
    if len(seen) == 3:
        assert res.message == "stopped by the callback" and res.status == 2
    assert seen and res.fun == seen[-1] and sorted(seen, reverse=True) == seen


def test_the_callback_is_called_with_an_exact_answer():
    seen = []
    for edges in ([(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 0)]):
        res = tf.minimize(tf.GraphMRF(np.eye(3), edges, tf.Potts(1)), callback=seen.append)
        assert seen.pop().fun == res.fun == res.lower_bound and res.message.startswith("exact")


@pytest.mark.parametrize("name", SOLVERS)
def test_solvers_run_on_large_graphs(name):
    solver, options = SOLVERS[name]
    rng = np.random.default_rng(0)
    pairs = np.argwhere(np.triu(np.ones((500, 500)), 1))
    dense = tf.GraphMRF(rng.integers(-9, 9, (500, 2)), pairs, tf.Potts(1), weights=rng.integers(-5, 6, len(pairs)))
    for mrf in (dense, grid_graph((20, 20, 20), 3)):
        x0 = mrf.backend.random_labels(rng)
        res = solver(mrf, x0, rng=0, **options | {"maxiter": 2})
        assert res.fun == mrf.energy(res.x) < mrf.energy(x0)
        assert math.isnan(res.lower_bound) or res.lower_bound <= res.fun


def test_solvers_that_need_lines_refuse_graphs():
    mrf = MODELS["spins"]
    check_raises(lambda: tf.scan_line(mrf), TypeError, "scan_line solves the lines of a grid, got a GraphMRF; use")
    for solver in (tf.minimize, tf.t_icm, tf.t_ils, tf.trw):
        check_raises(lambda solver=solver: solver(mrf, "scan-line"), TypeError, 'x0="scan-line" solves.*a GraphMRF')
