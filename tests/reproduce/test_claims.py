"""The paper's claims: every setting is tried, operations are counted right, and verdicts follow the energies."""

import csv
import io
import types

import numpy as np
import pytest

import naive
from tiny import TINY, tiny_runner
from treefield.moves import UniformJump
from treefield_reproduce.experiment import Experiment
from treefield_reproduce.experiments import claims as module
from treefield_reproduce.experiments import sweep_costs
from treefield_reproduce.methods import METHODS
from treefield_reproduce.problems import ising_field
from treefield_reproduce.settings import FULL_MULTISTART, MULTISTART, PAPER, SETTINGS, SHARES, jumps_up_to, restart

PROBLEMS = ["Ising", "Tsukuba"]
TRACE = [("seconds", float), ("energy", float), ("best", float)]


def read_rows(experiment, name):
    return list(csv.DictReader(io.StringIO(experiment.files[f"{name}.csv"].decode())))


@pytest.fixture(scope="module")
def done():
    return module.experiment(tiny_runner())


def result(energy, changes=(), nit=5):
    """The part of a run that claims read: it starts at 100, has a first local minimum at 50, and makes jumps."""
    energies = np.cumsum([100.0, -50.0, *changes])
    trace = np.array([(0.1 * i, e, min(energies[: i + 1])) for i, e in enumerate(energies)], TRACE)
    return types.SimpleNamespace(fun=float(energy), nit=nit, trace=trace)


def results_of(default=50.0, **energies):
    """Made-up energies, the same on both problems, for every setting."""
    by_name = dict.fromkeys(SETTINGS, default) | energies
    return {name: {problem: [result(energy)] for problem in PROBLEMS} for name, energy in by_name.items()}


def compare_with(part, found):
    """The comparisons that a part makes of made-up energies."""
    experiment = Experiment("claims", tiny_runner())
    part(experiment, found, "Equal time.")
    return experiment.comparisons


def test_every_setting_is_run_on_both_problems_with_every_seed(done):
    runs = {(row["problem"], row["method"], row["seed"]) for row in read_rows(done, "traces")}
    assert runs == {(p, name, str(seed)) for p in PROBLEMS for name in SETTINGS for seed in range(TINY.seeds)}


def test_seeds_are_limited_where_there_are_many(monkeypatch):
    seen = []
    monkeypatch.setattr(module, "run_settings", lambda claims, runner, seeds: seen.append(list(seeds)) or 1 / 0)
    runner = tiny_runner(seed=7)
    runner.effort = types.SimpleNamespace(seeds=5)
    with pytest.raises(ZeroDivisionError):
        module.experiment(runner)
    assert seen == [[7, 8, 9]]


def test_tables_hold_every_setting_of_their_claim(done):
    asked = {
        "local-search": [PAPER, "ILS over ICM"],
        "inner-sweeps": [PAPER, "T_inner = 2", "full local minima"],
        "great-jumps": [*map(jumps_up_to, SHARES), MULTISTART, FULL_MULTISTART],
        "genetic": [PAPER, "genetic (paper)", "genetic (best)", "T-ILS (best)"],
        "temperature": [PAPER, "β = 0", "β = ∞", "full local minima", "full local minima, β = 0"],
    }
    for name, settings in asked.items():
        assert [(row["problem"], row["search"]) for row in read_rows(done, name)] == [
            (problem, setting) for problem in PROBLEMS for setting in settings
        ]
    assert [(row["costs"], row["labels"]) for row in read_rows(done, "costs")] == [
        (kind, str(labels)) for kind in ("table", "Potts") for labels in TINY.cost_labels
    ]


def test_all_claims_are_judged_and_every_failure_has_a_reason(done):
    assert len(done.comparisons) == 9
    for comparison in done.comparisons:
        assert bool(comparison.why) == (comparison.verdict == "does not hold")


def test_settings_differ_from_the_paper_s_in_what_their_name_says():
    method, changed = SETTINGS["rho_max = 30 %"]
    assert (method, repr(changed["jump"])) == (PAPER, repr(UniformJump(0.3)))
    assert jumps_up_to(10) == PAPER and METHODS[PAPER].options == {}  # 10 % is the default
    assert METHODS["genetic (paper)"].options["crossover"] == "site"


def test_multistart_forgets_where_it_was():
    mrf = types.SimpleNamespace(n_labels=4)
    zeros, threes = np.zeros((40, 40), np.int32), np.full((40, 40), 3, np.int32)
    drawn = [restart(x, mrf, np.random.default_rng(0)) for x in (zeros, threes)]
    assert np.array_equal(*drawn) and not zeros.any()
    assert drawn[0].dtype == np.int32 and set(np.unique(drawn[0])) == {0, 1, 2, 3}


def test_accepting_all_is_seen_to_raise_the_energy_and_greed_is_not():
    def share(beta):
        res = tiny_runner().run("Ising", PAPER, ising_field(12), maxiter=60, beta=beta)
        return module._share([res], "raise")

    assert share(0.0) > 0.1 and share(np.inf) == 0


def test_shares_of_jumps_are_counted_from_the_first_local_minimum_on():
    counted = module._acceptance([result(0, changes=[-3, 0, 2, -1])])
    assert counted == {"jumps that lower the energy": "50.0 %", "jumps that raise the energy": "25.0 %"}
    assert set(module._acceptance([result(0)]).values()) == {"0.00 %"}


def test_claims_that_contradict_the_formula_do_not_hold():
    found = results_of()
    found["β = 0"] = {problem: [result(50, changes=[4, -6])] for problem in PROBLEMS}
    words = compare_with(module._check_temperature, found)[0]
    assert words.worse and words.ours == "50 %, 0 % of jumps go up"
    found["β = 0"], found["β = ∞"] = found["β = ∞"], found["β = 0"]
    assert not compare_with(module._check_temperature, found)[0].worse


@pytest.mark.parametrize(
    ("part", "number", "holding", "failing"),
    [
        (module._check_local_search, 0, {"ILS over ICM": 51}, {"ILS over ICM": 49}),
        (module._check_inner_sweeps, 0, {"full local minima": 49.99, "T_inner = 2": 40}, {"full local minima": 49}),
        (module._check_inner_sweeps, 1, {"T_inner = 2": 49.99, "full local minima": 40}, {"T_inner = 2": 49}),
        (
            module._check_great_jumps,
            0,
            {"rho_max = 100 %": 58, MULTISTART: 60},
            {"rho_max = 100 %": 52, MULTISTART: 60},
        ),
        (module._check_genetic, 0, {"genetic (paper)": 50}, {"genetic (paper)": 51}),
        (module._check_temperature, 1, {"β = 0": 60, "β = ∞": 55}, {"β = 0": 60, "β = ∞": 45}),
        (module._check_temperature, 1, {"β = 0": 50, "β = ∞": 50}, {"β = 0": 45, "β = ∞": 60}),
    ],
)
def test_verdicts_follow_the_energies(part, number, holding, failing):
    holds, fails = (compare_with(part, results_of(**energies))[number] for energies in (holding, failing))
    assert (holds.verdict, holds.why, holds.worse) == ("holds", "", False)
    assert (fails.verdict, fails.worse) == ("does not hold", True) and fails.why


def test_one_problem_on_which_a_claim_fails_is_enough():
    found = results_of(**{"ILS over ICM": 60})
    found["ILS over ICM"]["Tsukuba"] = [result(40)]
    assert compare_with(module._check_local_search, found)[0].worse


@pytest.mark.parametrize(("shape", "labels"), [((3, 4), 2), ((2, 5), 3), ((1, 4), 3), ((4, 4), 5)])
def test_operations_are_as_many_as_a_loop_over_sites_labels_and_neighbours_counts(shape, labels):
    icm = sum(1 for i in np.ndindex(shape) for _ in range(labels) for _ in naive.neighbours(shape, i))
    absorbed = tables = potts = 0
    for axis in (0, 1):  # of the lines that are trees
        for i in np.ndindex(shape):
            for j in naive.neighbours(shape, i):
                along = i[1 - axis] == j[1 - axis]
                absorbed += 0 if along else labels
                tables += sum(1 for _ in np.ndindex(labels, labels)) if along else 0  # the message from i to j
                potts += labels if along else 0
    assert sweep_costs.icm_operations(shape, labels) == icm
    assert sweep_costs.t_icm_operations(shape, labels) == tables + absorbed == (labels + 1) * icm
    assert sweep_costs.t_icm_operations(shape, labels, "Potts") == potts + absorbed == 2 * icm


def test_each_tree_set_may_take_as_many_times_longer_as_there_are_operations():
    experiment = Experiment("claims", tiny_runner())
    times = {"sites": 1.0, "bands": 2.9, "rows-columns": 3.1}
    sweep_costs._compare(experiment, {2: times, 4: times})
    verdicts = {comparison.what: (comparison.verdict, comparison.why) for comparison in experiment.comparisons}
    (rows, bands) = [next(verdict for what, verdict in verdicts.items() if name in what) for name in sweep_costs.SETS]
    assert bands == ("holds", "")
    assert rows[0] == "does not hold" and rows[1].startswith("more than L + 1 times the time with 2 labels: ")


def test_differences_are_taken_seed_by_seed():
    found = results_of()
    found[PAPER]["Ising"] = [result(100), result(200), result(400)]
    found["ILS over ICM"]["Ising"] = [result(202), result(404), result(101)]  # the median is 202, as PAPER's is 200
    assert module._excess(found, "ILS over ICM", PAPER, "Ising") == pytest.approx(1.02)
