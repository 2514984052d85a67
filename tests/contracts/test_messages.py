"""The contracts of `Dual` and `Beliefs`, over every kind of model."""

import numpy as np
import pytest

from contracts.conformity import check_conforms
from contracts.implementations import GRIDS, MODELS, example, is_forest
from treefield.protocols import Beliefs, Dual

every_model = pytest.mark.parametrize("name", MODELS)
FORESTS = [name for name in MODELS if is_forest(name)]
ITERATIONS = 30


def is_legal(backend, x):
    return bool((x >= 0).all() and (x < backend.label_counts).all())


@every_model
def test_dual_has_the_members_of_the_protocol(name):
    check_conforms(example(name).mrf.backend.dual(), Dual)


@every_model
def test_bound_of_the_dual_never_falls_and_never_exceeds_the_minimum(name):
    found = example(name)
    backend = found.mrf.backend
    for arithmetic in ("auto", "exact"):
        dual, x, bounds = backend.dual(arithmetic), np.full(backend.shape, -5, np.int32), [-np.inf]
        for number in range(ITERATIONS):
            bounds.append(dual.iterate(x))
            assert bounds[-1] == dual.bound >= bounds[-2] and dual.margin >= 0
            assert bounds[-1] <= found.minimum + 1e-9 and is_legal(backend, x)
            if number % 10 == 9:
                dual.refine(0.0)
        assert bounds[-1] > -np.inf
        while dual.refine(0.0):
            assert dual.iterate(x) >= bounds[-1]


@pytest.mark.parametrize("name", FORESTS)
def test_bound_of_the_dual_reaches_the_minimum_of_a_forest(name):
    found = example(name)
    dual, x = found.mrf.backend.dual("exact"), np.zeros(found.mrf.shape, np.int32)
    for _ in range(ITERATIONS):
        dual.iterate(x)
        dual.refine(1e-12)
    assert dual.bound == pytest.approx(found.minimum, abs=1e-6 + dual.margin)
    assert found.energy(x) == pytest.approx(found.minimum, abs=1e-6)


@every_model
def test_dual_continues_from_its_state_bit_for_bit(name):
    backend = example(name).mrf.backend
    first, x = backend.dual("exact"), np.zeros(backend.shape, np.int32)
    for number in range(8):
        first.iterate(x)
        arithmetic, messages = first.get_state()
        assert messages.dtype == np.uint8
        second, y = backend.dual("exact"), x.copy()
        second.set_state(arithmetic, messages.copy(), first.bound)
        if number == 4:
            assert first.refine(0.0) == second.refine(0.0)
        for _ in range(3):
            assert first.iterate(x) == second.iterate(y)
            np.testing.assert_array_equal(x, y)
        assert first.get_state()[0] == second.get_state()[0]
        np.testing.assert_array_equal(first.get_state()[1], second.get_state()[1])


@every_model
def test_dual_refuses_a_state_of_another_model(name):
    dual = example(name).mrf.backend.dual()
    arithmetic, messages = dual.get_state()
    for wrong in (("float16", messages), (arithmetic, messages[:-1])):
        with pytest.raises(ValueError, match=r"cannot be reached|expected"):
            example(name).mrf.backend.dual().set_state(*wrong, 0.0)


@every_model
def test_dual_refuses_unknown_arithmetic(name):
    with pytest.raises(ValueError, match="arithmetic"):
        example(name).mrf.backend.dual("float16")
    if name not in GRIDS:
        with pytest.raises(ValueError, match='"float64"'):
            example(name).mrf.backend.dual("int16")


@every_model
def test_beliefs_have_the_members_of_the_protocol(name):
    check_conforms(example(name).mrf.backend.beliefs(), Beliefs)


@every_model
@pytest.mark.parametrize("update", ["update_all", "update_in_turn"])
def test_beliefs_decode_legal_labels_and_report_the_largest_change(name, update):
    backend = example(name).mrf.backend
    beliefs, x = backend.beliefs(), np.full(backend.shape, -5, np.int32)
    beliefs.decode(x)
    if "forbidden" not in name:  # messages are 0 at first
        np.testing.assert_array_equal(x, backend.best_labels())
    for _ in range(4):
        assert getattr(beliefs, update)(0.5) >= 0
        for decode in (beliefs.decode, beliefs.decode_in_turn):
            x[:] = -5
            decode(x)
            assert is_legal(backend, x)


@pytest.mark.parametrize("name", FORESTS)
@pytest.mark.parametrize("update", ["update_all", "update_in_turn"])
def test_beliefs_are_exact_on_forests(name, update):
    found = example(name)
    beliefs, x = found.mrf.backend.beliefs(), np.zeros(found.mrf.shape, np.int32)
    changes = [getattr(beliefs, update)(0.0) for _ in range(found.mrf.size + 2)]
    assert changes[-1] <= 1e-12
    for decode in (beliefs.decode, beliefs.decode_in_turn):
        decode(x)
        assert found.energy(x) == pytest.approx(found.minimum, abs=1e-10)
