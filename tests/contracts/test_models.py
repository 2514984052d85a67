"""The contracts of `Model`, `TiledModel` and `PairwiseCost`."""

import numpy as np
import pytest

import treefield as tf
from contracts.conformity import check_conforms
from contracts.implementations import MODELS, PAIRWISE, example
from treefield.backends.grid.lattice import Lattice
from treefield.backends.shared import PairwiseCost, WeightRange
from treefield.protocols import Model, TiledModel

every_model = pytest.mark.parametrize("name", MODELS)
every_cost = pytest.mark.parametrize("create", PAIRWISE, ids=[repr(create()) for create in PAIRWISE])


@every_model
def test_model_has_the_members_of_the_protocol(name):
    check_conforms(example(name).mrf, Model)
    assert isinstance(example(name).mrf, Model) and not isinstance(example(name).mrf, TiledModel)


@every_model
def test_energy_of_a_model_is_the_sum_of_its_costs(name):
    found = example(name)
    for k in np.random.default_rng(0).choice(len(found.labellings), 20):
        x = found.labellings[k].reshape(found.mrf.shape)
        if found.mrf.backend.mask is None or not x[~found.mrf.backend.mask].any():
            assert found.mrf.energy(x) == pytest.approx(found.energies[k], abs=1e-10)
            assert found.mrf.energy(x.astype(np.int64).tolist()) == found.mrf.energy(x)


@every_model
def test_model_keeps_its_backend(name):
    mrf = example(name).mrf
    assert (mrf.shape, mrf.size, mrf.n_labels) == (mrf.backend.shape, mrf.backend.size, mrf.backend.n_labels)


def test_tiled_model_has_the_members_of_the_protocol_and_is_searched_by_them():
    unary = np.random.default_rng(0).integers(0, 99, (40, 30, 3)).astype(np.uint8)
    tiled, whole = tf.TiledMRF(unary, tf.Potts(30), tile=16), tf.GridMRF(unary, tf.Potts(30))
    check_conforms(tiled, TiledModel)
    assert isinstance(tiled, TiledModel) and not isinstance(tiled, Model)
    assert tiled.shape == whole.shape and tiled.n_labels == whole.n_labels
    for method in ("auto", "t_icm", "t_ils"):
        res = tf.minimize(tiled, method=method, maxiter=3, rng=0)
        assert res.fun == whole.energy(np.asarray(res.x))


@every_cost
def test_pairwise_cost_has_the_members_of_the_protocol(create):
    check_conforms(create(), PairwiseCost)


@every_cost
def test_pairwise_cost_lists_every_value_of_its_table(create):
    cost = create()
    table = cost.table(3)
    assert table.shape == (3, 3) and table.dtype == np.float64
    assert set(table.reshape(-1).tolist()) <= set(np.asarray(cost.costs(3)).reshape(-1).tolist())
    assert cost.is_whole() == bool(np.all(table == np.floor(table)))


@every_cost
def test_edges_of_a_grid_share_one_pairwise_cost(create):
    assert create().edge_tables(Lattice((2, 2), [(1, 0), (0, 1)], (False, False)), 3) is None


@every_cost
def test_kernels_of_graphs_see_the_table_or_a_kind_they_know(create):
    layout = create().edge_layout(3, True)
    assert layout.table is not None or layout.kind in ("potts", "linear")
    assert layout.table is None or np.array_equal(layout.table, create().table(3))


@every_cost
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_message_rule_states_its_rounding_error(create, dtype):
    cost = create()
    error = cost.rule(3, np.dtype(dtype), WeightRange(0.0, 2.0, np.inf)).message_error(cost.table(3))
    assert error.relative >= 0 and error.absolute >= 0
