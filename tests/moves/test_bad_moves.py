"""Moves and searches that are refused, and in what words."""

import re

import numpy as np
import pytest

import treefield as tf
from small import LABELS, MRF, SHAPE, check_raises
from treefield.moves import (
    Always,
    BetaJump,
    BoxJump,
    Greedy,
    LevyJump,
    Metropolis,
    MixedJump,
    PerComponent,
    SegmentJump,
    UniformJump,
    Unvisited,
)

SEARCHES = {"t_ils": (tf.t_ils, "jump"), "genetic": (tf.genetic, "mutation")}


def id_without_address(value):
    """A test's name: without addresses, which differ from one process to the next."""
    return re.sub(" at 0x[0-9a-f]+", "", str(value))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: UniformJump(0), ValueError, "rho_max.*above 0 and at most 1, got 0"),
        (lambda: UniformJump(2), ValueError, "rho_max.*above 0 and at most 1, got 2"),
        (lambda: UniformJump(-0.1), ValueError, r"rho_max.*got -0\.1"),
        (lambda: UniformJump(np.nan), ValueError, "rho_max.*NaN"),
        (lambda: UniformJump("0.1"), TypeError, r"rho_max must be a number, got '0\.1'"),
        (lambda: UniformJump([0.1]), TypeError, r"rho_max must be a number, got \[0\.1\]"),
        (lambda: UniformJump(None), TypeError, "rho_max must be a number, got None"),
        (lambda: BetaJump(0), ValueError, "a must be above 0, got 0"),
        (lambda: BetaJump(1, -1), ValueError, "b must be above 0, got -1"),
        (lambda: BetaJump(np.inf), ValueError, "a must be finite, got inf"),
        (lambda: BetaJump(rho_max=1.5), ValueError, r"rho_max.*at most 1, got 1\.5"),
        (lambda: LevyJump(0), ValueError, "alpha must be above 0, got 0"),
        (lambda: LevyJump(np.nan), ValueError, "alpha must be finite, got NaN"),
        (lambda: LevyJump(rho_min=0), ValueError, "rho_min.*above 0.*got 0"),
        (lambda: LevyJump(rho_min=0.5, rho_max=0.1), ValueError, r"rho_min.*at most rho_max, got 0\.5 and 0\.1"),
        (lambda: BoxJump("worst"), ValueError, "label must be one of 'best', .*'scramble', got 'worst'"),
        (lambda: BoxJump(size=(5, 3)), ValueError, r"size must ascend, got \(5, 3\)"),
        (lambda: BoxJump(size=(0, 3)), ValueError, r"size\[0\] must be at least 1, got 0"),
        (lambda: BoxJump(size=(1.5, 3)), TypeError, r"size\[0\] must be an integer, got 1\.5"),
        (lambda: BoxJump(size=(1, np.inf)), TypeError, r"size\[1\] must be an integer, got inf"),
        (lambda: BoxJump(size=5), ValueError, "size must be two integers.*got 5"),
        (lambda: BoxJump(size=(1, 2, 3)), ValueError, r"size must be two integers.*got \(1, 2, 3\)"),
        (lambda: BoxJump(size="35"), ValueError, "size must be two integers.*got '35'"),
        (lambda: BoxJump(density=0), ValueError, "density must be above 0, got 0"),
        (lambda: BoxJump(density=np.inf), ValueError, "density must be finite, got inf"),
        (lambda: SegmentJump("best"), ValueError, "label must be one of 'neighbour', 'shift', got 'best'"),
        (lambda: SegmentJump(share=0), ValueError, "share must be above 0 and at most 1, got 0"),
        (lambda: SegmentJump(share=1.1), ValueError, r"share must be above 0 and at most 1, got 1\.1"),
        (lambda: SegmentJump(shift=0), ValueError, "shift must be at least 1, got 0"),
        (lambda: SegmentJump(shift=1.0), TypeError, r"shift must be an integer, got 1\.0"),
        (lambda: MixedJump([]), TypeError, r"jumps must be a list of at least one jump, got \[\]"),
        (lambda: MixedJump(UniformJump()), TypeError, "jumps must be a list.*got UniformJump"),
        (lambda: MixedJump([UniformJump(), BoxJump]), TypeError, r"jumps\[1\] must be a function.*BoxJump"),
        (lambda: MixedJump([None]), TypeError, r"jumps\[0\] must be a function.*got None"),
        (lambda: Metropolis(-1), ValueError, "beta must be at least 0.*got -1"),
        (lambda: Metropolis(np.nan), ValueError, "beta must be a number, got NaN"),
        (lambda: Metropolis("1"), TypeError, "beta must be a number, got '1'"),
        (lambda: PerComponent(Greedy), TypeError, r"rule must be Greedy\(\), .*got .*Greedy"),
        (lambda: PerComponent(PerComponent()), TypeError, r"rule must be .*got PerComponent"),
        (lambda: PerComponent(0.5), TypeError, r"rule must be .*got 0\.5"),
        (lambda: Unvisited(Metropolis), TypeError, r"accept must be an acceptance such as Metropolis\(\).*Metropolis"),
        (lambda: Unvisited(None), TypeError, "accept must be an acceptance.*got None"),
        (lambda: Unvisited(Always(), length=0), ValueError, "length must be at least 1, got 0"),
        (lambda: Unvisited(Always(), length=1e5), TypeError, r"length must be an integer, got 100000\.0"),
    ],
)
def test_a_move_with_a_parameter_out_of_range_is_refused(make, error, message):
    check_raises(make, error, message)


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("jump", [UniformJump, 3, "uniform", [UniformJump()]], ids=id_without_address)
def test_a_jump_that_cannot_be_called_is_refused(search, jump):
    solver, name = SEARCHES[search]
    hint = r"UniformJump; did you mean UniformJump\(\)\?" if jump is UniformJump else ""
    check_raises(
        lambda: solver(MRF, **{name: jump}), TypeError, rf"{name} must be a function of \(x, mrf, rng\).*{hint}"
    )


WRONG = {
    "x itself": (lambda x, mrf, rng: x, "returned x itself"),
    "a view of x": (lambda x, mrf, rng: x[::-1], "returned x itself"),
    "another shape": (
        lambda x, mrf, rng: x[:2].copy(),
        r"shape \(3, 4\), but .* returned int32 array of shape \(2, 4\)",
    ),
    "flat": (lambda x, mrf, rng: x.reshape(-1).copy(), r"shape \(3, 4\), but .* returned int32 array of shape \(12,\)"),
    "floats": (lambda x, mrf, rng: x + 0.0, r"shape \(3, 4\), but .* returned float64 array"),
    "booleans": (lambda x, mrf, rng: x > 0, r"shape \(3, 4\), but .* returned bool array"),
    "None": (lambda x, mrf, rng: None, r"shape \(3, 4\), but .* returned NoneType"),
    "a list": (lambda x, mrf, rng: x.tolist(), r"shape \(3, 4\), but .* returned list"),
    "unknown labels": (lambda x, mrf, rng: x + LABELS, "labels from 3 to [345], expected 0 to 2"),
    "negative labels": (lambda x, mrf, rng: x - 1 - x, "labels from -1 to -1, expected 0 to 2"),
    "labels that int32 does not hold": (lambda x, mrf, rng: x + np.int64(2**32), "labels from .*expected 0 to 2"),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("search", SEARCHES)
def test_a_jump_that_returns_no_new_labelling_is_refused(search, wrong):
    solver, name = SEARCHES[search]
    jump, message = WRONG[wrong]
    x0 = np.random.default_rng(0).integers(LABELS, size=SHAPE)
    before = x0.copy()
    check_raises(lambda: solver(MRF, x0, **{name: jump}, maxiter=3, rng=0), ValueError, message)
    np.testing.assert_array_equal(x0, before)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.uint64])
@pytest.mark.parametrize("search", SEARCHES)
def test_a_jump_may_return_any_integer_dtype_and_memory_order(search, dtype):
    solver, name = SEARCHES[search]
    runs = []
    for convert in (lambda y: y, lambda y: np.asfortranarray(y.astype(dtype))):
        keywords = {name: lambda x, mrf, rng, convert=convert: convert(UniformJump(0.5)(x, mrf, rng))}
        runs.append(solver(MRF, "unary", **keywords, maxiter=5, rng=0).x)
    np.testing.assert_array_equal(*runs)


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"accept": Metropolis}, TypeError, r"accept must be a function.*the class Metropolis; did you mean"),
        ({"accept": "greedy"}, TypeError, "accept must be a function.*'greedy'"),
        ({"accept": Greedy(), "beta": 1}, ValueError, "either beta or accept, not both"),
        ({"beta": -0.5}, ValueError, r"beta must be at least 0.*-0\.5"),
        ({"beta": np.nan}, ValueError, "beta.*NaN"),
        ({"beta": "1"}, TypeError, "beta must be a number, got '1'"),
        ({"local_search": "bp"}, ValueError, "local_search must be one of 't_icm', 'icm', got 'bp'"),
        ({"local_search": None}, ValueError, "local_search must be one of .*got None"),
        ({"local_search": tf.t_icm}, ValueError, "local_search must be one of .*t_icm"),
        ({"local_search": MRF.backend.tree_set(), "restarts": 2}, ValueError, "restarts.*by its name"),
        ({"inner_iter": 0}, ValueError, "inner_iter must be at least 1, got 0"),
        ({"inner_iter": 1.0}, TypeError, r"inner_iter must be an integer, got 1\.0"),
        ({"max_backtracks": 0}, ValueError, "max_backtracks must be at least 1, got 0"),
        ({"max_backtracks": "3"}, TypeError, "max_backtracks must be an integer, got '3'"),
        ({"restarts": 0}, ValueError, "restarts must be at least 1, got 0"),
        ({"restarts": 2.0}, TypeError, r"restarts must be an integer, got 2\.0"),
        ({"restarts": 2, "workers": 0}, ValueError, "workers must be at least 1, got 0"),
        ({"restarts": 2, "workers": 1.5}, TypeError, r"workers must be an integer, got 1\.5"),
        ({"restarts": 2, "checkpoint": 5}, TypeError, "checkpoint must be the path of a file, got 5"),
    ],
    ids=id_without_address,
)
def test_t_ils_refuses_a_parameter_out_of_range(keywords, error, message):
    check_raises(lambda: tf.t_ils(MRF, **keywords), error, message)


@pytest.mark.parametrize("solver", [tf.t_ils, tf.genetic])
@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"x0": "best"}, ValueError, "x0 must be one of 'random', 'unary', 'scan-line', got 'best'"),
        ({"x0": np.zeros((4, 3), int)}, ValueError, r"x0 has shape \(4, 3\), but the model's is \(3, 4\)"),
        ({"x0": np.full(SHAPE, 3)}, ValueError, "x0 holds labels from 3 to 3, expected 0 to 2"),
        ({"maxiter": -1}, ValueError, "maxiter must be at least 0, got -1"),
        ({"maxiter": 3.0}, TypeError, r"maxiter must be an integer, got 3\.0"),
        ({"patience": 0}, ValueError, "patience must be at least 1, got 0"),
        ({"patience": True}, TypeError, "patience must be an integer, got True"),
        ({"time_limit": -0.1}, ValueError, r"time_limit must be at least 0, got -0\.1"),
        ({"time_limit": "1"}, TypeError, "time_limit.*'1'"),
        ({"callback": 3}, TypeError, "callback must be a function.*3"),
        ({"rng": 0.5}, TypeError, r"rng.*0\.5"),
        ({"rng": -1}, ValueError, "rng.*-1"),
        ({"trees": "snakes"}, ValueError, "trees must be one of .*got 'snakes'"),
        ({"order": "reversed"}, ValueError, "order must be one of .*got 'reversed'"),
        ({"bands": 0, "trees": "bands"}, ValueError, "bands must be at least 1, got 0"),
        ({"memory": "none"}, ValueError, "memory must be one of .*got 'none'"),
        ({"threads": 0}, ValueError, "threads must be at least 1, got 0"),
        ({"checkpoint": 5}, TypeError, "checkpoint must be the path of a file, got 5"),
    ],
    ids=id_without_address,
)
def test_searches_refuse_a_keyword_out_of_range(solver, keywords, error, message):
    check_raises(lambda: solver(MRF, **keywords), error, message)


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"population": 1}, ValueError, "population must be at least 2, got 1"),
        ({"population": 4.0}, TypeError, r"population must be an integer, got 4\.0"),
        ({"crossover": "two-point"}, ValueError, "crossover must be one of 'merge', 'site', got 'two-point'"),
        ({"inner_iter": 0}, ValueError, "inner_iter must be at least 1, got 0"),
        ({"inner_iter": None}, TypeError, "inner_iter must be an integer, got None"),
    ],
    ids=id_without_address,
)
def test_genetic_refuses_a_parameter_out_of_range(keywords, error, message):
    check_raises(lambda: tf.genetic(MRF, **keywords), error, message)


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize(
    "mrf", [None, np.zeros((3, 4, 2)), tf.Potts(1), tf.GridMRF], ids=["None", "array", "Potts", "class"]
)
def test_searches_refuse_an_argument_that_is_not_a_model(search, mrf):
    check_raises(lambda: SEARCHES[search][0](mrf), TypeError, "mrf.*GridMRF")


@pytest.mark.parametrize(
    "keywords", [{"jump": UniformJump}, {"beta": -1}, {"trees": "snakes"}, {"restarts": 0}, {"x0": "best"}], ids=str
)
def test_t_ils_refuses_bad_arguments_before_any_work(keywords):
    rng = np.random.default_rng(0)
    check_raises(lambda: tf.t_ils(MRF, rng=rng, **keywords), (TypeError, ValueError), next(iter(keywords)))
    assert rng.random() == np.random.default_rng(0).random()  # nothing has been drawn


METROPOLIS = {"beta": 1.0, "taken": 1, "tried": 2}
MIXED = {"won": [0.0], "spent": [0.0], "uses": [0], "jumps": [None], "last": 0, "kind": "own"}


@pytest.mark.parametrize(
    ("move", "state", "message"),
    [
        (Metropolis(), None, "must be a dict, got None"),
        (Metropolis(), {"beta": 1.0}, "must have the keys beta, taken, tried, got beta"),
        (Metropolis(), METROPOLIS | {"beta": 0}, r"beta = 0 cannot be the state of Metropolis\(\)"),
        (Metropolis(), METROPOLIS | {"beta": "1"}, "beta must be a number"),
        (Metropolis(), METROPOLIS | {"taken": 3}, "taken must be at most tried, got 3 and 2"),
        (Metropolis(), METROPOLIS | {"tried": 2.5}, "tried must be an integer"),
        (Metropolis(2), METROPOLIS, r"beta = 1 cannot be the state of Metropolis\(beta=2\.0\)"),
        (PerComponent(), METROPOLIS, r"there is a state for Greedy\(\), which has no set_state"),
        (Unvisited(Greedy()), {"places": [-1], "accept": None}, "places must be a list of 64-bit hashes"),
        (Unvisited(Greedy()), {"places": [2**64], "accept": None}, "places must be a list of 64-bit hashes"),
        (Unvisited(Greedy(), length=1), {"places": [1, 2], "accept": None}, "at most 1 different hashes, got 2"),
        (Unvisited(Greedy()), {"places": [1, 1], "accept": None}, "different hashes"),
        (Unvisited(Greedy()), {"places": [], "accept": METROPOLIS}, "there is a state for Greedy"),
        (MixedJump([UniformJump()]), MIXED | {"won": []}, "won must be a list of 1 values"),
        (MixedJump([UniformJump()]), MIXED | {"spent": [-1.0]}, "spent must be at least 0"),
        (MixedJump([UniformJump()]), MIXED | {"won": [float("nan")]}, "must be finite"),
        (MixedJump([UniformJump()]), MIXED | {"uses": [0.5]}, "uses must be an integer"),
        (MixedJump([UniformJump()]), MIXED | {"last": 1}, "last must be the number of one of 1 jumps, got 1"),
        (MixedJump([UniformJump()]), MIXED | {"kind": "grid"}, "kind = 'grid' cannot be the state of MixedJump"),
        (MixedJump([UniformJump()]), MIXED | {"jumps": [1]}, "there is a state for UniformJump"),
        (MixedJump(), MIXED, "kind = 'own' cannot be the state of MixedJump"),
    ],
    ids=str,
)
def test_a_move_refuses_a_state_that_it_cannot_have(move, state, message):
    with pytest.raises((ValueError, TypeError), match=message):
        move.set_state(state)
