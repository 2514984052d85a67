"""What is refused, in what words; what looks odd and must just work; and how a run can be stopped."""

import subprocess
import sys

import numpy as np
import pytest

import treefield as tf

SHAPE, LABELS = (3, 4), 3
UNARY = np.random.default_rng(0).integers(0, 9, (*SHAPE, LABELS)).astype(np.float64)
DOWN, ACROSS = np.ones((2, 4)), np.ones((3, 3))
EDGES = [np.zeros((2, 4, 3, 3)), np.zeros((3, 3, 3, 3))]
HUGE = 10**400  # an integer that no float holds
MRF = tf.GridMRF(UNARY, tf.Potts(2))  # has cycles
CHAIN = tf.GridMRF(UNARY[:1], tf.Potts(2))  # has none
SOLVERS = {"t_icm": tf.t_icm, "icm": tf.icm, "scan_line": tf.scan_line, "tree_bp": tf.tree_bp}


def refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def with_value(array, value):
    """A float copy with one entry replaced."""
    array = np.array(array, float)
    array.flat[-1] = value
    return array


def model(unary=UNARY, pairwise=None, **keywords):
    return tf.GridMRF(unary, tf.Potts(1) if pairwise is None else pairwise, **keywords)


# --- refusals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unary", "error", "message"),
    [
        (None, TypeError, "unary.*object"),
        ("costs", TypeError, "unary.*real numbers"),
        (np.zeros((3, 4, 2), complex), TypeError, "unary.*complex128"),
        (np.zeros((3, 4, 2), object), TypeError, "unary.*object"),
        (np.zeros((3, 4, 2), "M8[s]"), TypeError, r"unary.*datetime64\[s\]"),
        ([[[1, 2], [3]]], TypeError, "unary.*rows differ"),
        (1.0, ValueError, r"unary has shape \(\), expected \(M, N, labels\)"),
        (np.zeros((4, 2)), ValueError, r"unary has shape \(4, 2\), expected \(M, N, labels\).*\(1, N, L\)"),
        (np.zeros((1, 1, 1, 4, 2)), ValueError, r"unary has shape \(1, 1, 1, 4, 2\), expected \(M, N, labels\)"),
        (np.zeros((0, 4, 2)), ValueError, r"unary has shape \(0, 4, 2\).*at least one site"),
        (np.zeros((3, 4, 0)), ValueError, r"unary has shape \(3, 4, 0\).*one label"),
        (with_value(UNARY, np.nan), ValueError, "unary holds NaN"),
        (with_value(UNARY, -np.inf), ValueError, "unary holds -inf"),
        (np.full((3, 4, 2), 2**53 + 1), ValueError, r"unary.*9007199254740993.*2\*\*53"),
        (np.full((3, 4, 2), 2**63, np.uint64), ValueError, r"unary.*2\*\*53"),
    ],
)
def test_a_unary_that_is_no_array_of_costs_is_refused(unary, error, message):
    refused(lambda: model(unary), error, message)


SCALARS = [
    (None, TypeError),
    ("3", TypeError),
    (b"3", TypeError),
    (True, TypeError),
    (1j, TypeError),
    (np.complex128(1), TypeError),
    ([1.0], TypeError),
    (np.ones(1), TypeError),
    (np.array(None), TypeError),
    (np.nan, ValueError),
    (-np.inf, ValueError),
    (HUGE, ValueError),
]


@pytest.mark.parametrize(("value", "error"), SCALARS, ids=[repr(value)[:20] for value, _ in SCALARS])
def test_a_weight_or_cutoff_that_is_no_number_is_refused(value, error):
    refused(lambda: tf.Potts(value), error, "weight")
    refused(lambda: tf.TruncatedLinear(value, 1), error, "weight")
    refused(lambda: tf.TruncatedQuadratic(value, 1), error, "weight")
    refused(lambda: tf.TruncatedLinear(1, value), error, "cutoff")
    refused(lambda: tf.TruncatedQuadratic(1, value), error, "cutoff")


@pytest.mark.parametrize("truncated", [tf.TruncatedLinear, tf.TruncatedQuadratic])
@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"cutoff": -0.5}, ValueError, r"cutoff must be at least 0.*-0\.5"),
        ({"values": [0, np.nan, 2]}, ValueError, "values.*finite"),
        ({"values": [0, np.inf, 2]}, ValueError, "values.*finite"),
        ({"values": [[0, 1, 2]]}, ValueError, r"values.*1-D.*\(1, 3\)"),
        ({"values": 2}, ValueError, r"values.*1-D.*\(\)"),
        ({"values": "abc"}, TypeError, "values.*real numbers"),
        ({"values": [0, 1j, 2]}, TypeError, "values.*complex128"),
        ({"values": [0, [1, 2]]}, TypeError, "values.*rows differ"),
        ({"values": [0, 1]}, ValueError, "values has 2 positions.*3 labels"),
    ],
)
def test_truncated_costs_refuse_what_gives_no_distance(truncated, keywords, error, message):
    refused(lambda: model(pairwise=truncated(1, **{"cutoff": 2, **keywords})), error, message)


@pytest.mark.parametrize(
    ("V", "error", "message"),
    [
        (None, TypeError, "V.*object"),
        ("table", TypeError, "V.*real numbers"),
        (np.zeros((3, 3), complex), TypeError, "V.*complex128"),
        ([[1, 2], [3]], TypeError, "V.*rows differ"),
        (3.0, ValueError, r"V must be a square table.*\(\)"),
        (np.zeros((3, 2)), ValueError, r"V must be a square table.*\(3, 2\)"),
        (np.zeros((0, 0)), ValueError, r"V must be a square table.*\(0, 0\)"),
        (with_value(np.eye(3), np.nan), ValueError, "V holds NaN"),
        (with_value(np.eye(3), -np.inf), ValueError, "V holds -inf"),
        (np.full((3, 3), 2**53 + 1), ValueError, r"V.*2\*\*53"),
        (np.eye(2), ValueError, r"3 labels.*table is \(2, 2\)"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(V, error, message):
    refused(lambda: model(pairwise=tf.Table(V)), error, message)


@pytest.mark.parametrize(
    ("tables", "error", "message"),
    [
        (None, TypeError, "tables"),
        (3, TypeError, "tables"),
        (["ab", "cd"], TypeError, r"tables\[0\].*real numbers"),
        (EDGES[:1], ValueError, "1 arrays.*2 axes"),
        (EDGES[::-1], ValueError, r"tables\[0\] has shape \(3, 3, 3, 3\), expected \(2, 4, 3, 3\)"),
        ([EDGES[0], EDGES[1][..., :2]], ValueError, r"tables\[1\] has shape \(3, 3, 3, 2\), expected \(3, 3, 3, 3\)"),
        ([EDGES[0], with_value(EDGES[1], np.nan)], ValueError, r"tables\[1\] holds NaN"),
        ([with_value(EDGES[0], -np.inf), EDGES[1]], ValueError, r"tables\[0\] holds -inf"),
        ([EDGES[0], np.full((3, 3, 3, 3), 2**60)], ValueError, r"tables.*2\*\*53"),
    ],
)
def test_edge_tables_that_do_not_fit_are_refused(tables, error, message):
    refused(lambda: model(pairwise=tf.EdgeTables(tables)), error, message)


@pytest.mark.parametrize(
    ("pairwise", "error", "message"),
    [
        ("potts", TypeError, "pairwise must be Potts.*'potts'"),
        (2.0, TypeError, r"pairwise must be Potts.*2\.0"),
        (np.eye(3), TypeError, r"(?s)pairwise must be.*did you mean Table\(V\)"),
        (tf.Potts, TypeError, "pairwise must be"),
        (lambda a, b: "three", TypeError, "pairwise function.*'three'"),
        (lambda a, b: "3", TypeError, "pairwise function.*'3'"),
        (lambda a, b: None, TypeError, "pairwise function.*None"),
        (lambda a, b: 1j, TypeError, "pairwise function.*1j"),
        (lambda a, b: np.complex128(1), TypeError, "pairwise function"),
        (lambda a, b: [a, b], TypeError, r"pairwise function.*\[0, 0\]"),
        (lambda a, b: np.nan if a < b else 0, ValueError, "pairwise function.*NaN"),
        (lambda a, b: -np.inf, ValueError, "pairwise function.*-inf"),
        (lambda a, b: HUGE, ValueError, "pairwise function"),
    ],
)
def test_a_pairwise_that_gives_no_costs_is_refused(pairwise, error, message):
    refused(lambda: tf.GridMRF(UNARY, pairwise), error, message)


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        (2.0, TypeError, r"weights is 2\.0.*per axis.*\(2, 4\), \(3, 3\)"),
        (np.array(2.0), TypeError, "weights.*per axis"),
        ("ab", TypeError, "weights is 'ab'.*per axis"),
        ({0: 5.0, 1: 7.0}, TypeError, "weights.*per axis"),
        ((None, 1), TypeError, r"weights\[0\].*object"),
        ((1, ACROSS * 1j), TypeError, r"weights\[1\].*complex128"),
        (([[1], [1, 2]], 1), TypeError, r"weights\[0\].*rows differ"),
        ((), ValueError, "weights has 0 entries.*per axis"),
        ((1, 2, 3), ValueError, "weights has 3 entries.*per axis"),
        ((ACROSS, DOWN), ValueError, r"weights\[0\] has shape \(3, 3\), expected \(2, 4\)"),
        ((1, np.ones(1)), ValueError, r"weights\[1\] has shape \(1,\), expected \(3, 3\)"),
        ((np.nan, 1), ValueError, r"weights\[0\] holds NaN"),
        ((1, with_value(ACROSS, np.inf)), ValueError, r"weights\[1\] holds NaN or infinity"),
    ],
)
def test_weights_of_the_wrong_shape_or_kind_are_refused(weights, error, message):
    refused(lambda: model(weights=weights), error, message)


def test_a_negative_weight_on_a_forbidden_pair_is_refused():
    forbidding = tf.Table(with_value(np.eye(3), np.inf))
    refused(lambda: model(pairwise=forbidding, weights=(-1, 1)), ValueError, r"negative weight.*\+inf")


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (np.zeros(SHAPE), TypeError, r"integer labels, got dtype float64; .*astype\(int\)"),
        (np.zeros(SHAPE, object), TypeError, "integer labels, got dtype object"),
        ([[0, 1], [2]], TypeError, "rows differ"),
        (0, ValueError, r"shape \(\), but the model's is \(3, 4\)"),
        (np.zeros((4, 3), int), ValueError, r"shape \(4, 3\), but the model's is \(3, 4\)"),
        (np.zeros(12, int), ValueError, r"shape \(12,\), but the model's is \(3, 4\)"),
        (np.full(SHAPE, 3), ValueError, "labels from 3 to 3, expected 0 to 2"),
        (np.full(SHAPE, -1), ValueError, "labels from -1 to -1, expected 0 to 2"),
        (np.full(SHAPE, 2**32), ValueError, "labels from 4294967296 .*expected 0 to 2"),
    ],
)
def test_a_labelling_of_another_shape_or_with_unknown_labels_is_refused(x, error, message):
    refused(lambda: MRF.energy(x), error, f"^x .*{message}")
    refused(lambda: tf.t_icm(MRF, x), error, f"^x0 .*{message}")
    refused(lambda: tf.icm(MRF, x), error, f"^x0 .*{message}")


@pytest.mark.parametrize("solver", [tf.t_icm, tf.icm])
@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"x0": "best"}, ValueError, "x0 must be one of 'random', 'unary', 'scan-line', got 'best'"),
        ({"maxiter": -1}, ValueError, "maxiter must be at least 0, got -1"),
        ({"maxiter": 3.0}, TypeError, r"maxiter must be an integer, got 3\.0"),
        ({"maxiter": True}, TypeError, "maxiter must be an integer, got True"),
        ({"time_limit": -0.1}, ValueError, r"time_limit must be at least 0 seconds, got -0\.1"),
        ({"time_limit": np.nan}, ValueError, "time_limit.*NaN"),
        ({"time_limit": "1"}, TypeError, "time_limit.*'1'"),
        ({"time_limit": [1]}, TypeError, r"time_limit.*\[1\]"),
        ({"callback": 3}, TypeError, "callback must be a function.*3"),
        ({"rng": -1}, ValueError, "rng.*-1"),
        ({"rng": 0.5}, TypeError, r"rng.*0\.5"),
        ({"rng": "seed"}, TypeError, "rng.*'seed'"),
        ({"rng": np.random}, TypeError, "rng.*module"),
    ],
)
def test_a_keyword_out_of_range_is_refused(solver, keywords, error, message):
    refused(lambda: solver(MRF, **keywords), error, message)


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"trees": "snakes"}, ValueError, "trees must be one of 'bands', .*'combs'.*got 'snakes'"),
        ({"trees": None}, TypeError, "trees must be a name or a list.*NoneType"),
        ({"trees": 3}, TypeError, "trees must be a name or a list.*int"),
        ({"trees": np.arange(3)}, TypeError, "trees must be.*one tree is a list of one array"),
        ({"trees": []}, ValueError, "trees is an empty list"),
        ({"trees": [[0, 1], []]}, ValueError, r"trees\[1\].*non-empty"),
        ({"trees": [[0, 1], [0.0, 1.0]]}, ValueError, r"trees\[1\].*float64"),
        ({"trees": [[True, False]]}, ValueError, r"trees\[0\].*bool"),
        ({"trees": [[[0, 1], [2, 3]]]}, ValueError, r"trees\[0\].*1-D.*\(2, 2\)"),
        ({"trees": [[0, [1, 2]]]}, (TypeError, ValueError), r"trees\[0\]"),
        ({"trees": [[0, 12]]}, ValueError, r"trees\[0\] names sites 0 to 12.*sites 0 to 11"),
        ({"trees": [[-1, 0]]}, ValueError, r"trees\[0\] names sites -1 to 0"),
        ({"trees": [[0, 1, 1]]}, ValueError, r"trees\[0\] names a site twice"),
        ({"trees": [[0, 1], [0, 1, 4, 5]]}, ValueError, r"trees\[1\] has a cycle"),
        ({"bands": 0}, ValueError, "bands must be at least 1, got 0"),
        ({"bands": 2.0}, TypeError, r"bands must be an integer, got 2\.0"),
        ({"bands": 2, "trees": "combs"}, ValueError, "bands=2 goes with trees=\"bands\".*'combs'"),
        ({"bands": 2, "trees": [[0, 1]]}, ValueError, 'bands=2 goes with trees="bands"'),
        ({"order": "reversed"}, ValueError, "order must be one of 'fixed', 'random', got 'reversed'"),
        ({"order": "random", "trees": "sites"}, ValueError, 'order=.*trees="sites"'),
        ({"memory": "none"}, ValueError, "memory must be one of 'auto', 'low', got 'none'"),
        ({"memory": "low", "trees": "combs"}, ValueError, "memory=.*trees='combs'"),
        ({"threads": 0}, ValueError, "threads must be at least 1, got 0"),
        ({"threads": 1.5}, TypeError, r"threads must be an integer, got 1\.5"),
    ],
)
def test_trees_that_are_none_are_refused(keywords, error, message):
    refused(lambda: MRF.tree_set(**keywords), error, message)
    refused(lambda: tf.t_icm(MRF, **keywords), error, message)


@pytest.mark.parametrize("keywords", [{"trees": "snakes"}, {"order": 1}, {"x0": "best"}, {"threads": 0}], ids=str)
def test_a_refusal_comes_before_any_work(keywords):
    rng = np.random.default_rng(0)
    refused(lambda: tf.t_icm(MRF, rng=rng, **keywords), ValueError, next(iter(keywords)))
    assert rng.random() == np.random.default_rng(0).random()  # nothing has been drawn


@pytest.mark.parametrize("text", ["two", "0", "-1", "1.5"])
def test_a_thread_count_from_the_environment_that_is_none_is_refused(monkeypatch, text):
    monkeypatch.setenv("TREEFIELD_NUM_THREADS", text)
    for solver in (tf.t_icm, tf.icm):
        refused(lambda solver=solver: solver(MRF), ValueError, f"TREEFIELD_NUM_THREADS.*'{text}'")
    assert tf.t_icm(MRF, threads=1, maxiter=0).nit == 0  # the argument goes before the environment


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"nu": -0.1}, ValueError, r"nu must be between 0 and 1, got -0\.1"),
        ({"nu": 1.5}, ValueError, r"nu must be between 0 and 1, got 1\.5"),
        ({"nu": np.nan}, ValueError, "nu must be finite"),
        ({"nu": "1"}, TypeError, "nu must be a number, got '1'"),
        ({"axis": 2}, ValueError, "axis must be between -2 and 1, got 2"),
        ({"axis": -3}, ValueError, "axis must be .*-2.*, got -3"),
        ({"axis": 0.5}, TypeError, r"axis must be an integer, got 0\.5"),
    ],
)
def test_scan_line_refuses_an_axis_or_factor_that_is_none(keywords, error, message):
    refused(lambda: tf.scan_line(MRF, **keywords), error, message)


def test_tree_bp_refuses_a_model_with_a_cycle():
    refused(lambda: tf.tree_bp(MRF), ValueError, "without cycles, but the 3 x 4 grid has some; use t_icm")


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("mrf", [None, UNARY, tf.Potts(1), tf.GridMRF], ids=["None", "array", "Potts", "class"])
def test_what_is_no_model_is_refused(solver, mrf):
    refused(lambda: SOLVERS[solver](mrf), TypeError, "mrf.*GridMRF")


BAD_SWEEPS = """
import numpy as np, treefield as tf
mrf = tf.GridMRF(np.random.default_rng(0).random((9, 9, 3)), tf.Potts(0.2))
whole = np.zeros((9, 9), np.int32)
for trees in ("bands", "combs", "sites"):
    for x in (whole[:2, :2].copy(), whole.astype(float), whole + 10**6, whole - 1):
        try:
            mrf.tree_set(trees).sweep(x)
        except (TypeError, ValueError):
            print("refused")
"""


def test_a_sweep_refuses_a_labelling_that_does_not_fit():
    done = subprocess.run([sys.executable, "-c", BAD_SWEEPS], capture_output=True, text=True)
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-500:]}"
    assert done.stdout.split() == 12 * ["refused"]


@pytest.mark.parametrize("trees", ["bands", "combs"])
def test_a_sweep_changes_the_labelling_it_is_given_or_refuses_it(trees):
    x = np.asfortranarray(np.random.default_rng(0).integers(LABELS, size=SHAPE, dtype=np.int32))
    before = MRF.energy(x)
    try:
        change = MRF.tree_set(trees).sweep(x)
    except ValueError:
        return
    assert change < 0 and MRF.energy(x) == pytest.approx(before + change)


# --- odd, and welcome -----------------------------------------------------------------------------------------------

READ_ONLY = UNARY.copy()
READ_ONLY.flags.writeable = False
WIDE = np.zeros((6, 8, 6))
WIDE[::2, ::2, ::2] = UNARY
ODD_BYTES = np.frombuffer(bytearray(1 + UNARY.nbytes), offset=1).reshape(UNARY.shape)
ODD_BYTES[...] = UNARY


class Tensor:
    """What other array libraries give."""

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


def test_numpy_scalars_are_numbers():
    x = np.random.default_rng(1).integers(LABELS, size=SHAPE)
    for one, two in [(np.int8(1), np.uint64(2)), (np.float16(1), np.float32(2)), (np.array(1), np.array(2.0))]:
        pairwise = tf.TruncatedQuadratic(two, one, values=(one - 1, one, one + 1))
        plain = tf.TruncatedQuadratic(2, 1, values=[0, 1, 2])
        assert model(pairwise=pairwise, weights=(one, two)).energy(x) == model(pairwise=plain, weights=(1, 2)).energy(x)
    res = tf.t_icm(MRF, maxiter=np.int64(1), time_limit=np.float32(60), rng=np.uint8(7), threads=np.int16(1))
    np.testing.assert_array_equal(res.x, tf.t_icm(MRF, maxiter=1, rng=7).x)
    np.testing.assert_array_equal(tf.scan_line(MRF, np.float32(0.5), np.int8(0)).x, tf.scan_line(MRF, 0.5, 0).x)


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 1, 3), (3, 4, 1), (1, 1, 1, 3), (1, 4, 1, 3)])
def test_one_site_one_label_and_axes_of_length_one(shape):
    unary = np.random.default_rng(0).random(shape)
    mrf = tf.GridMRF(unary, tf.Potts(0))
    for name, solver in SOLVERS.items():
        res = solver(mrf)
        assert res.success, name
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
    assert not res.success and res.status == 5
    assert "infinite" in res.message and "4 forbidden" in res.message


@pytest.mark.parametrize("weight", [1.0, np.nextafter(1 / 16, 0), 1e-290, 1e300])
def test_a_forbidden_pair_is_forbidden_whatever_its_weight(weight):
    mrf = tf.GridMRF(np.zeros((1, 2, 3)), tf.Table(with_value(np.zeros((3, 3)), np.inf)), weights=(1, weight))
    assert mrf.energy([[2, 2]]) == np.inf
    assert mrf.energy([[2, 1]]) == 0


def test_a_weight_too_small_to_forbid_is_refused():
    table = tf.Table(with_value(np.zeros((3, 3)), np.inf))
    refused(lambda: tf.GridMRF(np.zeros((1, 2, 3)), table, weights=(1, 5e-324)), ValueError, "weight of .*too small")


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


def test_what_the_user_gave_is_never_changed():
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
@pytest.mark.parametrize("limits", [{"maxiter": 0}, {"time_limit": 0}], ids=["maxiter", "time_limit"])
def test_a_limit_of_zero_returns_the_start(solver, limits):
    x0 = np.random.default_rng(1).integers(3, size=LARGE.shape)
    res = solver(LARGE, x0, **limits)
    np.testing.assert_array_equal(res.x, x0)
    assert res.nit == 0 and res.status == (1 if "maxiter" in limits else 2) and len(res.trace) == 1
    assert res.fun == LARGE.energy(x0) and next(iter(limits)) in res.message


@pytest.mark.parametrize("solver", [tf.t_icm, tf.icm])
@pytest.mark.parametrize(("error", "status"), [(StopIteration, 3), (KeyboardInterrupt, 4)])
def test_the_callback_can_stop_the_run(solver, error, status):
    def callback(intermediate_result):
        assert intermediate_result.nit <= 2
        if intermediate_result.nit == 2:
            raise error

    res = solver(LARGE, rng=0, callback=callback)
    assert res.nit == 2 and res.status == status and res.success == (error is StopIteration)
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
    assert (res.success, res.status) == (False, 4) and res.message.startswith("interrupted"), res.message
"""


def test_ctrl_c_returns_the_best_labelling_so_far():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
