"""`minimize` in little memory: what it leaves out, and that it keeps to the limit."""

import gc
import math
import re
import tracemalloc

import numpy as np
import pytest

import naive
import treefield as tf
import treefield.solvers.minimize as module
from treefield.backends.grid.dual import GridDual
from treefield.solvers import auto
from treefield.validation import as_byte_count

EXACT, EVERYTHING, UNREFINED, NO_DUAL, LITTLE = (
    ("auto", "exact"),
    ("auto", "auto"),
    ("auto", "int16"),
    ("auto", None),
    ("low", None),
)


def tables_of(shape, labels, dtype):
    rng = np.random.default_rng(1)
    sizes = [(*naive.edge_shape(shape, axis), labels, labels) for axis in range(len(shape))]
    return tf.EdgeTables([rng.integers(0, 9, size).astype(dtype) for size in sizes])


def random_unary(*shape, dtype=np.float32):
    return np.random.default_rng(0).random(shape).astype(dtype)


MODELS = {
    "16 labels": lambda: tf.GridMRF(random_unary(200, 200, 16), tf.Potts(0.4)),
    "a table of integers for each edge": lambda: tf.GridMRF(
        random_unary(200, 200, 4, dtype=float), tables_of((200, 200), 4, np.int64)
    ),
    "three dimensions": lambda: tf.GridMRF(random_unary(20, 40, 50, 4), tf.Potts(0.2)),
    "long and narrow": lambda: tf.GridMRF(random_unary(5, 8000, 4), tf.Potts(0.4)),
    "tall and narrow": lambda: tf.GridMRF(random_unary(8000, 5, 4), tf.Potts(0.4)),
}


def least_limit(mrf, what):
    """The least limit within which so much is used; 0 if there is none."""
    order = [LITTLE, NO_DUAL, UNREFINED, EVERYTHING, EXACT]

    def is_enough(limit):
        try:
            return order.index(module._what_fits(mrf, limit)) >= order.index(what)
        except ValueError:
            return False

    low, high = 0, 2**40
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high if module._what_fits(mrf, high) == what else 0


def peak_of(call):
    """The result of a call, and the most bytes that it used in addition to those before; a first call loads kernels."""
    call()
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        result = call()
        return result, tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "what", [EVERYTHING, UNREFINED, NO_DUAL, LITTLE], ids=["everything", "unrefined", "no dual", "little"]
)
@pytest.mark.parametrize("name", MODELS)
def test_minimize_stays_within_its_memory_limit(name, what, monkeypatch):
    mrf = MODELS[name]()
    limit = least_limit(mrf, what)
    if limit == 0:
        pytest.skip("there is nothing to leave out")
    monkeypatch.setattr(auto, "_CLOSER", math.inf)  # the dual is refined as soon as that is possible
    refined, refine = [], GridDual.refine
    monkeypatch.setattr(GridDual, "refine", lambda self, gap: refined.append(refine(self, gap)) or refined[-1])
    res, peak = peak_of(lambda: tf.minimize(mrf, memory_limit=limit, maxiter=7, tol=0, rng=0, threads=2))
    assert peak <= limit, f"{peak / limit:.2f} of the limit"
    assert res.fun == mrf.energy(res.x) and res.nit == 7
    assert np.isnan(res.lower_bound) == (what in (NO_DUAL, LITTLE))
    assert any(refined) == (what == EVERYTHING and mrf.backend.dual().arithmetic == "int16")


def test_a_lower_memory_limit_leaves_parts_of_minimize_out():
    mrf = MODELS["16 labels"]()
    limits = [least_limit(mrf, what) for what in (EVERYTHING, UNREFINED, NO_DUAL, LITTLE)]
    assert limits == sorted(limits, reverse=True) and limits[0] > 2 * limits[2] > 4 * limits[3] > 0
    runs = [tf.minimize(mrf, memory_limit=limit, maxiter=3, tol=0, rng=0) for limit in (None, *limits)]
    np.testing.assert_array_equal(runs[0].x, runs[1].x)  # what there is room for changes nothing
    np.testing.assert_array_equal(runs[1].x, runs[2].x)  # nor does refining, so early
    np.testing.assert_array_equal(runs[3].x, runs[4].x)  # nor does packing costs
    assert runs[2].fun < runs[3].fun


@pytest.mark.parametrize("what", [NO_DUAL, LITTLE], ids=["no dual", "little"])
def test_minimize_without_the_dual_stops_by_itself(mrf, what):
    def callback(intermediate_result):
        assert intermediate_result.nit < 2000

    res = tf.minimize(mrf, memory_limit=least_limit(mrf, what), rng=0, callback=callback)
    assert res.status == 0 and "no improvement in energy or bound for 100 rounds" in res.message and res.nit >= 100


def test_too_low_a_memory_limit_is_refused_with_the_bytes_needed():
    mrf = MODELS["16 labels"]()
    with pytest.raises(ValueError, match=r"memory_limit = 1000 bytes is too little.* needs about \d+ bytes") as refused:
        tf.minimize(mrf, memory_limit=1000)
    needed = int(re.findall(r"about (\d+) bytes", str(refused.value))[0])
    assert tf.minimize(mrf, memory_limit=needed, maxiter=1, rng=0).nit == 1
    with pytest.raises(ValueError, match="too little"):
        tf.minimize(mrf, memory_limit=needed - 1)


@pytest.mark.parametrize("shape", [(200, 200), (1, 20000), (20000, 1)], ids=str)
def test_trees_are_solved_exactly_where_there_is_room(shape):
    down = np.zeros((shape[0] - 1, shape[1]))
    down[:, 0] = 1
    mrf = tf.GridMRF(random_unary(*shape, 4), tf.Potts(0.4), weights=(down, 1.0))
    exact = tf.minimize(mrf)
    limits = [limit for what in (EVERYTHING, NO_DUAL, LITTLE) if (limit := least_limit(mrf, what))]
    for limit in (*limits, 10**9):
        res, peak = peak_of(lambda limit=limit: tf.minimize(mrf, memory_limit=limit, maxiter=4, rng=0))
        assert peak <= limit and res.fun == mrf.energy(res.x) >= exact.fun
    assert 0 <= res.gap <= 1e-8 and res.fun == exact.fun and res.message == exact.message


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("64 MB", 64_000_000),
        ("0.5GiB", 2**29),
        (".5 gib", 2**29),
        (" 2kB ", 2000),
        ("3 KiB", 3072),
        ("1TB", 10**12),
        ("100 b", 100),
        (1e8, 10**8),
        (123, 123),
        (np.int64(77), 77),
    ],
)
def test_memory_limits_are_read_from_numbers_and_text(text, size):
    assert as_byte_count(text, "memory_limit") == size


@pytest.mark.parametrize(
    ("limit", "error", "message"),
    [
        ("lots", ValueError, "memory_limit must be a number of bytes or text such as \"500 MB\", got 'lots'"),
        ("64", ValueError, "memory_limit must be a number of bytes or text"),
        ("MB", ValueError, "text such as"),
        ("-1 MB", ValueError, "text such as"),
        ("1,5 GB", ValueError, "text such as"),
        ("64 MBit", ValueError, "text such as"),
        ("5 XB", ValueError, "text such as"),
        ("", ValueError, "text such as"),
        ("0 MB", ValueError, "at least 1 byte, got '0 MB'"),
        (0, ValueError, "at least 1 byte, got 0"),
        (-5, ValueError, "at least 1 byte, got -5"),
        (math.nan, ValueError, "memory_limit must be finite"),
        (math.inf, ValueError, "memory_limit must be finite"),
        (True, TypeError, "memory_limit must be a number"),
        ([64], TypeError, "memory_limit must be a number"),
        (b"64 MB", TypeError, "memory_limit must be a number"),
    ],
)
def test_bad_memory_limits_are_refused(limit, error, message):
    for mrf in (tf.GridMRF(np.zeros((3, 3, 3)), tf.Potts(1)), tf.GridMRF(np.zeros((1, 3, 3)), tf.Potts(1))):
        with pytest.raises(error, match=message):
            tf.minimize(mrf, memory_limit=limit)


def test_within_a_memory_limit_that_leaves_room_the_gap_closes_to_rounding():
    mrf = tf.GridMRF(np.random.default_rng(1).random((20, 20, 3)), tf.Potts(0.3))  # a model without a duality gap
    res = tf.minimize(mrf, memory_limit="1 GB", tol=0, maxiter=2000, rng=0)
    assert res.status == 0 and "proved optimal" in res.message


def test_trw_closes_the_gap_to_rounding_only_with_tol_0():
    mrf = tf.GridMRF(random_unary(1, 300, 3, dtype=float), tf.Potts(0.3))
    assert "proved optimal" in tf.trw(mrf, tol=0).message


def glass(shape, **options):
    """Spins without fields, of random couplings."""
    rng, unary = np.random.default_rng(0), np.zeros((*shape, 2))
    edges = tf.GridMRF(unary, tf.Potts(1), **options).backend.lattice.edge_shapes
    return tf.GridMRF(unary, tf.Potts(1), weights=[rng.normal(size=shape) for shape in edges], **options)


MODELS_WITH_WIDE_TREES = {
    "ribbons": lambda: glass((60, 60)),
    "graph": lambda: glass((40, 40)).to_graph(),
    "grid as a graph": lambda: glass((40, 40), connectivity=2, periodic=True),
}


@pytest.mark.parametrize("name", MODELS_WITH_WIDE_TREES)
def test_wide_trees_within_a_memory_limit_do_not_depend_on_the_number_of_threads(name):
    mrf = MODELS_WITH_WIDE_TREES[name]()
    needed = next(iter(mrf.backend.search_bytes().values())) + 48 * mrf.size
    for limit in (10**9, int(needed + 1.5 * mrf.backend.wider_trees[0].bytes)):
        runs = [tf.minimize(mrf, memory_limit=limit, maxiter=12, tol=0, rng=0, threads=count) for count in (1, 2, 3)]
        assert len({res.fun for res in runs}) == 1 and runs[0].nit == 12
        np.testing.assert_array_equal(runs[0].x, runs[1].x)


def test_a_checkpoint_of_other_widths_is_refused(tmp_path):
    mrf, path = glass((60, 60)), tmp_path / "search.checkpoint"
    tf.minimize(mrf, maxiter=3, tol=0, rng=0, checkpoint=path)
    limit = int(next(iter(mrf.backend.search_bytes().values())) + 48 * mrf.size)
    with pytest.raises(ValueError, match="widths"):
        tf.minimize(mrf, maxiter=6, tol=0, rng=0, checkpoint=path, memory_limit=limit)


def test_a_long_grid_stays_within_its_memory_limit():
    """Its columns are swept in hundreds of queues."""
    mrf = glass((6000, 30))
    limit = least_limit(mrf, NO_DUAL)
    res, peak = peak_of(lambda: tf.minimize(mrf, memory_limit=limit, maxiter=3, tol=0, rng=0, threads=2))
    assert peak <= limit, f"{peak / limit:.2f} of the limit"
    assert res.nit == 3
