"""A result as `x0`: its labelling is the start, and its messages that of the dual."""

import pickle

import numpy as np
import pytest

import naive
import treefield as tf
from treefield.solvers.minimize import METHODS

SHAPE = (96, 96)


def unary_costs(seed=0, shape=SHAPE):
    """Two regions under noise: the bound takes dozens of iterations."""
    rng = np.random.default_rng(seed)
    rows, columns = np.indices(shape)
    disc = np.hypot(rows - shape[0] / 2, columns - shape[1] / 3) < shape[0] / 4
    return rng.normal(0, 1, (*shape, 3)) - 0.4 * (disc.astype(int)[..., None] == np.arange(3))


@pytest.fixture(scope="module")
def models():
    """A model, and the same with the costs of one site in a hundred drawn again."""
    unary, rng = unary_costs(), np.random.default_rng(1)
    changed = unary.copy()
    changed[rng.random(SHAPE) < 0.01] = rng.normal(0, 1, 3)
    return tf.GridMRF(unary, tf.Potts(2.0)), tf.GridMRF(changed, tf.Potts(2.0))


@pytest.fixture(scope="module")
def first(models):
    return tf.minimize(models[0], rng=0, tol=1e-4, keep_messages=True)


@pytest.mark.parametrize("method", ["auto", "trw"])
def test_a_changed_model_is_solved_in_a_small_part_of_the_iterations(models, method):
    before, after = models
    first = tf.minimize(before, method=method, rng=0, tol=1e-4, keep_messages=True)
    cold = tf.minimize(after, method=method, rng=0, tol=1e-4)
    warm = tf.minimize(after, first, method=method, rng=0, tol=1e-4)
    assert first.success and cold.success and warm.success and warm.gap <= 1e-4
    assert warm.nit <= 0.34 * cold.nit and warm.trace["energy"][0] == after.energy(first.x)
    assert warm.lower_bound <= cold.fun and cold.lower_bound <= warm.fun


def test_without_messages_only_the_labelling_is_taken(models, first):
    plain = tf.minimize(models[0], rng=0, tol=1e-4)
    assert "messages" not in plain and "messages" in first
    np.testing.assert_array_equal(plain.x, first.x)  # to keep them changes nothing else
    by_result, by_labels = tf.minimize(models[1], plain, rng=0), tf.minimize(models[1], plain.x, rng=0)
    np.testing.assert_array_equal(by_result.x, by_labels.x)
    assert (by_result.nit, by_result.lower_bound) == (by_labels.nit, by_labels.lower_bound)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_same_seed_and_start_give_the_same_answer(models, first, threads):
    again = pickle.loads(pickle.dumps(first))
    one, two = (tf.minimize(models[1], x0, rng=3, maxiter=4, tol=0, threads=threads) for x0 in (first, again))
    np.testing.assert_array_equal(one.x, two.x)
    np.testing.assert_array_equal(one.trace["bound"], two.trace["bound"])


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_the_bound_of_the_first_model_does_not_outlive_its_costs(size):
    """The first model's bound is far above the second's least energy."""
    for seed in range(5):
        high = tf.GridMRF(unary_costs(seed, (3, 4)) + 50.0, tf.Potts(5.0))
        low = tf.GridMRF(size * unary_costs(seed + 10, (3, 4)), tf.Potts(0.5 * size))
        minimum, _ = naive.brute_force(low.unary, naive.explicit_tables((3, 4), 0.5 * size * naive.potts(3)))
        for method in ("auto", "trw"):
            first = tf.trw(high, keep_messages=True, maxiter=20)
            res = tf.minimize(low, first, method=method, rng=0, maxiter=6, tol=0)
            assert first.lower_bound > minimum >= res.lower_bound - 1e-9 * abs(minimum)


def test_messages_of_a_model_with_more_labels_or_edges_are_not_used(first):
    unary = np.concatenate([unary_costs(), np.full((*SHAPE, 1), 9.0)], axis=-1)
    for other in (
        tf.GridMRF(unary, tf.Potts(2.0)),
        tf.GridMRF(unary_costs(), tf.Potts(2.0), connectivity=2),
        tf.GridMRF(unary_costs(), tf.Potts(2.0), periodic=True),
    ):
        res, plain = (tf.minimize(other, x0, rng=0, maxiter=2) for x0 in (first, first.x))
        np.testing.assert_array_equal(res.x, plain.x)
        assert res.lower_bound == plain.lower_bound


def test_a_result_of_another_shape_is_refused_with_both_shapes(first):
    with pytest.raises(ValueError, match=r"x0.*\(96, 96\).*\(10, 96\)"):
        tf.minimize(tf.GridMRF(unary_costs()[:10], tf.Potts(2.0)), first)


@pytest.mark.parametrize("method", [name for name in METHODS if name not in ("scan_line", "tree_bp")])
def test_every_method_starts_from_the_labelling_of_a_result(models, first, method):
    by_result, by_labels = (tf.minimize(models[1], x0, method=method, maxiter=0, rng=0) for x0 in (first, first.x))
    assert by_result.trace["energy"][0] == by_labels.trace["energy"][0] == models[1].energy(first.x)


@pytest.mark.parametrize("method", ["icm", "t_ils", "tree_bp"])
def test_methods_without_messages_take_no_keep_messages(models, method):
    with pytest.raises(TypeError, match="takes no keep_messages"):
        tf.minimize(models[0], method=method, keep_messages=True)


def test_exact_answers_and_searches_without_a_dual_have_no_messages(models):
    chain = tf.GridMRF(unary_costs(0, (1, 9)), tf.Potts(2.0))
    assert "messages" not in tf.minimize(chain, keep_messages=True)
    graph = tf.GraphMRF(np.zeros((3, 2)), [(0, 1), (1, 2), (0, 2)], tf.Potts(1.0))
    assert "messages" not in tf.minimize(graph, keep_messages=True)


def test_a_tiled_model_starts_from_the_labelling_and_keeps_no_messages(models, first):
    tiled = tf.TiledMRF(np.asarray(models[1].unary), tf.Potts(2.0), tile=48)
    assert tf.minimize(tiled, first, rng=0, maxiter=1).fun <= models[1].energy(first.x)
    assert tf.t_icm(tiled, first, rng=0).fun <= models[1].energy(first.x)
    with pytest.raises(ValueError, match="keep_messages is for models in memory"):
        tf.minimize(tiled, keep_messages=True)


def test_a_graph_is_solved_again_in_a_small_part_of_the_iterations(models):
    graphs = []
    for mrf in models:
        edges, weights = mrf.backend.graph_edges()[:2]
        graphs.append(tf.GraphMRF(mrf.unary.reshape(-1, 3), edges, tf.Potts(2.0), weights=weights))
    first, cold = tf.trw(graphs[0], tol=1e-4, keep_messages=True), tf.trw(graphs[1], tol=1e-4)
    warm = tf.trw(graphs[1], first, tol=1e-4)
    assert warm.success and warm.nit <= 0.34 * cold.nit


def test_an_interrupted_search_is_continued_from_its_result(models):
    def stop(res):
        if res.nit == 3:
            raise StopIteration

    half = tf.minimize(models[0], rng=0, callback=stop, keep_messages=True)
    rest = tf.minimize(models[0], half, rng=0)
    assert half.status == tf.Status.STOPPED and rest.trace["bound"][2] >= half.lower_bound - 1e-6 * abs(
        half.lower_bound
    )


def test_applications_pass_a_result_on():
    rng = np.random.default_rng(0)
    image = rng.normal(np.kron([[0.3, 0.6], [0.6, 0.3]], np.ones((40, 40))), 0.3)
    seeds = np.zeros(image.shape, int)
    seeds[5:10, 5:30], seeds[5:10, 50:75] = 1, 2
    _, first = tf.segment(image, seeds, full_output=True, keep_messages=True, rng=0, tol=1e-4)
    seeds[60:65, 50:75] = 1  # another stroke
    regions, warm = tf.segment(image, seeds, full_output=True, x0=first, rng=0, tol=1e-4)
    _, cold = tf.segment(image, seeds, full_output=True, rng=0, tol=1e-4)
    assert warm.success and warm.gap <= 1e-4 and warm.nit <= cold.nit and "messages" not in warm
    assert (regions[60:65, 50:75] == 1).all()
    _, third = tf.segment(image, seeds, full_output=True, x0=first, keep_messages=True, rng=0)
    assert third.messages.layout == first.messages.layout
