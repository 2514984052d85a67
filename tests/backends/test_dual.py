"""The fast TRW-S against the slow one, where its bound must reach the minimum, and how it is refined; and no bound is
above the least energy: on thousands of odd models, against brute force, to the last bit.

All in one file, so that one process compiles each kernel."""

import math
from dataclasses import replace

import numpy as np
import pytest

import naive
import treefield as tf
from bounds import ARITHMETICS, KINDS, PAIRS, holds, least_energy, least_energy_by_rows, random_model
from naive_trw import NaiveTRW
from strategies import Case
from treefield.backends.grid.dual import dual_bytes
from treefield.backends.grid.fixed_point import fixed_point, possible_arithmetics

# A strip has 8 rows, of int16 16: one strip, several, one that is not full, and planes of them.
SHAPES = [(3, 4), (17, 3), (9, 20), (1, 6), (2, 3, 4), (2, 9, 2), (3, 17, 2)]


def bounds_of(dual, mrf, iterations):
    x = np.zeros(mrf.shape, np.int32)
    return [dual.iterate(x) for _ in range(iterations)]


def models_held_by(kind, arithmetic, shape, seeds=20, **options):
    """Plain models of a kind whose costs an arithmetic holds, with their numbers."""
    for seed in range(seeds):
        case = random_model(kind, seed, shape, odd=False, **options)
        if holds(case.mrf(), arithmetic):
            yield seed, case


def reach_of(case):
    """By how much a site's edges can make one label better than another."""
    shape = case.unary.shape[:-1]
    reach = np.zeros(shape)
    for axis, table in enumerate(case.tables):
        span = table.max(axis=(-2, -1)) - table.min(axis=(-2, -1))
        for pad in ((0, 1), (1, 0)):
            reach += np.pad(span, [pad if a == axis else (0, 0) for a in range(len(shape))])
    return reach


def slow_version(case, arithmetic):
    """The slow one for the same costs: those out of reach, with which no label is worth taking, are cut."""
    reach = reach_of(case)
    if arithmetic == "float64":
        most = np.where(reach > 0, 2 * reach, 1.0)
    else:
        most = reach + 1 / fixed_point(case.mrf().backend, arithmetic)[0]
    highest = case.unary.min(axis=-1) + most
    unary = np.minimum(case.unary.astype(np.float64), highest[..., None])
    return NaiveTRW(tf.GridMRF(unary, case.pairwise, weights=case.weights), case.tables)


def rounding_loss(mrf, arithmetic, value):
    """The most that rounding down can take off a bound: three units per site; in float64 hardly anything."""
    return (
        1e-9 * max(1.0, abs(value))
        if arithmetic == "float64"
        else 3 * mrf.size / fixed_point(mrf.backend, arithmetic)[0]
    )


# --- against the slow one -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("kind", "arithmetic"), PAIRS)
def test_bounds_and_labels_of_the_dual_equal_the_naive_ones(kind, arithmetic, shape):
    """But for rounding, down, and up to a whole number where all costs are."""
    seed, case = next(models_held_by(kind, arithmetic, shape, labels=3))
    mrf, x = case.mrf(), np.zeros(shape, np.int32)
    dual, slow, best = mrf.backend.dual(arithmetic), slow_version(case, arithmetic), -math.inf
    for _ in range(4):
        bound, labels = slow.iterate()
        best = max(best, bound)
        found, off = dual.iterate(x), rounding_loss(mrf, arithmetic, best)
        if case.integer:
            assert math.ceil(best - off) <= found <= math.ceil(best + off - 1e-6), seed
        else:
            assert best - off <= found <= best + off, seed
        if arithmetic == "float64" and not case.integer:  # no ties
            np.testing.assert_array_equal(x, labels)


@pytest.mark.parametrize("kind", ["edge-tables", "table", "quadratic", "linear", "envelope"])
def test_every_label_of_the_float64_dual_equals_the_naive_one(kind):
    for shape in SHAPES:
        case = random_model(kind, 0, shape, labels=4, integer=False, odd=False)
        dual, slow, x = case.mrf().backend.dual("float64"), slow_version(case, "float64"), np.zeros(shape, np.int32)
        for _ in range(3):
            bound, labels = slow.iterate()
            assert dual.iterate(x) == pytest.approx(bound, rel=1e-9)
            np.testing.assert_array_equal(x, labels)


@pytest.mark.parametrize("kind", ["potts", "table"])
def test_the_dual_of_a_3d_grid_of_one_plane_equals_that_of_the_2d_grid(kind):
    case = random_model(kind, 3, (11, 5), labels=3, odd=False)
    weights = None if case.weights is None else [w[None] if np.ndim(w) else w for w in case.weights]
    deep = tf.GridMRF(case.unary[None], case.pairwise, weights=None if weights is None else (1, *weights))
    flat, x, y = case.mrf(), np.zeros((11, 5), np.int32), np.zeros((1, 11, 5), np.int32)
    first, second = flat.backend.dual("float32"), deep.backend.dual("float32")
    for _ in range(5):
        assert first.iterate(x) == pytest.approx(second.iterate(y), rel=1e-4)  # the unit is another
    np.testing.assert_array_equal(x, y[0])


# --- how far it rises -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "arithmetic"), PAIRS)
def test_the_bound_of_the_dual_first_rises_and_never_falls(kind, arithmetic):
    rose = 0
    for seed, case in models_held_by(kind, arithmetic, (6, 5), labels=3):
        bounds = bounds_of(case.mrf().backend.dual(arithmetic), case.mrf(), 25)
        assert np.all(np.diff(bounds) >= 0), seed
        rose += bounds[-1] > bounds[0]
    assert rose >= 1


@pytest.mark.parametrize("shape", [(1, 7), (7, 1), (1, 1, 7)], ids=str)
@pytest.mark.parametrize(("kind", "arithmetic"), PAIRS)
def test_the_bound_of_the_dual_on_chains_is_the_minimum(kind, arithmetic, shape):
    tried = 0
    for seed, case in models_held_by(kind, arithmetic, shape, labels=3):
        mrf, (minimum, slack) = case.mrf(), least_energy(case)
        bound = bounds_of(mrf.backend.dual(arithmetic), mrf, 3)[-1]
        if case.integer:
            assert bound == minimum, seed
        else:
            assert minimum - rounding_loss(mrf, arithmetic, minimum) <= bound <= minimum + slack, seed
        tried += 1
    assert tried >= 5


def submodular(seed, shape, integer):
    """Two labels that like to be equal; every third model hides it in costs of one label, put into its tables."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers if integer else rng.uniform
    unary = np.asarray(numbers(-6, 7, (*shape, 2)), float)
    weights = [np.asarray(numbers(0, 4, naive.edge_shape(shape, axis)), float) for axis in range(len(shape))]
    if seed % 3:
        return tf.GridMRF(unary, tf.Potts(1), weights=weights)
    tables = naive.explicit_tables(shape, naive.potts(2), weights)
    for table in tables:
        table += numbers(-2, 3, (*table.shape[:-1], 1)) + numbers(-2, 3, (*table.shape[:-2], 1, 2))
    return tf.GridMRF(unary, tf.EdgeTables(tables))


@pytest.mark.parametrize("integer", [True, False])
@pytest.mark.parametrize("shape", [(3, 4), (4, 3), (2, 2, 3)], ids=str)
def test_the_gap_of_the_dual_closes_on_submodular_models_of_two_labels(shape, integer):
    """There the relaxation that it climbs is tight, and with two labels it cannot get stuck below."""
    for seed in range(12):
        mrf = submodular(seed, shape, integer)
        arithmetic = "float64" if mrf.backend.has_edge_tables else "float32"
        minimum, _ = naive.brute_force(mrf.unary, slow_tables(mrf))
        bound = bounds_of(mrf.backend.dual(arithmetic), mrf, 200)[-1]
        if integer:
            assert bound == minimum, seed
        else:
            assert minimum - rounding_loss(mrf, arithmetic, minimum) <= bound <= minimum, seed


def slow_tables(mrf):
    return NaiveTRW(mrf).tables


@pytest.mark.parametrize(("kind", "arithmetic"), PAIRS)
@pytest.mark.parametrize("shape", [(17, 2), (40, 2), (20, 3)], ids=str)
def test_the_bound_over_several_strips_stays_below_the_minimum_and_comes_close(kind, arithmetic, shape):
    """Tall and narrow models of several strips can be solved exactly, row by row."""
    for seed, case in models_held_by(kind, arithmetic, shape, seeds=4, labels=3):
        mrf, minimum = case.mrf(), least_energy_by_rows(case)
        bounds = bounds_of(mrf.backend.dual(arithmetic), mrf, 40)
        assert bounds[-1] <= minimum + (0 if case.integer else 1e-12 * abs(minimum)), seed
        if arithmetic != "int16" and "signed" not in kind:
            assert minimum - bounds[-1] <= 0.05 * np.ptp(case.unary, axis=-1).sum(), seed


@pytest.mark.parametrize("arithmetic", ["int16", "float32"])
def test_sums_over_a_long_strip_do_not_overflow(arithmetic):
    """Where the costs of edges are met most often: unary costs of one site and the next disagree."""
    rng = np.random.default_rng(0)
    unary = rng.integers(0, 3, (2, 9000, 3)).astype(np.float32)
    unary[:, np.arange(9000), np.arange(9000) % 3] -= 60
    case = random_model("potts", 0, (9000, 2), labels=3, integer=True, odd=False)
    tables = naive.explicit_tables((9000, 2), 20 * naive.potts(3))
    turned = replace(case, unary=unary.transpose(1, 0, 2), pairwise=tf.Potts(20), weights=None, tables=tables)
    minimum = least_energy_by_rows(turned)
    mrf = tf.GridMRF(unary, tf.Potts(20))
    bound = bounds_of(mrf.backend.dual(arithmetic), mrf, 20)[-1]
    assert minimum - mrf.size / fixed_point(mrf.backend, arithmetic)[0] <= bound <= minimum


def test_the_dual_of_a_frustrated_cycle_keeps_its_gap():
    """Three edges like equal labels, the fourth unequal ones: the minimum is 0, but each edge has what it likes."""
    mrf = tf.GridMRF(np.zeros((2, 2, 2)), tf.Potts(1), weights=([[1, 1]], [[1], [-1]]))
    assert bounds_of(mrf.backend.dual(), mrf, 5) == [-1] * 5


# --- finer arithmetic -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [*SHAPES, (33, 7)], ids=str)
@pytest.mark.parametrize("labels", [2, 3])
def test_refining_the_dual_keeps_its_messages(shape, labels):
    rng = np.random.default_rng(labels)
    mrf = tf.GridMRF(rng.uniform(0, 5, (*shape, labels)), tf.Potts(2.0))
    dual = mrf.backend.dual()
    assert dual.arithmetic == "int16"
    coarse = bounds_of(dual, mrf, 30)[-1]
    assert dual.refine(math.inf) and dual.arithmetic == "float32" and dual.bound == coarse
    dual.bound = -math.inf  # or the bound of int16 would stand
    bounds = bounds_of(dual, mrf, 40)
    unit = 1 / fixed_point(mrf.backend, "int16")[0]
    assert bounds[0] >= coarse - 2 * mrf.size * unit
    # as many iterations from zero messages do not give a better bound than those before and after refining
    assert bounds[-1] >= max(coarse, bounds_of(mrf.backend.dual("float32"), mrf, 40)[-1]) - mrf.size * unit / 100
    assert bounds[-1] > coarse or bounds[-1] == pytest.approx(coarse, rel=1e-4)
    assert not dual.refine(math.inf) and dual.arithmetic == "float32"


def test_the_bound_rises_further_after_refining():
    mrf = tf.GridMRF(np.random.default_rng(0).uniform(0, 5, (33, 30, 3)), tf.Potts(2.0))
    dual = mrf.backend.dual()
    bounds = bounds_of(dual, mrf, 60)
    fresh = bounds_of(mrf.backend.dual("float32"), mrf, 1)[0]
    dual.refine(math.inf)
    finer = bounds_of(dual, mrf, 100)
    assert fresh < bounds[0] + 0.01 * abs(bounds[0]) < bounds[-1] < finer[0] <= finer[-1]
    assert finer[-1] - bounds[-1] > 2 * (bounds[-1] - bounds[-20])


def test_a_named_arithmetic_is_not_refined():
    mrf = tf.GridMRF(np.zeros((3, 3, 3)), tf.Potts(2.0))
    for arithmetic in ("int16", "float32"):
        dual = mrf.backend.dual(arithmetic)
        assert dual.arithmetic == arithmetic and not dual.refine(math.inf) and dual.bound == -math.inf


# --- what else it promises ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_two_duals_of_one_model_give_the_same_bounds_and_labels(kind):
    case = random_model(kind, 1, (9, 4), labels=3, odd=False)
    mrf, arithmetic = case.mrf(), next(a for k, a in PAIRS if k == kind and holds(case.mrf(), a))
    labellings = np.zeros((2, 9, 4), np.int32)
    duals = [mrf.backend.dual(arithmetic) for _ in labellings]
    for _ in range(5):
        bounds = [dual.iterate(x) for dual, x in zip(duals, labellings, strict=True)]
        assert bounds[0] == bounds[1] and np.array_equal(*labellings)
    np.testing.assert_array_equal(mrf.unary, case.unary)


def test_the_bound_of_a_model_with_one_label_is_its_energy():
    for shape in ((3, 4), (2, 3, 2)):
        mrf = tf.GridMRF(np.full((*shape, 1), 2.5), tf.Potts(3))
        x = np.zeros(shape, np.int32)
        assert mrf.backend.dual().iterate(x) == pytest.approx(2.5 * x.size, rel=1e-12) and not x.any()


def test_dual_bytes_is_close_to_the_memory_of_the_dual():
    for shape, labels in (((40, 60), 8), ((3, 20, 30), 4)):
        mrf = tf.GridMRF(np.zeros((*shape, labels)), tf.Potts(2.0))
        dual, total = mrf.backend.dual(), 0
        while True:
            total += sum(part.nbytes for part in dual._strips if isinstance(part, np.ndarray))
            if not dual.refine(math.inf):
                break
        assert total <= dual_bytes(mrf.backend, possible_arithmetics(mrf.backend)) <= 1.5 * total + 48 * mrf.size


# --- never above the minimum ----------------------------------------------------------------------------------------

MODELS = 230  # of each kind


def check_bounds(case, arithmetic, minimum, slack, what, iterations=6):
    """Neither above the minimum nor below the one before, and the labels are labels."""
    mrf = case.mrf()
    dual, x, before = mrf.backend.dual(arithmetic), np.full(mrf.shape, -1, np.int32), -math.inf
    for _ in range(iterations):
        bound = dual.iterate(x)
        assert before <= bound <= minimum + slack, f"{what}: {bound!r} is above {minimum!r} by {bound - minimum:g}"
        assert x.min() >= 0 and x.max() < mrf.n_labels, what
        before = bound
    return bound


@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_of_the_dual_is_never_above_the_minimum(kind):
    """Whole numbers leave no room for rounding, and other costs only for that of the minimum itself."""
    tried, reached = dict.fromkeys(ARITHMETICS[kind], 0), 0
    for seed in range(MODELS):
        case = random_model(kind, seed)
        mrf, (minimum, slack) = case.mrf(), least_energy(case)
        for arithmetic in ARITHMETICS[kind]:
            if holds(mrf, arithmetic):
                bound = check_bounds(case, arithmetic, minimum, slack, f"{kind} {seed} in {arithmetic}")
                reached += minimum - bound <= 1e-3 * abs(minimum)
                tried[arithmetic] += 1
    assert min(tried.values()) >= MODELS // 8 and reached >= sum(tried.values()) / 2, (tried, reached)


def truncated(pairwise, unary, weight, cutoff, values):
    """The `Case` of a truncated cost without edge weights."""
    function = naive.truncated_linear if pairwise is tf.TruncatedLinear else naive.truncated_quadratic
    table = weight * function(unary.shape[-1], cutoff, values)
    tables = naive.explicit_tables(unary.shape[:-1], table)
    return Case("", unary, pairwise(weight, cutoff, values), None, tables, False)


POSITIONS = {  # and a cutoff
    "far from 0, so that they are nearly evenly spaced": lambda rng: (1e6 + np.linspace(0, rng.uniform(0.5, 1), 5), 9),
    "nearly evenly spaced": lambda rng: (np.cumsum(1 + 4e-10 * rng.uniform(-1, 1, 5)), 9),
    "one so far away that distances are rounded": lambda rng: (np.r_[-1e8, np.sort(rng.uniform(0, 1, 3))], 0.3),
}


@pytest.mark.parametrize("pairwise", [tf.TruncatedLinear, tf.TruncatedQuadratic])
@pytest.mark.parametrize("positions", POSITIONS)
def test_positions_that_are_rounded_do_not_raise_the_bound(positions, pairwise):
    for seed in range(60):
        rng = np.random.default_rng(seed)
        values, cutoff = POSITIONS[positions](rng)
        unary = rng.uniform(-3, 3, (1, 5, len(values)) if seed % 2 else (2, 2, len(values)))
        case = truncated(pairwise, unary, rng.uniform(0.5, 5), cutoff, values)
        check_bounds(case, "float64", *least_energy(case), seed)


@pytest.mark.parametrize("spread", [1, 3, 6, 8])
def test_forbidden_pairs_with_weights_of_all_sizes_do_not_raise_the_bound(spread):
    """The finite stand-in for a forbidden cost grows with the ratio of the weights, and so does its rounding."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        shape = (2, 3) if seed % 2 else (1, 6)
        table = rng.uniform(-5, 9, (3, 3))
        forbidden = rng.random((3, 3)) < 0.4
        forbidden[0, 0] = False
        table[forbidden] = np.inf
        weights = [10.0 ** rng.uniform(-spread, spread, naive.edge_shape(shape, axis)) for axis in (0, 1)]
        unary = rng.uniform(-5, 5, (*shape, 3))
        tables = naive.explicit_tables(shape, table, weights)
        case = Case("table", unary, tf.Table(table), weights, tables, False)
        check_bounds(case, "float64", *least_energy(case), seed)


def test_a_model_that_forbids_everything_has_a_finite_bound():
    rng = np.random.default_rng(0)
    unary = rng.integers(0, 9, (2, 3, 3)).astype(float)
    everything, none = tf.Table(np.full((3, 3), np.inf)), unary.astype(np.float32)
    none[1, 1] = np.inf
    edges = [np.zeros((1, 3, 3, 3)), np.zeros((2, 2, 3, 3))]
    edges[0][0, 1] = np.inf
    for mrf in (tf.GridMRF(unary, everything), tf.GridMRF(none, tf.Potts(2)), tf.GridMRF(unary, tf.EdgeTables(edges))):
        bound = mrf.backend.dual().iterate(np.zeros((2, 3), np.int32))
        assert bound > -math.inf and tf.trw(mrf, maxiter=3).fun == math.inf
    no_edges = tf.GridMRF(unary, everything, weights=(0, 0))
    assert no_edges.backend.dual().iterate(np.zeros((2, 3), np.int32)) == unary.min(axis=-1).sum()


def test_the_bound_of_whole_costs_is_rounded_up():
    """If no energy lies between 3.2 and 4, a bound of 3.2 is one of 4; half the costs have half the bound as it is."""
    between = 0
    for seed in range(20):
        unary = np.random.default_rng(seed).integers(0, 9, (4, 4, 3)).astype(np.float32)
        whole, half = tf.GridMRF(unary, tf.Potts(3)), tf.GridMRF(unary / 2, tf.Potts(1.5))
        assert whole.backend.is_whole and not half.backend.is_whole
        up, down = (mrf.backend.dual("float32").iterate(np.zeros((4, 4), np.int32)) for mrf in (whole, half))
        assert up == math.ceil(2 * down - 1e-3) and isinstance(up, float)
        between += abs(2 * down - up) > 0.1
    assert between > 3
