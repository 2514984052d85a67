"""Models come back from their files with the same energies; what is no model is refused."""

import zipfile

import numpy as np
import pytest
from hypothesis import given

import treefield as tf
from one_line import check_one_line_error
from strategies import grid_models
from treefield.io import load_model, save_model

UNARY = np.random.default_rng(0).random((3, 4, 2))
PAIRWISE = {
    "potts": tf.Potts(1 / 3),
    "linear": tf.TruncatedLinear(0.7, 1.5),
    "quadratic": tf.TruncatedQuadratic(0.7, np.inf),
    "linear-values": tf.TruncatedLinear(0.7, 1.5, [0.25, 3]),
    "quadratic-values": tf.TruncatedQuadratic(-2, 9, [3, 1]),
    "table": tf.Table([[0, np.inf], [-2, 3]]),
    "tables": tf.EdgeTables([np.ones((2, 4, 2, 2), np.uint8), UNARY[:, 1:, :, None] + UNARY[:, :-1, None]]),
}


@pytest.mark.parametrize("kind", PAIRWISE)
@pytest.mark.parametrize(
    "weights", [None, [2, 0.5], [1, np.linspace(0, 1, 9).reshape(3, 3)]], ids=["no", "two", "each"]
)
def test_a_loaded_model_has_the_parts_of_the_saved_one(tmp_path, kind, weights):
    mrf = tf.GridMRF(UNARY, PAIRWISE[kind], weights=weights)
    save_model(tmp_path / "model.npz", mrf)
    loaded = load_model(tmp_path / "model.npz")
    assert repr(loaded) == repr(mrf)
    for part, same in zip(mrf.backend.fingerprint_parts(), loaded.backend.fingerprint_parts(), strict=True):
        assert np.array_equal(part, same)
    x = np.random.default_rng(1).integers(0, 2, (3, 4))
    assert loaded.energy(x) == mrf.energy(x)


@pytest.mark.parametrize(
    ("lattice", "directions"),
    [
        ({"mask": UNARY[..., 0] < 0.8}, 2),
        ({"connectivity": 2, "periodic": (True, False), "mask": UNARY[..., 0] < 0.8}, 4),
        ({"connectivity": 2}, 13),
    ],
)
def test_connectivity_and_masks_of_a_saved_model_come_back(tmp_path, lattice, directions):
    unary = UNARY if directions < 13 else UNARY[None]
    mrf = tf.GridMRF(unary, tf.Potts(1), weights=list(range(directions)), **lattice)
    save_model(tmp_path / "model.npz", mrf)
    loaded = load_model(tmp_path / "model.npz")
    assert repr(loaded) == repr(mrf)
    for part, same in zip(mrf.backend.fingerprint_parts(), loaded.backend.fingerprint_parts(), strict=True):
        assert np.array_equal(part, same)


@given(grid_models())
def test_a_saved_model_of_any_kind_comes_back(tmp_path_factory, case):
    path = tmp_path_factory.mktemp("model") / "model.npz"
    mrf = case.mrf()
    save_model(path, mrf)
    loaded = load_model(path)
    assert loaded.unary.dtype == mrf.unary.dtype and loaded.shape == mrf.shape
    for part, same in zip(mrf.backend.fingerprint_parts(), loaded.backend.fingerprint_parts(), strict=True):
        assert np.array_equal(part, same)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_file_made_by_hand_is_a_model(tmp_path, save):
    save(tmp_path / "a.npz", unary=UNARY, potts=20.0)
    assert repr(load_model(tmp_path / "a.npz").pairwise) == "Potts(20)"
    save(tmp_path / "b.npz", unary=UNARY, quadratic=(2, 7), values=[1, 5], weights_0=2, weights_1=np.ones((3, 3)))
    mrf = load_model(tmp_path / "b.npz")
    assert repr(mrf.pairwise) == "TruncatedQuadratic(2, 7, values=[1.0, 5.0])" and float(mrf.weights[0]) == 2
    save(tmp_path / "c.npz", unary=UNARY, tables_0=np.ones((2, 4, 2, 2)), tables_1=np.ones((3, 3, 2, 2)))
    assert load_model(tmp_path / "c.npz").energy(np.zeros((3, 4), int)) == pytest.approx(UNARY[..., 0].sum() + 17)


def test_what_save_model_writes_can_be_read_with_numpy_alone(tmp_path):
    save_model(tmp_path / "model.npz", tf.GridMRF(UNARY, tf.Potts(3), weights=[1, 2]))
    with np.load(tmp_path / "model.npz", allow_pickle=False) as file:
        assert sorted(file.files) == ["format", "potts", "unary", "weights_0", "weights_1"]
        assert str(file["format"]) == "treefield model 1" and file["potts"] == 3


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"image": UNARY}, ["no array unary", "image"]),
        ({"unary": UNARY}, ["potts, linear", "none"]),
        ({"unary": UNARY, "potts": 1, "table": np.eye(2)}, ["one of", "potts and table"]),
        ({"unary": UNARY, "pots": 1, "potts": 1}, ["pots", "no model"]),
        ({"unary": UNARY, "potts": [1, 2]}, ["potts", "(2,)", "a number"]),
        ({"unary": UNARY, "potts": "much"}, ["potts", "<U4"]),
        ({"unary": UNARY, "potts": np.nan}, ["finite"]),
        ({"unary": UNARY, "linear": 1}, ["linear", "weight and cutoff"]),
        ({"unary": UNARY, "linear": [1, -1]}, ["cutoff"]),
        ({"unary": UNARY, "potts": 1, "values": [0, 1]}, ["values", "potts has not"]),
        ({"unary": UNARY, "table": np.eye(3)}, ["2 labels", "(3, 3)"]),
        ({"unary": UNARY, "tables_1": np.eye(3)}, ["tables_1", "each axis"]),
        ({"unary": UNARY, "potts": 1, "weights_1": 1}, ["weights_1", "expected", "weights_0"]),
        ({"unary": UNARY, "potts": 1, "weights_0": 1}, ["1 entries", "per axis"]),
        ({"unary": UNARY[0], "potts": 1}, ["(4, 2)", "(M, N, labels)"]),
        ({"unary": UNARY * np.nan, "potts": 1}, ["NaN"]),
        ({"unary": UNARY.astype(complex), "potts": 1}, ["complex128", "numbers"]),
        ({"unary": UNARY.astype(str), "potts": 1}, ["real numbers"]),
        ({"unary": UNARY, "potts": 1, "format": "treefield model 2"}, ["'treefield model 2'", "'treefield model 1'"]),
    ],
)
def test_an_npz_file_that_makes_no_model_is_refused(tmp_path, arrays, words):
    np.savez(tmp_path / "model.npz", **arrays)
    check_one_line_error(lambda: load_model(tmp_path / "model.npz"), ValueError, str(tmp_path / "model.npz"), *words)


def test_load_model_does_not_unpickle_objects(tmp_path):
    np.savez(tmp_path / "model.npz", unary=np.array([print, {}], object), potts=1)
    check_one_line_error(lambda: load_model(tmp_path / "model.npz"), ValueError, "Python objects")


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04" + bytes(40)])
def test_load_model_refuses_a_file_that_is_not_an_archive(tmp_path, content):
    (tmp_path / "model.npz").write_bytes(content)
    check_one_line_error(lambda: load_model(tmp_path / "model.npz"), ValueError, "model.npz is not a model")


def test_load_model_distinguishes_a_missing_file_from_a_folder(tmp_path):
    check_one_line_error(lambda: load_model(tmp_path / "model.npz"), FileNotFoundError, "there is no file", "model.npz")
    check_one_line_error(lambda: load_model(tmp_path), IsADirectoryError, "folder")


def test_a_model_header_that_claims_too_much_fails_before_anything_is_allocated(tmp_path):
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1000000, 10), }"
    member = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    with zipfile.ZipFile(tmp_path / "model.npz", "w") as archive:
        archive.writestr("unary.npy", member)
        archive.writestr("potts.npy", member)
    check_one_line_error(lambda: load_model(tmp_path / "model.npz"), ValueError, "too short", "(1000000, 1000000, 10)")


def test_a_model_that_does_not_fit_into_memory_is_refused(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "model.npz", unary=np.zeros((100, 100, 4)), potts=1)
    monkeypatch.setattr("treefield.io.limits.available_memory", lambda: 300_000)
    error = check_one_line_error(lambda: load_model(tmp_path / "model.npz"), MemoryError)
    assert str(error) == f"{tmp_path / 'model.npz'} unpacks to 320 kB, but only 300 kB of memory are free"


def test_save_model_refuses_other_objects_and_writes_nothing(tmp_path):
    class Own(tf.Potts):
        pass

    mrf = tf.GridMRF(UNARY, tf.Potts(1))
    check_one_line_error(lambda: save_model(tmp_path / "m.npz", UNARY), TypeError, "GridMRF", "ndarray")
    check_one_line_error(lambda: save_model(tmp_path / "m.png", mrf), ValueError, ".npz")
    check_one_line_error(
        lambda: save_model(tmp_path / "m.npz", tf.GridMRF(UNARY, Own(1))), TypeError, "Own", "Table(V)"
    )
    assert not list(tmp_path.iterdir())


def test_a_damaged_model_is_read_or_refused_in_one_line(tmp_path):
    path = tmp_path / "model.npz"
    save_model(path, tf.GridMRF(UNARY, tf.TruncatedLinear(1, 2, [0, 3]), weights=[1, 2]))
    good, rng = path.read_bytes(), np.random.default_rng(0)
    refused = 0
    for _ in range(200):
        bad = bytearray(good)
        for place in rng.integers(0, len(bad), 4):
            bad[place] = rng.integers(256)
        path.write_bytes(bad[: rng.integers(1, len(bad))] if rng.random() < 0.3 else bad)
        try:
            assert isinstance(load_model(path), tf.GridMRF)
        except (ValueError, MemoryError) as error:
            refused += 1
            assert "\n" not in str(error) and str(path) in str(error)
    assert refused > 100
