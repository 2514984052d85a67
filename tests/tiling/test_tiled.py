"""A model in tiles is the same model: its energy, what a tile costs, and where its data lies."""

import itertools

import dask.array
import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

import treefield as tf
from small import check_raises
from tiled_models import both, cases, random_labels
from treefield.tiling.tiles import border_boxes, expand, halo_of, tile_boxes

UNARY = np.random.default_rng(0).integers(0, 9, (9, 11, 3)).astype(np.float32)


def sites(boxes, shape):
    """How often each site is in one of the boxes."""
    counts = np.zeros(shape, int)
    for box in boxes:
        counts[box] += 1
    return counts


def check_apart(boxes, shape):
    """Fail if two boxes of a colour class share a site or have neighbouring sites."""
    for first, second in itertools.combinations(boxes, 2):
        around = np.zeros(shape, bool)
        for axis, part in enumerate(first):
            wider = list(first)
            wider[axis] = slice(max(0, part.start - 1), part.stop + 1)
            around[tuple(wider)] = True
        assert not around[second].any(), (first, second)


@settings(max_examples=60)
@given(cases())
def test_the_energy_of_a_tiled_model_equals_that_of_the_grid(case):
    tiled, whole = both(*case)
    x = random_labels(whole)
    assert tiled.energy_parts(x) == whole.backend.energy_parts(x)
    assert tiled.energy(x.astype(np.uint8)) == whole.energy(x)


@settings(max_examples=60)
@given(cases())
def test_a_tile_with_its_halo_has_the_energy_change_of_the_grid(case):
    tiled, whole = both(*case)
    x, y = random_labels(whole), random_labels(whole, seed=1)
    for box in tiled.tiles:
        tile, changed = tiled.read_tile(box, x), x.copy()
        changed[box] = y[box]
        before, after = tile.energy_parts(tile.own), tile.energy_parts(y[box])
        expected = [
            a - b for a, b in zip(whole.backend.energy_parts(changed), whole.backend.energy_parts(x), strict=True)
        ]
        assert [after[0] - before[0], after[1] - before[1]] == expected
        absorbed = tile.absorbed()
        parts = absorbed.backend.energy_parts(np.ascontiguousarray(y[box])), absorbed.backend.energy_parts(tile.own)
        if whole.backend.forbidden_cost == np.inf:  # a cost forbidden at a tile's border is not counted in it
            assert parts[0][0] - parts[1][0] == expected[0]


@settings(max_examples=60)
@given(cases())
def test_the_bound_on_edges_between_tiles_holds(case):
    tiled, whole = both(*case)
    alone = [tiled.read_tile(box) for box in tiled.tiles]
    for seed in range(3):
        x = random_labels(whole, seed)
        parts = [
            tile.model.backend.energy_parts(np.ascontiguousarray(x[box]))
            for tile, box in zip(alone, tiled.tiles, strict=True)
        ]
        finite, forbidden, least = (sum(part) for part in zip(*tiled.between_tiles(x), strict=True))
        assert sum(part[0] for part in parts) + finite == whole.backend.energy_parts(x)[0]
        assert sum(part[1] for part in parts) + forbidden == whole.backend.energy_parts(x)[1]
        assert forbidden or least <= finite


@settings(max_examples=200)
@given(
    st.one_of(st.tuples(*[st.integers(1, 40)] * 2), st.tuples(*[st.integers(1, 12)] * 3)),
    st.integers(4, 20),
)
def test_tiles_cover_the_grid_and_border_boxes_the_borders_in_two_colour_classes(shape, side):
    tile = tuple(min(side, n) for n in shape)
    borders = []
    for shifted in (False, True):
        classes = tile_boxes(shape, tile, shifted)
        assert (sites([box for boxes in classes for box in boxes], shape) == 1).all()
        for boxes in classes:
            check_apart(boxes, shape)
        borders.append([{box[a].start for boxes in classes for box in boxes} - {0} for a in range(len(shape))])
    assert all(not (first & second) for first, second in zip(*borders, strict=True))  # no border stays one
    for axis, starts in enumerate(borders[0]):
        classes = border_boxes(shape, tile, axis)
        for boxes in classes:
            check_apart(boxes, shape)
        adjacent = np.zeros(shape, bool)
        for start in starts:
            adjacent[(slice(None),) * axis + (slice(start - 1, start + 1),)] = True
        counts = sites([box for boxes in classes for box in boxes], shape)
        assert counts.max(initial=0) <= 1 and (counts[adjacent] == 1).all() and bool(starts) == bool(counts.any())


def test_a_box_is_expanded_to_all_sides_that_have_sites():
    box = slice(0, 3), slice(4, 6)
    assert expand(box, halo_of(box, (8, 6))) == (slice(0, 4), slice(3, 6))


def test_a_unary_from_any_source_makes_the_same_tiled_model(tmp_path):
    np.save(tmp_path / "unary.npy", UNARY)
    stored = zarr.create_array(store=str(tmp_path / "unary.zarr"), data=UNARY, chunks=(4, 4, 3))
    weights = [np.ones((8, 11)), zarr.array(np.full((9, 10), 2.0))]
    sources = {
        "array": UNARY,
        "memmap": np.load(tmp_path / "unary.npy", mmap_mode="r"),
        "zarr": stored,
        "dask": dask.array.from_array(UNARY, chunks=(5, 4, 3)),
    }
    models = [tf.TiledMRF(source, tf.Potts(2), weights=weights, tile=4) for source in sources.values()]
    models.append(tf.TiledMRF(lambda box: UNARY[box], tf.Potts(2), shape=(9, 11), n_labels=3, weights=weights, tile=4))
    results = [tf.minimize(model, rng=0) for model in models]
    for res in results:
        np.testing.assert_array_equal(res.x, results[0].x)
        assert res.fun == results[0].fun


@pytest.mark.parametrize("name", ["labels.npy", "labels.zarr"])
def test_labels_of_a_tiled_search_are_written_to_the_given_file(tmp_path, name):
    mrf = tf.TiledMRF(UNARY, tf.Potts(2), tile=4, store=tmp_path / name)
    res = tf.t_icm(mrf, rng=0)
    plain = tf.t_icm(tf.TiledMRF(UNARY, tf.Potts(2), tile=4), rng=0)
    assert res.x.dtype == np.uint8 and res.fun == plain.fun
    np.testing.assert_array_equal(res.x[:, :], plain.x)
    kept = np.load(tmp_path / name) if name.endswith("npy") else zarr.open_array(str(tmp_path / name))[:, :]
    np.testing.assert_array_equal(kept, plain.x)
    check_raises(lambda: tf.t_icm(mrf, rng=0), FileExistsError, "exists; give another name")


@pytest.mark.parametrize("name", ["labels.npy", "labels.zarr"])
def test_a_tiled_search_that_fails_leaves_no_file(tmp_path, name):
    mrf = tf.TiledMRF(UNARY, tf.Potts(2), tile=4, store=tmp_path / name)
    check_raises(lambda: tf.t_ils(mrf, local_search="none"), ValueError, "local_search must be")
    check_raises(lambda: tf.t_icm(mrf, np.full((9, 11), 3)), ValueError, "x0 holds labels from 3 to 3")
    assert not list(tmp_path.iterdir())
    assert tf.t_icm(mrf, rng=0).success


def test_a_tiled_model_accepts_nested_lists_as_weights_and_labels():
    mrf = tf.TiledMRF(UNARY, tf.Potts(2), weights=[np.ones((8, 11)).tolist(), 1], tile=4)
    x = [[0] * 11] * 9
    assert mrf.energy(x) == tf.GridMRF(UNARY, tf.Potts(2)).energy(x) >= tf.t_icm(mrf, x).fun


def test_labels_of_a_tiled_search_are_written_to_the_given_array():
    own = np.full((9, 11), 7, np.int64)
    res = tf.t_icm(tf.TiledMRF(UNARY, tf.Potts(2), tile=4, store=own), rng=0)
    assert res.x is own and own.max() < 3


def test_a_tiled_search_stores_300_labels_as_uint16():
    mrf = tf.TiledMRF(np.zeros((4, 4, 300), np.uint8), tf.Potts(1))
    assert tf.t_icm(mrf, rng=0).x.dtype == np.uint16


def test_a_larger_memory_limit_makes_larger_tiles():
    sides = []
    for limit in ("2 MB", "20 MB", 200e6):
        mrf = tf.TiledMRF(
            lambda box: np.zeros((64, 64, 4)), tf.Potts(1), shape=(9999, 9999), n_labels=4, memory_limit=limit
        )
        sides.append(mrf.tile[0])
    assert sides == sorted(sides) and sides[0] < sides[1] < sides[2]


REFUSED = {
    "no array": (lambda: tf.TiledMRF([[1, 2]], tf.Potts(1)), TypeError, "unary must be an array or a function"),
    "no axes": (lambda: tf.TiledMRF(np.zeros((3, 4)), tf.Potts(1)), ValueError, r"shape \(3,\), expected two or three"),
    "no sites": (lambda: tf.TiledMRF(np.zeros((0, 4, 2)), tf.Potts(1)), ValueError, "at least one site"),
    "no shape": (lambda: tf.TiledMRF(lambda box: 0, tf.Potts(1)), TypeError, "shape= and n_labels= must be given"),
    "shape twice": (lambda: tf.TiledMRF(UNARY, tf.Potts(1), shape=(3, 3)), ValueError, "leave shape out"),
    "tables": (lambda: tf.TiledMRF(UNARY, tf.EdgeTables([])), TypeError, "EdgeTables do not go with tiles"),
    "small table": (lambda: tf.TiledMRF(UNARY, tf.Table(np.eye(2))), ValueError, "3 labels but the table"),
    "weights": (lambda: tf.TiledMRF(UNARY, tf.Potts(1), weights=[1]), ValueError, "one number or array per axis"),
    "weight": (
        lambda: tf.TiledMRF(UNARY, tf.Potts(1), weights=[1, np.ones(3)]),
        ValueError,
        r"expected a number or \(9, 10\)",
    ),
    "tile": (lambda: tf.TiledMRF(UNARY, tf.Potts(1), tile=3), ValueError, "tile must be at least 4, got 3"),
    "tiles": (lambda: tf.TiledMRF(UNARY, tf.Potts(1), tile=(4, 4, 4)), ValueError, "3 entries, but the grid has 2"),
    "memory": (lambda: tf.TiledMRF(UNARY, tf.Potts(1), memory_limit=99), ValueError, "the smallest tile needs"),
    "wrong costs": (
        lambda: tf.minimize(
            tf.TiledMRF(lambda box: np.zeros((2, 2, 2)), tf.Potts(1), shape=(9, 9), n_labels=2, tile=4)
        ),
        ValueError,
        r"gave shape \(2, 2, 2\) for the box \[0:3, 0:3\], expected \(3, 3, 2\)",
    ),
    "energy of another shape": (
        lambda: tf.TiledMRF(UNARY, tf.Potts(1)).energy(np.zeros((2, 2), int)),
        ValueError,
        r"x has shape \(2, 2\)",
    ),
    "energy of no labels": (
        lambda: tf.TiledMRF(UNARY, tf.Potts(1)).energy(np.full((9, 11), 3)),
        ValueError,
        "labels from 3 to 3, expected 0 to 2",
    ),
    "energy of floats": (
        lambda: tf.TiledMRF(UNARY, tf.Potts(1)).energy(np.zeros((9, 11))),
        TypeError,
        "integer labels",
    ),
    "small store": (
        lambda: tf.t_icm(tf.TiledMRF(UNARY, tf.Potts(1), store=np.zeros((2, 2), int))),
        ValueError,
        r"array of shape \(9, 11\)",
    ),
    "store of floats": (
        lambda: tf.t_icm(tf.TiledMRF(UNARY, tf.Potts(1), store=np.zeros((9, 11)))),
        ValueError,
        "does not hold the labels 0 to 2",
    ),
    "store to be read": (
        lambda: tf.t_icm(tf.TiledMRF(UNARY, tf.Potts(1), store=np.broadcast_to(np.uint8(0), (9, 11)))),
        ValueError,
        "store is read-only",
    ),
    "shape of one": (
        lambda: tf.TiledMRF(lambda box: 0, tf.Potts(1), shape=5, n_labels=2),
        ValueError,
        "two or three axes",
    ),
    "weights of a list": (
        lambda: tf.TiledMRF(UNARY, tf.Potts(1), weights=[[[1.0]], 1]),
        ValueError,
        r"weights\[0\] has shape \(1, 1\)",
    ),
    "store of no kind": (
        lambda: tf.t_icm(tf.TiledMRF(UNARY, tf.Potts(1), store="labels.txt")),
        ValueError,
        "must be a .npy file or a .zarr folder",
    ),
    "store nowhere": (
        lambda: tf.t_icm(tf.TiledMRF(UNARY, tf.Potts(1), store="no/such/labels.npy")),
        FileNotFoundError,
        "make it first",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_arguments_of_a_tiled_model_are_refused(name):
    check_raises(*REFUSED[name])


def test_ribbons_are_no_wider_than_the_tiles():
    unary = np.random.default_rng(0).random((33, 40, 2)).astype(np.float32)
    mrf = tf.TiledMRF(unary, tf.Potts(0.4), tile=16)
    res = tf.t_icm(mrf, trees="ribbons", width=12, rng=0)
    assert res.fun == mrf.energy(res.x) <= tf.t_icm(tf.TiledMRF(unary, tf.Potts(0.4), tile=16), rng=0).fun
