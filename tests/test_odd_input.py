"""Odd input that must work, and how a run can be stopped."""

import subprocess
import sys

import numpy as np
import pytest

import treefield as tf
from small import ACROSS, DOWN, LABELS, MRF, SHAPE, SOLVERS, UNARY, model, with_value

READ_ONLY = UNARY.copy()
READ_ONLY.flags.writeable = False
WIDE = np.zeros((6, 8, 6))
WIDE[::2, ::2, ::2] = UNARY
ODD_BYTES = np.frombuffer(bytearray(1 + UNARY.nbytes), offset=1).reshape(UNARY.shape)
ODD_BYTES[...] = UNARY


class Tensor:
    """An array of another library."""

    def __array__(self, dtype=None, copy=None):
        return np.array(UNARY, dtype=dtype)


UNARIES = {
    "list": UNARY.tolist(),
    "Fortran order": np.asfortranarray(UNARY),
    "every second": WIDE[::2, ::2, ::2],
    "backwards": UNARY[::-1, ::-1, ::-1].copy()[::-1, ::-1, ::-1],
    "byte-swapped": UNARY.astype(UNARY.dtype.newbyteorder()),
    "read-only": READ_ONLY,
    "not aligned": ODD_BYTES,
    "array-like": Tensor(),
    "int64": UNARY.astype(np.int64),
    "int8": UNARY.astype(np.int8),
    "float16": UNARY.astype(np.float16),
    "longdouble": UNARY.astype(np.longdouble),
}


@pytest.mark.parametrize("name", UNARIES)
def test_a_unary_may_come_in_any_layout_and_real_dtype(name):
    mrf = model(UNARIES[name], tf.Potts(2))
    np.testing.assert_array_equal(mrf.unary, UNARY)
    x = np.random.default_rng(1).integers(LABELS, size=SHAPE)
    assert mrf.energy(x) == MRF.energy(x)
    if mrf.unary.dtype == UNARY.dtype:  # the others would each compile
        np.testing.assert_array_equal(tf.t_icm(mrf, x).x, tf.t_icm(MRF, x).x)


def test_a_boolean_unary_costs_nothing_or_one():
    mrf = model(UNARY > 4, tf.Potts(2))
    assert mrf.energy(np.zeros(SHAPE, int)) == np.count_nonzero(UNARY[..., 0] > 4)


@pytest.mark.parametrize("dtype", ["int8", "uint8", ">i2", "uint64", "int64", "bool", list])
def test_a_labelling_may_be_a_list_or_of_any_integer_dtype(dtype):
    x0 = np.random.default_rng(1).integers(2, size=SHAPE)
    odd = x0.tolist() if dtype is list else x0.astype(dtype)
    assert MRF.energy(odd) == MRF.energy(x0)
    for solver in (tf.t_icm, tf.icm):
        start = solver(MRF, odd, maxiter=0).x
        assert start.dtype == np.int32
        np.testing.assert_array_equal(start, x0)


def test_numpy_scalars_are_accepted_as_numbers():
    x = np.random.default_rng(1).integers(LABELS, size=SHAPE)
    for one, two in [(np.int8(1), np.uint64(2)), (np.float16(1), np.float32(2)), (np.array(1), np.array(2.0))]:
        pairwise = tf.TruncatedQuadratic(two, one, values=(one - 1, one, one + 1))
        plain = tf.TruncatedQuadratic(2, 1, values=[0, 1, 2])
        assert model(pairwise=pairwise, weights=(one, two)).energy(x) == model(pairwise=plain, weights=(1, 2)).energy(x)
    res = tf.t_icm(MRF, maxiter=np.int64(1), time_limit=np.float32(60), rng=np.uint8(7), threads=np.int16(1))
    np.testing.assert_array_equal(res.x, tf.t_icm(MRF, maxiter=1, rng=7).x)
    np.testing.assert_array_equal(tf.scan_line(MRF, np.float32(0.5), np.int8(0)).x, tf.scan_line(MRF, 0.5, 0).x)


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 1, 3), (3, 4, 1), (1, 1, 1, 3), (1, 4, 1, 3)])
def test_solvers_accept_one_site_one_label_and_axes_of_length_one(shape):
    unary = np.random.default_rng(0).random(shape)
    mrf = tf.GridMRF(unary, tf.Potts(0))
    for name, solver in SOLVERS.items():
        res = solver(mrf)
        assert res.status in (tf.Status.CONVERGED, tf.Status.LIMIT), name
        assert res.fun == mrf.energy(res.x) == pytest.approx(unary.min(axis=-1).sum())


@pytest.mark.parametrize("weight", [1e30, 1e300])
def test_huge_weights_make_all_labels_equal(weight):
    mrf = tf.GridMRF(UNARY[:1], tf.Potts(weight))
    assert tf.tree_bp(mrf).fun == UNARY[0].sum(axis=0).min()
    res = tf.t_icm(mrf, rng=0)
    assert res.fun == mrf.energy(res.x) == UNARY[0].sum(axis=0).min()


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_model_that_forbids_everything_is_reported(solver):
    mrf = tf.GridMRF(np.full((1, 4, 3), np.inf), tf.Potts(2))
    res = SOLVERS[solver](mrf)
    assert res.fun == np.inf == mrf.energy(res.x)
    assert not res.success and res.status == 4
    assert "infinite" in res.message and "4 forbidden" in res.message


@pytest.mark.parametrize("weight", [1.0, np.nextafter(1 / 16, 0), 1e-290, 1e300])
def test_a_forbidden_pair_is_forbidden_whatever_its_weight(weight):
    mrf = tf.GridMRF(np.zeros((1, 2, 3)), tf.Table(with_value(np.zeros((3, 3)), np.inf)), weights=(1, weight))
    assert mrf.energy([[2, 2]]) == np.inf
    assert mrf.energy([[2, 1]]) == 0


def test_a_forbidden_label_leaves_the_other_costs_alone():
    forbidding = np.zeros((1, 2, 3))
    forbidding[0, 0, 0] = np.inf
    distances = 1e6 * (1 - np.eye(3))
    assert tf.GridMRF(forbidding, tf.Table(distances), weights=(0, 1e-6)).energy([[1, 2]]) == pytest.approx(1)
    tables = [np.zeros((0, 2, 3, 3)), distances[None, None]]
    assert tf.GridMRF(forbidding, tf.EdgeTables(tables), weights=(0, 1e-6)).energy([[1, 2]]) == pytest.approx(1)


def test_a_forbidden_label_is_never_the_cheaper_one():
    unary = np.zeros((1, 6, 3), np.float32)
    unary[..., 1:] = 2e38  # near the end of float32
    unary[0, 0, 0] = np.inf
    mrf = tf.GridMRF(unary, tf.Potts(3e39))
    assert tf.t_icm(mrf, np.ones((1, 6), int)).success
    assert tf.tree_bp(mrf).success


def test_scan_line_obeys_what_is_forbidden_even_with_little_of_the_unary():
    unary = np.full((1, 2, 3), np.inf)
    unary[0, 0, 0] = unary[0, 1, 1] = 0
    mrf = tf.GridMRF(unary, tf.Potts(1))
    for nu in (1, 0.4, 1e-6, 1e-300, 0):
        assert tf.scan_line(mrf, nu).x.tolist() == [[0, 1]]


def test_solvers_never_change_the_given_arrays():
    unary, x0 = with_value(UNARY, np.inf), np.random.default_rng(1).integers(LABELS, size=SHAPE, dtype=np.int32)
    given = [unary, x0, DOWN.copy(), 0 * ACROSS, np.eye(3)]
    before = [array.copy() for array in given]
    trees = [np.array([5, 4, 0], np.int64)]
    mrf = tf.GridMRF(unary, tf.Potts(2), weights=given[2:4])
    table = tf.Table(given[4])
    assert mrf.energy(x0) >= 0 and table.table(3).sum() == 3
    for run in (tf.t_icm, tf.icm):
        assert run(mrf, x0).x is not x0
    tf.t_icm(mrf, x0, trees=trees)
    tf.t_icm(mrf, x0, memory="low")
    tf.tree_bp(mrf)
    tf.scan_line(mrf, 0.5)
    for array, copy in zip([*given, trees[0]], [*before, [5, 4, 0]], strict=True):
        np.testing.assert_array_equal(array, copy)


# --- stopping -------------------------------------------------------------------------------------------------------

LARGE = tf.GridMRF(np.random.default_rng(0).random((40, 50, 3)), tf.Potts(0.4))


@pytest.mark.parametrize("solver", [tf.t_icm, tf.icm])
def test_no_iterations_return_the_start(solver):
    x0 = np.random.default_rng(1).integers(3, size=LARGE.shape)
    res = solver(LARGE, x0, maxiter=0)
    np.testing.assert_array_equal(res.x, x0)
    assert res.nit == 0 and res.status == tf.Status.LIMIT and len(res.trace) == 1
    assert res.fun == LARGE.energy(x0) and "maxiter" in res.message


@pytest.mark.parametrize("solver", [tf.t_icm, tf.icm])
def test_without_time_one_iteration_is_made(solver):
    x0 = np.random.default_rng(1).integers(3, size=LARGE.shape)
    res = solver(LARGE, x0, time_limit=0)
    assert res.nit == 1 and res.status == tf.Status.LIMIT and "time_limit" in res.message
    assert res.fun == LARGE.energy(res.x) < LARGE.energy(x0)


@pytest.mark.parametrize("solver", [tf.t_icm, tf.icm])
@pytest.mark.parametrize(
    ("error", "status"), [(StopIteration, tf.Status.STOPPED), (KeyboardInterrupt, tf.Status.INTERRUPTED)]
)
def test_the_callback_can_stop_every_solver(solver, error, status):
    def callback(intermediate_result):
        assert intermediate_result.nit <= 2
        if intermediate_result.nit == 2:
            raise error

    res = solver(LARGE, rng=0, callback=callback)
    assert res.nit == 2 and res.status == status and not res.success
    assert ("callback" if error is StopIteration else "interrupted") in res.message
    np.testing.assert_array_equal(res.x, solver(LARGE, rng=0, maxiter=2).x)
    assert res.fun == LARGE.energy(res.x) == res.trace["energy"][-1]


def test_an_error_in_the_callback_reaches_the_caller():
    with pytest.raises(ZeroDivisionError):
        tf.t_icm(LARGE, rng=0, callback=lambda intermediate_result: 1 / 0)


INTERRUPTED = """
import os, signal, threading, time
import numpy as np, treefield as tf

mrf = tf.GridMRF(np.random.default_rng(0).random((300, 400, 3)), tf.Potts(0.4))
keywords = dict(trees="alternating", threads=2, rng=0)
seconds = np.diff(tf.t_icm(mrf, maxiter=3, **keywords).trace["seconds"]).min()

for delay in np.linspace(0, seconds, 40):  # anywhere in the second sweep, which is far from the last
    def callback(intermediate_result):
        if intermediate_result.nit == 1:
            threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT)).start()

    res = tf.t_icm(mrf, callback=callback, **keywords)
    found = res.x.copy()
    time.sleep(0.01)
    assert (res.x == found).all(), "the labelling still changes"
    assert res.fun == mrf.energy(res.x) <= res.trace["energy"][1], (res.fun, mrf.energy(res.x))
    assert (res.success, res.status) == (False, tf.Status.INTERRUPTED)
    assert res.message.startswith("interrupted"), res.message
"""


def test_ctrl_c_returns_the_best_labelling_so_far():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
