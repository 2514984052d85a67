"""The paper's three experiments, on tiny fields and pictures."""

import csv
import io
import sys

import numpy as np
import pytest

import treefield as tf
from tiny import TINY, tiny_datasets, tiny_runner
from treefield_reproduce import report_page
from treefield_reproduce.experiment import Experiment
from treefield_reproduce.experiments import run_experiment, stereo
from treefield_reproduce.experiments.denoise import psnr, roughness
from treefield_reproduce.experiments.stereo import shades, wrong
from treefield_reproduce.problems import denoising_field, ising_field, luminance, stereo_field
from treefield_reproduce.summaries import format_percent, median_energy, median_run, relative_difference


@pytest.fixture(scope="module")
def done():
    return {name: run_experiment(name, tiny_runner()) for name in ("ising", "stereo", "denoise")}


def rows_of(content):
    return list(csv.DictReader(io.StringIO(content.decode())))


def number(text):
    return float(text.replace(",", ""))


def test_stereo_costs_compare_each_pixel_with_the_one_to_its_left():
    pair = tiny_datasets().pairs[0]
    mrf = stereo_field(pair.left, pair.right, pair.labels)
    left, right = luminance(pair.left), luminance(pair.right)
    for i, j, d in np.ndindex(*mrf.shape, pair.labels):
        assert mrf.unary[i, j, d] == abs(left[i, j] - right[i, max(j - d, 0)])


def test_denoising_costs_are_truncated_distances():
    grey = np.array([[0, 120, 255]], np.uint8)
    mrf = denoising_field(grey)
    for j, label in np.ndindex(3, 256):
        assert mrf.unary[0, j, label] == min(abs(int(grey[0, j]) - label), 100)
    assert mrf.energy([[0, 120, 255]]) == 50


def test_an_ising_energy_is_the_sum_over_spins_and_couplings():
    mrf = ising_field(5, 0.5, seed=3)
    x = np.random.default_rng(0).integers(2, size=(5, 5))
    spins, fields = 2.0 * x - 1, mrf.unary[..., 1].astype(float)
    down, right = (weight.astype(float) for weight in mrf.weights)
    energy = np.sum(fields * spins) + np.sum(down * spins[1:] * spins[:-1])
    assert mrf.energy(x) == pytest.approx(energy + np.sum(right * spins[:, 1:] * spins[:, :-1]))
    assert max(abs(down).max(), abs(right).max()) <= 0.5 < abs(fields).max() <= 1


def test_every_method_has_a_row_for_each_strength(done):
    rows = rows_of(done["ising"].files["energies.csv"])
    methods = [row["method"] for row in rows if row["λ"] == "1"]
    assert {"ICM", "T-ICM", "loopy BP (paper)", "T-ILS (paper)", "T-ILS (best)", "annealing"} < set(methods)
    assert methods == [row["method"] for row in rows if row["λ"] == "0.5"]


def test_traces_hold_every_run_and_their_best_never_rises(done):
    traces = {}
    for row in rows_of(done["ising"].files["traces.csv"]):
        traces.setdefault((row["problem"], row["method"], row["seed"]), []).append(float(row["best"]))
    assert len(traces) == 2 * 9 * TINY.seeds
    for best in traces.values():
        assert (np.diff(best) <= 0).all()


def test_the_energies_of_the_table_are_those_of_the_methods(done):
    pair = tiny_datasets().pairs[0]
    mrf = stereo_field(pair.left, pair.right, pair.labels)
    rows = {row["method"]: row for row in rows_of(done["stereo"].files["tsukuba.csv"])}
    assert number(rows["scan-line, nu = 1"]["energy"]) == pytest.approx(tf.scan_line(mrf).fun, abs=0.5)
    swept = tf.t_icm(mrf, "scan-line", trees="rows-columns", maxiter=1)
    assert number(rows["scan-line → T-ICM(1)"]["energy"]) == pytest.approx(swept.fun, abs=0.5)
    bound = number(rows["lower bound"]["energy"])
    assert all(number(row["energy"]) >= bound for row in rows.values())
    for name, energy in stereo.PAPER["Tsukuba"].items():
        assert number(rows[name]["paper"]) == energy


def test_every_figure_of_the_papers_table_is_compared(done):
    comparisons = {comparison.what: comparison for comparison in done["stereo"].comparisons}
    for row, energy in stereo.PAPER["Tsukuba"].items():
        comparison = comparisons[f"Tsukuba: {row}"]
        assert number(comparison.paper) == energy and comparison.verdict.endswith("lower")


def test_the_table_of_variants_begins_with_ours_and_ends_with_the_papers(done):
    table = {row["method"]: row["energy"] for row in rows_of(done["stereo"].files["tsukuba.csv"])}
    rules = rows_of(done["stereo"].files["tsukuba-rules.csv"])
    assert rules[0]["rule"] == "as taken here" and rules[-1]["rule"] == "the paper"
    for column in ("scan-line, nu = 1", "scan-line, nu = 0.4", "scan-line → T-ICM(1)"):
        assert rules[0][column] == table[column]
    assert number(rules[-1]["scan-line → T-ICM(1)"]) == 427_860


def test_a_grey_pair_has_fewer_variants():
    pair = tiny_datasets().pairs[0]
    grey = stereo.StereoPair("Grey", pair.left[..., 0], pair.right[..., 0], pair.truth, 3)
    rules = [row["rule"] for row in stereo.variants_table(grey, {}, 0)]
    assert "green alone" not in rules and "the paper" not in rules and rules[0] == "as taken here"


def test_searches_on_penguin_stop_when_they_gain_nothing(done):
    traces = [row for row in rows_of(done["denoise"].files["traces.csv"]) if row["method"] == "loopy BP (paper)"]
    best = [float(row["best"]) for row in traces]
    assert len(best) > 6 and best[-6] == best[-1] and (len(best) == 7 or best[-7] > best[-1])


def test_without_pymaxflow_expansion_is_left_out_with_a_note(monkeypatch):
    monkeypatch.setitem(sys.modules, "maxflow", None)
    found = run_experiment("denoise", tiny_runner())
    assert "alpha-expansion" not in found.files["energies.csv"].decode()
    assert any("PyMaxflow is not installed" in text for text in found.sections[0].text)


def test_tables_in_files_have_plain_numbers():
    part = Experiment("part", tiny_runner())
    part.add_section("t", [], table=[{"a": "-1,234.5", "b": "1,2 and 3"}, {"a": "+12,345"}])
    assert part.files["table.csv"].decode() == 'a,b\n-1234.5,"1,2 and 3"\n+12345,\n'
    assert part.sections[0].files == ["part/table.csv"] and part.sections[0].table[0]["a"] == "-1,234.5"


def test_drawn_figures_are_the_same_in_every_run():
    from treefield_reproduce.plotting import draw_pictures

    drawn = []
    for _ in range(2):
        part = Experiment("twice", tiny_runner())
        part.add_section("t", [], figures={"f": (draw_pictures([("a", np.eye(3, dtype=np.uint8))], 1), "caption")})
        drawn.append(part.files)
    assert drawn[0] == drawn[1] and set(drawn[0]) == {"f.svg", "f.png"}


def test_a_worse_energy_and_a_claim_that_fails_come_with_their_reason():
    part = Experiment("part", tiny_runner())
    part.compare_energy("a", 110.0, 100.0, "since")
    part.compare_energy("b", 90.0, 100.0, "since")
    part.check_claim("c", "1, 2", False, "because")
    part.check_claim("d", "1, 2", True, "because")
    part.check_claim("e", "1, 2", False, "because", asked=False)
    said = [(c.verdict, c.why, c.worse, c.asked) for c in part.comparisons]
    assert said == [
        ("10.0 % higher", "since", True, True),
        ("10.0 % lower", "", False, True),
        ("does not hold", "because", True, True),
        ("holds", "", False, True),
        ("does not hold", "because", True, False),
    ]
    text = " ".join(report_page.build_sections([part], TINY, "Words.", ["memory"])[0].text)
    assert "Of the paper's 4 figures and claims 2 came out" in text and "2 did not" in text
    assert "ended early: memory" in text


def test_the_middle_run_has_the_median_energy():
    runs = [tf.MAPResult(fun=float(energy)) for energy in (5, 1, 3)]
    assert median_run(runs).fun == median_energy(runs) == 3
    assert median_energy(runs[:2]) == 3 and median_run(runs[:2]).fun == 5


def test_numbers_and_quality_measures_are_formatted_as_documented():
    assert relative_difference(100.0, 100.0) == "the same" and relative_difference(-99.0, -100.0) == "1.00 % higher"
    assert format_percent(0.01234) == "1.23 %" and format_percent(0.5) == "50.0 %"
    truth = np.array([[1.0, np.nan, 3.0, 3.0]])
    assert wrong(np.array([[2, 9, 5, 3]]), truth) == pytest.approx(1 / 3)
    assert wrong(truth, np.full((1, 4), np.nan)) == 0
    assert shades(np.array([[0, 4, np.nan]]), 5).tolist() == [[0, 255, 0]]
    assert roughness(np.array([[1, 1], [1, 2]])) == 0.5
    assert psnr(np.full((2, 2), 10), np.full((2, 2), 35)) == pytest.approx(20 * np.log10(255 / 25))
