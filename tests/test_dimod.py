"""The samplers for dimod: they do what dimod asks of samplers, and find the least energy of small models."""

import itertools
import os
import signal
import subprocess
import sys
import threading
import unittest

import dimod
import dimod.testing
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import treefield as tf
from small import check_raises
from treefield.dimod import TreeILSDQMSampler, TreeILSSampler, dqm_to_graph, from_graph, to_graph

SAMPLER = TreeILSSampler()
VARTYPES = ("SPIN", "BINARY")


@dimod.testing.load_sampler_bqm_tests(TreeILSSampler)
class TestTreeILSSampler(unittest.TestCase):
    """The tests that dimod has for any sampler."""

    def test_sampler_conforms_to_the_dimod_sampler_api(self):
        dimod.testing.assert_sampler_api(TreeILSSampler())


def random_bqm(size, vartype="SPIN", seed=0, density=0.5):
    """Integer biases, names that do not sort, an offset."""
    rng = np.random.default_rng(seed)
    bqm = dimod.BinaryQuadraticModel(vartype)
    names = [("x", i) if i % 2 else f"v{i}" for i in range(size)]
    for name in names:
        bqm.add_variable(name, int(rng.integers(-5, 6)))
    for u, v in itertools.combinations(names, 2):
        if rng.random() < density:
            bqm.add_interaction(u, v, int(rng.integers(-5, 6)))
    bqm.offset = 2.5
    return bqm


@st.composite
def bqms(draw, most=8):
    kind = draw(st.sampled_from([dimod.Float32BQM, dimod.Float64BQM, dimod.DictBQM]))
    bqm = kind(draw(st.sampled_from(VARTYPES)))
    bias = st.one_of(st.integers(-9, 9), st.floats(-10, 10, width=16))
    name = st.one_of(st.integers(-99, 99), st.text(max_size=3), st.tuples(st.integers()))
    names = draw(st.lists(name, max_size=most, unique=True))
    for name in names:
        bqm.add_variable(name, draw(bias))
    pairs = list(itertools.combinations(names, 2))
    for u, v in draw(st.lists(st.sampled_from(pairs), max_size=2 * most)) if pairs else []:
        bqm.add_interaction(*((u, v) if draw(st.booleans()) else (v, u)), draw(bias))
    bqm.offset = draw(bias)
    return bqm


@given(bqms())
def test_dimod_sampler_finds_the_least_energy_and_reports_it_exactly(bqm):
    sampleset = SAMPLER.sample(bqm, seed=1)
    assert sampleset.vartype is bqm.vartype and set(sampleset.variables) == set(bqm.variables)
    dimod.testing.assert_sampleset_energies(sampleset, bqm)
    least = dimod.ExactSolver().sample(bqm).first.energy if len(bqm) else bqm.offset
    assert sampleset.first.energy == pytest.approx(least, rel=1e-6, abs=1e-9)
    assert not sampleset.info["lower_bound"] > sampleset.first.energy


@given(bqms())
def test_a_graph_has_the_energies_of_its_bqm(bqm):
    if not len(bqm):
        check_raises(lambda: to_graph(bqm), ValueError, "no variables")
        return
    mrf, variables = to_graph(bqm)
    back = from_graph(mrf, variables, bqm.vartype)
    assert back.vartype is bqm.vartype and list(back.variables) == variables
    low, high = sorted(bqm.vartype.value)
    for x in itertools.product((0, 1), repeat=len(bqm)):
        sample = {v: high if label else low for v, label in zip(variables, x, strict=True)}
        assert mrf.energy(x) == pytest.approx(float(bqm.energy(sample)), rel=1e-9, abs=1e-9)
        assert back.energy(sample) == pytest.approx(mrf.energy(x), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("vartype", VARTYPES)
def test_dimod_sampler_with_the_same_seed_gives_the_same_samples(vartype):
    bqm = random_bqm(300, vartype)
    first, second, other = (SAMPLER.sample(bqm, num_reads=3, seed=seed, maxiter=2) for seed in (7, 7, 8))
    np.testing.assert_array_equal(first.record.sample, second.record.sample)
    assert len(first) == 3 and not np.array_equal(first.record.sample, other.record.sample)
    more = SAMPLER.sample(bqm, num_reads=4, seed=7, maxiter=2)
    np.testing.assert_array_equal(more.record.sample[:3], first.record.sample)


def test_reads_are_independent_searches():
    sampleset = SAMPLER.sample(random_bqm(60), num_reads=6, seed=0, method="icm")
    assert len(np.unique(sampleset.record.sample, axis=0)) > 1
    assert len(sampleset.info["seconds"]) == len(sampleset.info["messages"]) == 6


@pytest.mark.parametrize("vartype", VARTYPES)
@pytest.mark.parametrize("given_as", VARTYPES)
def test_initial_states_are_where_reads_start(vartype, given_as):
    bqm = random_bqm(20, vartype)
    states = dimod.RandomSampler().sample(bqm, num_reads=2, seed=3).change_vartype(given_as, inplace=False)
    started = states.change_vartype(vartype, inplace=False)
    sampleset = SAMPLER.sample(bqm, initial_states=states, method="t_icm", maxiter=0)
    assert len(sampleset) == 2
    for sample, start in zip(sampleset.samples(sorted_by=None), started.samples(sorted_by=None), strict=True):
        assert dict(sample) == dict(start)
    searched = SAMPLER.sample(bqm, initial_states=states, maxiter=1, seed=0)
    assert (searched.record.energy <= bqm.energies(started)).all()


def test_initial_states_are_not_changed():
    bqm = random_bqm(4, "BINARY")
    states = np.array([[-1, 1, -1, 1]], np.int8)
    SAMPLER.sample(bqm, initial_states=(states, list(bqm.variables)), seed=0)
    assert states.tolist() == [[-1, 1, -1, 1]]


def test_missing_initial_states_are_tiled_or_drawn():
    bqm = random_bqm(6)
    state = dict.fromkeys(bqm.variables, 1)
    same = SAMPLER.sample(
        bqm, initial_states=state, num_reads=3, initial_states_generator="tile", method="t_icm", maxiter=0
    )
    assert (same.record.sample == 1).all() and len(same) == 3
    filled = SAMPLER.sample(bqm, initial_states=state, num_reads=3, seed=0, method="t_icm", maxiter=0)
    assert (filled.record.sample[0] == 1).all() and len(np.unique(filled.record.sample, axis=0)) > 1
    check_raises(
        lambda: SAMPLER.sample(bqm, initial_states=state, num_reads=3, initial_states_generator="none"),
        ValueError,
        "insufficient number of initial states",
    )
    check_raises(lambda: SAMPLER.sample(bqm, initial_states={"other": 1}), ValueError, "mismatch between variables")


@pytest.mark.parametrize("vartype", VARTYPES)
def test_bqms_without_variables_or_without_edges_are_sampled(vartype):
    empty = SAMPLER.sample(dimod.BinaryQuadraticModel({}, {}, 1.5, vartype), num_reads=2)
    assert empty.record.energy.tolist() == [1.5, 1.5] and not list(empty.variables)
    assert empty.info["lower_bound"] == 1.5 and empty.info["gap"] == 0
    loose = SAMPLER.sample(dimod.BinaryQuadraticModel({"a": 1, "b": -2, "c": 0}, {}, 0.5, vartype))
    assert loose.first.energy == (-2.5 if vartype == "SPIN" else -1.5)
    assert loose.info["lower_bound"] == loose.first.energy


def test_bqms_that_are_chains_are_solved_exactly():
    rng = np.random.default_rng(0)
    J = {(i, i + 1): rng.normal() for i in range(300)}
    sampleset = SAMPLER.sample_ising({}, J)
    assert sampleset.first.energy == pytest.approx(-sum(map(abs, J.values())))
    assert sampleset.info["gap"] < 1e-9


def test_an_offset_does_not_end_the_search_early():
    bqm = random_bqm(12, seed=5)
    bqm.offset = 1e7
    assert SAMPLER.sample(bqm, seed=0).first.energy == dimod.ExactSolver().sample(bqm).first.energy


def test_dimod_sampler_passes_keywords_to_the_method():
    bqm = random_bqm(10)
    for method in ("anneal", "t_ils", "icm", "t_icm"):
        sampleset = SAMPLER.sample(
            bqm, method=method, seed=0, **({} if method in ("icm", "t_icm") else {"maxiter": 20})
        )
        dimod.testing.assert_sampleset_energies(sampleset, bqm)


def test_unknown_keywords_are_ignored_with_a_warning():
    with pytest.warns(dimod.exceptions.SamplerUnknownArgWarning, match="num_sweeps"):
        SAMPLER.sample(random_bqm(3), num_sweeps=100)
    assert set(SAMPLER.parameters) >= {"num_reads", "initial_states", "initial_states_generator", "seed", "time_limit"}


def test_dimod_sampler_works_under_composites():
    poly = dimod.BinaryPolynomial({"a": -1, "ab": 2, "abc": -3, "bcd": 1}, "BINARY")
    sampleset = dimod.HigherOrderComposite(SAMPLER).sample_poly(poly, penalty_strength=10, seed=0)
    assert sampleset.first.energy == dimod.ExactPolySolver().sample_poly(poly).first.energy


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"num_reads": 0}, ValueError, "positive integer"),
        ({"num_reads": 1.5}, TypeError, "positive integer"),
        ({"seed": -1}, ValueError, "seed must be at least 0, got -1"),
        ({"seed": 0.5}, TypeError, "seed must be an integer"),
        ({"seed": True}, TypeError, "seed must be an integer"),
        ({"time_limit": -1}, ValueError, "time_limit"),
        ({"method": "best"}, ValueError, "method must be one of"),
        ({"initial_states_generator": "guess"}, ValueError, "initial_states_generator"),
        ({"interrupt_function": 3}, TypeError, "interrupt_function must be a function of no arguments"),
    ],
)
def test_dimod_sampler_refuses_bad_keywords(keywords, error, message):
    check_raises(lambda: SAMPLER.sample(random_bqm(3, density=1), **keywords), error, message)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_biases_that_are_no_numbers_are_refused(value):
    for bqm in (
        dimod.BQM({"a": value}, {}, "SPIN"),
        dimod.BQM({}, {"ab": value}, "BINARY"),
        dimod.BQM({"a": 1}, {}, value, "SPIN"),
    ):
        check_raises(lambda given=bqm: SAMPLER.sample(given), ValueError, "NaN or infinity")


def test_dimod_sampler_refuses_an_argument_that_is_not_a_bqm():
    check_raises(lambda: SAMPLER.sample({("a", "b"): 1}), TypeError, "got dict; for a dict there are sample_qubo")
    check_raises(lambda: to_graph(dimod.DiscreteQuadraticModel()), TypeError, "must be a dimod.BinaryQuadraticModel")
    check_raises(lambda: from_graph(random_bqm(3)), TypeError, "mrf must be a GraphMRF")


def test_graphs_that_are_no_bqm_are_refused():
    three = tf.GraphMRF([[0, 1], [0, 1, 2]], [(0, 1)], tf.Potts(1))
    check_raises(lambda: from_graph(three), ValueError, "site 1 has 3")
    check_raises(lambda: from_graph(tf.GraphMRF([[0, np.inf]], [], tf.Potts(1))), ValueError, "forbidden")
    check_raises(lambda: from_graph(tf.GraphMRF(np.eye(2), [], tf.Potts(1)), ["a", "a"]), ValueError, "1 different")


def test_an_interrupt_function_returns_what_has_been_found():
    calls = []

    def interrupt():
        calls.append(1)
        return len(calls) > 5

    bqm = random_bqm(60)
    sampleset = SAMPLER.sample(bqm, num_reads=100, seed=0, maxiter=3, interrupt_function=interrupt)
    assert 1 <= len(sampleset) < 6 and len(calls) == 6
    dimod.testing.assert_sampleset_energies(sampleset, bqm)


def test_ctrl_c_returns_what_has_been_found():
    bqm = random_bqm(60)
    SAMPLER.sample(bqm, seed=0, maxiter=2)  # compiled
    interrupt = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    interrupt.start()
    sampleset = SAMPLER.sample(bqm, num_reads=1000, seed=0, time_limit=60, method="t_ils")
    interrupt.join()
    assert 1 <= len(sampleset) < 1000
    assert "interrupted" in sampleset.info["messages"][-1]
    dimod.testing.assert_sampleset_energies(sampleset, bqm)


def test_a_sample_set_can_be_saved():
    sampleset = SAMPLER.sample(random_bqm(5), seed=0)
    again = dimod.SampleSet.from_serializable(sampleset.to_serializable())
    assert again == sampleset


def small_dqm(seed=0):
    rng = np.random.default_rng(seed)
    dqm = dimod.DiscreteQuadraticModel()
    for name, cases in (("a", 3), (("b",), 1), (7, 4), ("d", 2)):
        dqm.set_linear(dqm.add_variable(cases, label=name), rng.integers(-5, 6, cases))
    for u, v in (("a", 7), (7, ("b",)), ("d", "a"), ("d", 7)):
        dqm.set_quadratic(u, v, rng.integers(-5, 6, (dqm.num_cases(u), dqm.num_cases(v))))
    dqm.set_quadratic_case("d", 1, ("b",), 0, 3.5)  # the other case costs nothing
    dqm.offset = 1.25
    return dqm


@pytest.mark.parametrize("seed", range(5))
def test_dqms_are_converted_and_sampled_to_their_least_energy(seed):
    dqm = small_dqm(seed)
    mrf, variables = dqm_to_graph(dqm)
    assert mrf.label_counts.tolist() == [3, 1, 4, 2]
    for x in itertools.product(*map(range, mrf.label_counts)):
        assert mrf.energy(x) == dqm.energy(dict(zip(variables, x, strict=True)))
    sampleset = TreeILSDQMSampler().sample_dqm(dqm, num_reads=2, seed=0)
    dimod.testing.assert_sampleset_energies_dqm(sampleset, dqm)
    assert len(sampleset) == 2
    assert sampleset.first.energy == dimod.ExactDQMSolver().sample_dqm(dqm).first.energy


def test_dqms_without_variables_and_with_named_cases_are_sampled():
    empty = dimod.DiscreteQuadraticModel()
    empty.offset = 2
    assert TreeILSDQMSampler().sample_dqm(empty).record.energy.tolist() == [2]
    check_raises(lambda: dqm_to_graph(empty), ValueError, "no variables")
    check_raises(lambda: dqm_to_graph(random_bqm(2)), TypeError, "DiscreteQuadraticModel")
    named = dimod.CaseLabelDQM()
    named.add_variable(["red", "green"], label="colour")
    named.set_linear("colour", [1, -1])
    sampleset = TreeILSDQMSampler().sample_dqm(named, seed=0)
    assert sampleset.first.energy == -1 and named.map_sample(sampleset.first.sample) == {"red": 0, "green": 1}
    with pytest.warns(dimod.exceptions.SamplerUnknownArgWarning, match="sweeps"):
        TreeILSDQMSampler().sample_dqm(small_dqm(), sweeps=3)


def test_without_dimod_the_message_says_what_to_install():
    code = "import sys; sys.modules['dimod'] = None\nimport treefield.dimod"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and 'treefield.dimod needs dimod: pip install "treefield[dimod]"' in done.stderr


def test_treefield_alone_does_not_load_dimod():
    code = "import sys, treefield; treefield.GraphMRF; print({'dimod', 'networkx'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
