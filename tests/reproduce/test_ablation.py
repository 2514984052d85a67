"""The ablation: all combinations are run, and the page's effects are those of the file's figures."""

import csv
import io
import itertools

import numpy as np
import pytest

from tiny import tiny_runner
from treefield_reproduce.experiments import ablation as module
from treefield_reproduce.runner import QUICK

PROBLEMS = ["Ising", "Tsukuba"]
COMBINATIONS = list(itertools.product(*module.FACTORS.values()))


def read_rows(experiment, name):
    return list(csv.DictReader(io.StringIO(experiment.files[f"{name}.csv"].decode())))


@pytest.fixture(scope="module")
def done():
    return module.experiment(tiny_runner())


def number(text):
    return float(text.replace(",", ""))


def made_up(jump=0.0, accept=0.0, trees=0.0):
    """Energies from which level number k of each factor takes k times the gain of that factor."""
    gains = jump, accept, trees
    orders = [list(levels) for levels in module.FACTORS.values()]
    return {
        levels: 1000 - sum(g * order.index(level) for g, order, level in zip(gains, orders, levels, strict=True))
        for levels in COMBINATIONS
    }


def test_the_file_has_every_combination_on_both_problems_once(done):
    rows = read_rows(done, "combinations")
    keys = [(row["problem"], row["jump"], row["accept"], row["trees"]) for row in rows]
    assert keys == [(problem, *levels) for problem in PROBLEMS for levels in COMBINATIONS]
    assert len(keys) == 2 * 6 * 3 * 4


def test_main_effects_are_means_over_the_rows_of_the_file(done):
    cells, effects = read_rows(done, "combinations"), read_rows(done, "effects")
    assert len(effects) == 2 * (6 + 3 + 4)
    paper = {"jump": "uniform", "accept": "Metropolis", "trees": "rows-columns"}

    def mean(problem, factor, level):
        chosen = [row for row in cells if (row["problem"], row[factor]) == (problem, level)]
        return np.mean([float(row["energy"]) for row in chosen])

    def alone(problem, **changed):
        wanted = {"problem": problem, **paper, **changed}
        (row,) = [row for row in cells if all(row[key] == value for key, value in wanted.items())]
        return float(row["energy"])

    for row in effects:
        problem, factor, level = row["problem"], row["factor"], row["level"]
        expected = mean(problem, factor, level), alone(problem, **{factor: level})
        against = expected[0] - mean(problem, factor, paper[factor]), expected[1] - alone(problem)
        assert [number(row[name]) for name in ("mean energy", "alone")] == pytest.approx(expected, abs=0.51)
        shown = [number(row[name]) for name in ("against the paper's", "alone, against the paper's")]
        assert shown == pytest.approx(against, abs=0.51)


def test_the_lesson_names_the_largest_effect_first():
    lesson = module._lesson("Somewhere", made_up(jump=1, accept=10, trees=2))
    assert lesson == (
        "Somewhere: most comes from the acceptance (per component: 20 lower in the mean), then from the tree set "
        "(combs: 6 lower in the mean), then from the jump (mixed: 5 lower in the mean). The best combination is "
        "mixed, per component, combs with 969; the paper's has 1,000."
    )


def test_the_lesson_leaves_out_effects_that_do_not_help():
    assert "the jump (mixed" in module._lesson("Somewhere", made_up(jump=1, accept=-1, trees=-1))
    assert "acceptance (" not in module._lesson("Somewhere", made_up(jump=1, accept=-1, trees=-1))
    assert "nothing helps" in module._lesson("Somewhere", made_up(accept=-1))


def test_the_paper_s_levels_are_the_defaults_of_t_ils(monkeypatch):
    runner, problem = tiny_runner(), module.build_problems(tiny_runner(), range(1))[0]
    first = {name: next(iter(levels.values())) for name, levels in module.FACTORS.items()}
    runs = [runner.run("", module.PAPER, problem.models[0], maxiter=20, **options) for options in ({}, first)]
    assert np.array_equal(runs[0].trace["energy"], runs[1].trace["energy"])


def test_a_quick_run_has_one_seed_and_others_have_more(monkeypatch):
    seen = []
    monkeypatch.setattr(module, "build_problems", lambda runner, seeds: seen.append(len(seeds)) or 1 / 0)
    for effort in (QUICK, tiny_runner().effort):
        runner = tiny_runner()
        runner.effort = effort
        with pytest.raises(ZeroDivisionError):
            module.experiment(runner)
    assert seen == [1, 2]


def test_the_ablation_has_a_figure_for_both_problems(done):
    assert {"combinations-1.png", "combinations-1.svg", "combinations-2.png", "combinations-2.svg"} <= set(done.files)
    svg = done.files["combinations-1.svg"].decode()
    assert svg.startswith("<?xml") and not done.comparisons
