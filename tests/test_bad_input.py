"""Bad arguments of models and solvers: each raises an error that names it."""

import subprocess
import sys

import numpy as np
import pytest

import treefield as tf
from small import ACROSS, DOWN, EDGES, HUGE, LABELS, MRF, SHAPE, SOLVERS, UNARY, check_raises, model, with_value


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
    check_raises(lambda: model(unary), error, message)


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
    check_raises(lambda: tf.Potts(value), error, "weight")
    check_raises(lambda: tf.TruncatedLinear(value, 1), error, "weight")
    check_raises(lambda: tf.TruncatedQuadratic(value, 1), error, "weight")
    check_raises(lambda: tf.TruncatedLinear(1, value), error, "cutoff")
    check_raises(lambda: tf.TruncatedQuadratic(1, value), error, "cutoff")


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
def test_truncated_costs_refuse_values_that_give_no_distance(truncated, keywords, error, message):
    check_raises(lambda: model(pairwise=truncated(1, **{"cutoff": 2, **keywords})), error, message)


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
def test_a_table_of_the_wrong_shape_or_with_bad_values_is_refused(V, error, message):
    check_raises(lambda: model(pairwise=tf.Table(V)), error, message)


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
    check_raises(lambda: model(pairwise=tf.EdgeTables(tables)), error, message)


@pytest.mark.parametrize(
    ("pairwise", "error", "message"),
    [
        ("potts", TypeError, "pairwise must be Potts.*'potts'"),
        (2.0, TypeError, r"pairwise must be Potts.*2\.0"),
        (np.eye(4), ValueError, r"pairwise has shape \(4, 4\), expected \(3, 3\)"),
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
    check_raises(lambda: tf.GridMRF(UNARY, pairwise), error, message)


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
        ((ACROSS, DOWN), ValueError, r"weights\[0\] has shape \(3, 3\), expected a number or \(2, 4\)"),
        ((1, np.ones(1)), ValueError, r"weights\[1\] has shape \(1,\), expected a number or \(3, 3\)"),
        ((np.nan, 1), ValueError, r"weights\[0\] holds NaN"),
        ((1, with_value(ACROSS, np.inf)), ValueError, r"weights\[1\] holds NaN or infinity"),
    ],
)
def test_weights_of_the_wrong_shape_or_kind_are_refused(weights, error, message):
    check_raises(lambda: model(weights=weights), error, message)


def test_a_negative_weight_on_a_forbidden_pair_is_refused():
    forbidding = tf.Table(with_value(np.eye(3), np.inf))
    check_raises(lambda: model(pairwise=forbidding, weights=(-1, 1)), ValueError, r"negative weight.*\+inf")


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
    check_raises(lambda: MRF.energy(x), error, f"^x .*{message}")
    check_raises(lambda: tf.t_icm(MRF, x), error, f"^x0 .*{message}")
    check_raises(lambda: tf.icm(MRF, x), error, f"^x0 .*{message}")


@pytest.mark.parametrize("solver", [tf.t_icm, tf.icm])
@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"x0": "best"}, ValueError, "x0 must be one of 'random', 'unary', 'scan-line', got 'best'"),
        ({"maxiter": -1}, ValueError, "maxiter must be at least 0, got -1"),
        ({"maxiter": 3.0}, TypeError, r"maxiter must be an integer, got 3\.0"),
        ({"maxiter": True}, TypeError, "maxiter must be an integer, got True"),
        ({"time_limit": -0.1}, ValueError, r"time_limit must be at least 0, got -0\.1"),
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
def test_a_solver_keyword_out_of_range_is_refused(solver, keywords, error, message):
    check_raises(lambda: solver(MRF, **keywords), error, message)


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"trees": "snakes"}, ValueError, "trees must be one of 'bands', .*'combs'.*got 'snakes'"),
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
        ({"trees": "ribbons", "width": 0}, ValueError, "width must be at least 1, got 0"),
        ({"trees": "ribbons", "width": -1}, ValueError, "width must be at least 1, got -1"),
        ({"trees": "ribbons", "width": 1.5}, TypeError, r"width must be an integer, got 1\.5"),
        ({"trees": "ribbons", "width": True}, TypeError, "width must be an integer, got True"),
        ({"trees": "ribbons", "width": "2"}, TypeError, "width must be an integer, got '2'"),
        (
            {"trees": "ribbons", "width": 5},
            ValueError,
            "width=5 is wider than a grid of 3 x 4 sites; the largest width that fits is 4",
        ),
        ({"width": 2}, ValueError, 'width=2 goes with trees="ribbons"'),
        ({"width": 2, "trees": "rows-columns"}, ValueError, "width=2 goes with trees=\"ribbons\".*'rows-columns'"),
        ({"width": 2, "trees": [[0, 1]]}, ValueError, 'width=2 goes with trees="ribbons"'),
        ({"bands": 2, "trees": "ribbons"}, ValueError, "bands=2 goes with trees=\"bands\".*'ribbons'"),
        ({"order": "reversed"}, ValueError, "order must be one of 'fixed', 'random', got 'reversed'"),
        ({"order": "random", "trees": "sites"}, ValueError, 'order=.*trees="sites"'),
        ({"memory": "none"}, ValueError, "memory must be one of 'auto', 'low', got 'none'"),
        ({"memory": "low", "trees": "combs"}, ValueError, "memory=.*trees='combs'"),
        ({"threads": 0}, ValueError, "threads must be at least 1, got 0"),
        ({"threads": 1.5}, TypeError, r"threads must be an integer, got 1\.5"),
    ],
)
def test_an_unknown_or_cyclic_tree_set_of_a_grid_is_refused(keywords, error, message):
    check_raises(lambda: MRF.backend.tree_set(**keywords), error, message)
    check_raises(lambda: tf.t_icm(MRF, **keywords), error, message)


@pytest.mark.parametrize(
    ("shape", "labels", "memory", "width", "largest"),
    [
        ((40, 50), 8, "auto", 7, 6),
        ((100, 100), 2, "auto", 21, 19),
        ((100, 100), 2, "low", 21, 19),
        ((40, 50), 300, "auto", 3, 2),
        ((40, 50), 300, "low", 50, 2),
    ],
)
def test_a_ribbon_with_too_many_states_is_refused_with_the_largest_width_that_fits(
    shape, labels, memory, width, largest
):
    mrf = tf.GridMRF(np.zeros((*shape, labels), np.float32), tf.Potts(1))
    options = {"order": "fixed", "bands": None, "memory": memory, "threads": None}
    message = (
        rf"width={width} needs {labels}\*\*{width} states at each of its steps, more than 1024 MB; "
        f"the largest width that fits is {largest}$"
    )
    check_raises(lambda: mrf.backend.check_tree_set("ribbons", width=width, **options), ValueError, message)
    mrf.backend.check_tree_set("ribbons", width=largest, **options)


@pytest.mark.parametrize(
    ("lattice", "most"), [({"periodic": True}, 3), ({"periodic": (True, False)}, 4), ({"connectivity": 2}, 4)], ids=str
)
def test_a_ribbon_across_a_periodic_axis_leaves_one_line_out(lattice, most):
    mrf = tf.GridMRF(np.zeros((4, 4, 2)), tf.Potts(1), **lattice)
    mrf.backend.tree_set("ribbons", width=most)
    message = f"width={most + 1} is wider than a grid of 4 x 4 sites; the largest width that fits is {most}"
    check_raises(lambda: mrf.backend.tree_set("ribbons", width=most + 1), ValueError, message)


@pytest.mark.parametrize(
    ("mrf", "model"),
    [
        (MRF.to_graph(), "trees of a graph"),
        (model(UNARY, connectivity=2, periodic=True), "trees of a grid with 8 neighbours, periodic along 0 and 1"),
        (model(np.zeros((3, 4, 3, 2)), connectivity=2), "trees of a grid with 26 neighbours"),
    ],
    ids=["graph", "8 neighbours, periodic", "26 neighbours"],
)
def test_models_without_ribbons_refuse_them_and_their_width(mrf, model):
    listed = "'trees', 'random-trees', 'forests', 'random-forests', 'wide', 'sites', or a list"
    for options in ({}, {"width": 2}):
        message = f"{model} must be one of {listed} of site-index arrays, got 'ribbons'$"
        check_raises(lambda options=options: tf.t_icm(mrf, trees="ribbons", **options), ValueError, message)
    message = "width.* goe?s? with (trees=.wide|rows and)"
    check_raises(lambda: tf.t_icm(mrf, trees="trees", width=2), ValueError, message)


@pytest.mark.parametrize("keywords", [{"trees": "snakes"}, {"order": 1}, {"x0": "best"}, {"threads": 0}], ids=str)
def test_solvers_refuse_bad_input_before_any_work(keywords):
    rng = np.random.default_rng(0)
    check_raises(lambda: tf.t_icm(MRF, rng=rng, **keywords), ValueError, next(iter(keywords)))
    assert rng.random() == np.random.default_rng(0).random()  # nothing has been drawn


@pytest.mark.parametrize("text", ["two", "0", "-1", "1.5"])
def test_a_bad_thread_count_in_the_environment_is_refused(monkeypatch, text):
    monkeypatch.setenv("TREEFIELD_NUM_THREADS", text)
    for solver in (tf.t_icm, tf.icm):
        check_raises(lambda solver=solver: solver(MRF), ValueError, f"TREEFIELD_NUM_THREADS.*'{text}'")
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
def test_scan_line_refuses_a_bad_axis_or_factor(keywords, error, message):
    check_raises(lambda: tf.scan_line(MRF, **keywords), error, message)


def test_tree_bp_refuses_a_model_with_a_cycle():
    check_raises(lambda: tf.tree_bp(MRF), ValueError, "without cycles, but this one of 3 x 4 sites has some; use mini")


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("mrf", [None, UNARY, tf.Potts(1), tf.GridMRF], ids=["None", "array", "Potts", "class"])
def test_solvers_refuse_an_argument_that_is_not_a_model(solver, mrf):
    check_raises(lambda: SOLVERS[solver](mrf), TypeError, "mrf.*GridMRF")


BAD_SWEEPS = """
import numpy as np, treefield as tf
mrf = tf.GridMRF(np.random.default_rng(0).random((9, 9, 3)), tf.Potts(0.2))
whole = np.zeros((9, 9), np.int32)
for trees in ("bands", "ribbons", "combs", "sites"):
    for x in (whole[:2, :2].copy(), whole.astype(float), whole + 10**6, whole - 1):
        try:
            mrf.backend.tree_set(trees).sweep(x)
        except (TypeError, ValueError):
            print("refused")
"""


def test_a_sweep_refuses_a_labelling_of_the_wrong_shape_dtype_or_range():
    done = subprocess.run([sys.executable, "-c", BAD_SWEEPS], capture_output=True, text=True)
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-500:]}"
    assert done.stdout.split() == 16 * ["refused"]


@pytest.mark.parametrize("trees", ["bands", "combs", "ribbons"])
def test_a_sweep_changes_the_labelling_it_is_given_or_refuses_it(trees):
    x = np.asfortranarray(np.random.default_rng(0).integers(LABELS, size=SHAPE, dtype=np.int32))
    before = MRF.energy(x)
    try:
        change = MRF.backend.tree_set(trees).sweep(x)
    except ValueError:
        return
    assert change < 0 and MRF.energy(x) == pytest.approx(before + change)


def test_a_weight_too_small_to_forbid_is_refused():
    table = tf.Table(with_value(np.zeros((3, 3)), np.inf))
    check_raises(
        lambda: tf.GridMRF(np.zeros((1, 2, 3)), table, weights=(1, 5e-324)), ValueError, "weight of .*too small"
    )
