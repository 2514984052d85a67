"""Bad arguments of `minimize`: each raises an error that names it."""

import numpy as np
import pytest

import treefield as tf
from small import CHAIN, MRF, check_raises
from treefield.moves import UniformJump
from treefield.solvers.minimize import METHODS


@pytest.mark.parametrize("mrf", [MRF, CHAIN], ids=["grid", "chain"])
@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"method": "best"}, ValueError, "method must be one of 'auto', 'anneal'.*got 'best'"),
        ({"method": None}, ValueError, "method must be one of"),
        ({"x0": "best"}, ValueError, "x0 must be one of 'random', 'unary', 'scan-line', got 'best'"),
        ({"x0": np.zeros((2, 2), int)}, ValueError, r"x0 has shape \(2, 2\), but the model's is"),
        ({"x0": 0.5}, TypeError, "x0 must be an array of integer labels"),
        ({"maxiter": -1}, ValueError, "maxiter must be at least 0, got -1"),
        ({"maxiter": 2.0}, TypeError, r"maxiter must be an integer, got 2\.0"),
        ({"patience": 0}, ValueError, "patience must be at least 1, got 0"),
        ({"time_limit": -0.1}, ValueError, r"time_limit must be at least 0, got -0\.1"),
        ({"time_limit": "1 s"}, TypeError, "time_limit must be a number"),
        ({"tol": -1e-3}, ValueError, r"tol must be at least 0, got -0\.001"),
        ({"tol": "small"}, TypeError, "tol must be a number, got 'small'"),
        ({"callback": 3}, TypeError, "callback must be a function"),
        ({"rng": -1}, ValueError, "rng must be None, a non-negative integer"),
        ({"rng": "seed"}, TypeError, "rng must be None"),
        ({"threads": 0}, ValueError, "threads must be at least 1, got 0"),
        ({"threads": 1.5}, TypeError, "threads must be an integer"),
        ({"jump": UniformJump()}, TypeError, 'method="auto" takes no jump; name a method that does: method="t_ils"'),
        ({"damping": 0.5}, TypeError, 'method="auto" takes no damping; name a method that does: method="loopy_bp"'),
        ({"speed": 11}, TypeError, "minimize takes no speed; it takes method, x0, time_limit, tol, "),
        ({"seed": 11}, TypeError, r"minimize takes no seed; did you mean rng\? It takes method, x0, time_limit, tol, "),
        ({"max_iter": 11}, TypeError, r"minimize takes no max_iter; did you mean maxiter\?"),
        ({"timeout": 11}, TypeError, r"minimize takes no timeout; did you mean time_limit\?"),
        ({"verbose": True}, TypeError, r"minimize takes no verbose; did you mean progress\?"),
        ({"n_jobs": 2}, TypeError, r"minimize takes no n_jobs; did you mean threads\?"),
        ({"time_limt": 2}, TypeError, r"minimize takes no time_limt; did you mean time_limit\?"),
    ],
)
def test_minimize_refuses_bad_input_on_grids_and_trees(mrf, keywords, error, message):
    check_raises(lambda: tf.minimize(mrf, **keywords), error, message)


@pytest.mark.parametrize(
    ("method", "keywords", "message"),
    [
        ("icm", {"jump": UniformJump()}, "method='icm' takes no jump; it takes x0, "),
        ("tree_bp", {"x0": "random"}, "method='tree_bp' takes no x0; it takes nothing"),
        ("tree_bp", {"rng": 0}, "method='tree_bp' takes no rng"),
        ("scan_line", {"maxiter": 3}, "method='scan_line' takes no maxiter; it takes nu, axis"),
        ("t_icm", {"patience": 3}, "method='t_icm' takes no patience"),
        ("t_ils", {"tol": 0.1}, "method='t_ils' takes no tol"),
        ("t_ils", {"memory_limit": "1 GB"}, "method='t_ils' takes no memory_limit; it takes .*memory, threads"),
        ("trw", {"threads": 2}, "method='trw' takes no threads"),
        ("loopy_bp", {"progres": True}, r"method='loopy_bp' takes no progres; did you mean progress\? It takes x0, "),
        ("t_ils", {"n_jobs": 2}, r"method='t_ils' takes no n_jobs; did you mean threads\?"),
        ("tree_bp", {"seed": 2}, "method='tree_bp' takes no seed; it takes nothing"),
    ],
)
def test_a_keyword_that_a_method_does_not_take_is_a_type_error_that_names_it(method, keywords, message):
    check_raises(lambda: tf.minimize(CHAIN, method=method, **keywords), TypeError, message)


@pytest.mark.parametrize("method", METHODS)
def test_minimize_refuses_an_argument_that_is_not_a_model(method):
    check_raises(lambda: tf.minimize(MRF.unary, method=method), TypeError, "mrf must be a model such as GridMRF")


def test_minimize_refuses_bad_input_before_any_work():
    rng = np.random.default_rng(0)
    for keywords in ({"tol": -1}, {"threads": 0}, {"memory_limit": "much"}, {"x0": "best"}):
        check_raises(lambda keywords=keywords: tf.minimize(MRF, rng=rng, **keywords), ValueError, next(iter(keywords)))
    assert rng.random() == np.random.default_rng(0).random()  # nothing has been drawn
