"""Ribbons: workspaces, segments, layouts and threads change no label, and need no more memory than estimated."""

import itertools

import numpy as np
import pytest

import treefield as tf
from lattices import Case
from ribbon_sweeps import energy_after_sweeps, random_labels
from treefield.backends.grid import ribbons

MODELS = {
    "Potts, 2 labels": lambda: Case(1, (9, 31), "potts", 2, connectivity=1).mrf,
    "table, 2 labels": lambda: Case(2, (9, 31), "table", 2, connectivity=1).mrf,
    "Potts, 3 labels": lambda: Case(3, (9, 31), "potts", 3, connectivity=1).mrf,
    "table, 3 labels": lambda: Case(4, (9, 31), "table", 3, connectivity=1).mrf,
    "edge tables": lambda: Case(5, (9, 31), "edge-tables", 3, connectivity=1).mrf,
    "eight neighbours, 2 labels": lambda: Case(6, (9, 31), "table", 2).mrf,
    "eight neighbours": lambda: Case(7, (9, 31), "table", 3).mrf,
    "periodic": lambda: Case(8, (9, 31), "table", 3, connectivity=1, periodic=(True, True)).mrf,
    "masked": lambda: Case(9, (9, 31), "table", 3, connectivity=1, masked=True).mrf,
    "3-D": lambda: Case(10, (4, 5, 13), "table", 2, connectivity=1).mrf,
    "real costs": lambda: tf.GridMRF(np.random.default_rng(0).random((9, 31, 3)), tf.TruncatedQuadratic(0.2, 3)),
}
every_model = pytest.mark.parametrize("name", MODELS)


def sweeps(mrf, width=3, **options):
    """The labels and changes of a few sweeps."""
    trees, x = mrf.backend.tree_set("ribbons", width=width, **options), random_labels(mrf)
    rng = np.random.default_rng(0)
    changes = [trees.sweep(x, rng, reverse=number == 1) for number in range(3)]
    return changes, x.tolist()


@every_model
def test_ribbons_split_into_segments_have_the_same_labels(name, monkeypatch):
    mrf = MODELS[name]()
    expected = sweeps(mrf)
    for steps in (1, 2, 3, 5, 16, 31, 64, 92):
        monkeypatch.setattr(ribbons, "_segment_steps", lambda costs, bar, memory, steps=steps: min(steps, bar.steps))
        assert sweeps(mrf) == expected


@every_model
def test_ribbons_with_low_memory_have_the_same_labels(name, monkeypatch):
    mrf = MODELS[name]()
    expected = sweeps(mrf)
    monkeypatch.setattr(ribbons, "_FEW_BYTES", {"auto": 2**25, "low": 1})
    assert sweeps(mrf, memory="low") == expected
    monkeypatch.setattr(ribbons, "_FEW_BYTES", {"auto": 1, "low": 1})
    assert sweeps(mrf) == expected


def test_low_memory_splits_a_ribbon_and_needs_less():
    mrf = tf.GridMRF(np.zeros((4, 3000, 3), np.float32), tf.Potts(1))
    whole, split = (ribbons.profile_bytes(mrf.backend, 4, memory) for memory in ("auto", "low"))
    assert split < whole / 4


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("connectivity", [1, 2])
def test_tables_of_many_labels_are_part_of_the_estimate(connectivity, width):
    mrf = tf.GridMRF(np.zeros((4, 5, 20), np.float32), tf.Potts(1), connectivity=connectivity)
    trees = mrf.backend.tree_set("ribbons", width=width)
    trees.sweep(random_labels(mrf))
    estimate = ribbons.profile_bytes(mrf.backend, width)
    assert max(map(workspace_bytes, trees._workspaces.values())) <= estimate + 2**12


def test_single_lines_with_eight_neighbours_need_no_tables_of_three_labels():
    """A table of 500**3 entries would take 4 GB."""
    rng = np.random.default_rng(0)
    mrf = tf.GridMRF(rng.random((2, 3, 500), np.float32), tf.Potts(0.3), connectivity=2)
    assert ribbons.profile_bytes(mrf.backend, 1) < 2**27
    x = random_labels(mrf)
    y = x.copy()
    energy_after_sweeps(mrf, mrf.backend.tree_set("ribbons", width=1), x, 1)
    assert mrf.energy(x) < mrf.energy(y)


def workspace_bytes(workspace):
    _, profile, labels = workspace
    return sum(array.nbytes for array in (*profile, *labels) if isinstance(array, np.ndarray))


@every_model
def test_workspaces_are_no_larger_than_what_is_estimated(name):
    mrf = MODELS[name]()
    for width, memory in itertools.product((1, 2, 4), ("auto", "low")):
        trees = mrf.backend.tree_set("ribbons", width=width, memory=memory)
        trees.sweep(random_labels(mrf))
        for workspace in trees._workspaces.values():
            assert workspace_bytes(workspace) <= ribbons.profile_bytes(mrf.backend, width, memory) + 2**12


@every_model
def test_ribbons_do_not_depend_on_the_number_of_threads(name, monkeypatch):
    monkeypatch.setattr(ribbons, "_SERIAL_BELOW", 0)
    mrf = MODELS[name]()
    one, two = (sweeps(mrf, width=1, threads=threads) for threads in (1, 2))
    assert one == two


@pytest.mark.parametrize("order", ["fixed", "random"])
def test_groups_of_large_grids_are_shared_among_threads(order, monkeypatch):
    monkeypatch.setattr(ribbons, "_SERIAL_BELOW", 0)
    mrf = Case(11, (150, 90), "table", 2, connectivity=1, periodic=(False, True)).mrf
    results = [sweeps(mrf, threads=threads, order=order) for threads in (1, 2)]
    assert results[0] == results[1]
    assert mrf.backend.tree_set("ribbons", width=3, threads=2)._workers.count == 2


def test_threads_share_the_groups_of_a_phase(monkeypatch):
    monkeypatch.setattr(ribbons, "_SERIAL_BELOW", 0)
    shares, solve = [], ribbons.RibbonSet._workspace

    def watched(trees, bar, thread):
        shares.append(thread)
        return solve(trees, bar, thread)

    monkeypatch.setattr(ribbons.RibbonSet, "_workspace", watched)
    for name in MODELS:  # as in the test above
        shares.clear()
        sweeps(MODELS[name](), width=1, threads=2)
        assert set(shares) == {0, 1}, name


def test_layouts_that_are_kept_are_few(monkeypatch):
    monkeypatch.setattr(ribbons, "_KEPT_LINES", 50)
    mrf = MODELS["3-D"]()
    expected = sweeps(mrf)
    trees, rng, x = mrf.backend.tree_set("ribbons", width=4), np.random.default_rng(0), random_labels(mrf)
    for _ in range(30):
        trees.sweep(x, rng)
        assert len(trees._layouts) < 8
    monkeypatch.setattr(ribbons, "_KEPT_LINES", 2**16)
    assert sweeps(mrf) == expected
