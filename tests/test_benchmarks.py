"""The parts of `make bench`: running and writing sections, growth, curves. Not how fast anything is."""

import json
import os
import pathlib
import signal
import sys

import numpy as np
import pytest

import curves
import graphs
import growth
import instances
import measure
import peers
import problems
import record
import run
import scale
import treefield as tf

COLUMNS = ["what", "energy"]


@pytest.fixture
def output(tmp_path, monkeypatch):
    """An empty folder of outputs, and no output of a section yet."""
    monkeypatch.setattr(measure, "OUTPUT", tmp_path / "bench-output")
    measure.take_output()
    handler = signal.getsignal(signal.SIGINT)
    yield measure.OUTPUT
    signal.signal(signal.SIGINT, handler)
    measure.take_output()


def sections(monkeypatch, **found):
    """Make these the sections: each tells a table of one row, or is a function."""

    def tells(row):
        return lambda: measure.table("A | B", COLUMNS, [row])

    monkeypatch.setattr(
        run, "SECTIONS", {name: tells(it) if isinstance(it, list) else it for name, it in found.items()}
    )


def written(output):
    return json.loads((output / "bench.json").read_text())["sections"]


@pytest.mark.parametrize("power", [0.5, 1.0, 1.4])
def test_the_slope_of_a_power_law_is_its_power(power):
    sizes = np.array([128, 256, 512, 2048]) ** 2
    assert measure.slope(sizes, 3e-8 * sizes**power) == pytest.approx(power)


def test_fitted_slopes_leave_small_sizes_out():
    times = {size: 1e-9 * size**2 for size in growth.SIZES} | {64: 1.0}
    assert growth.fit_slope(times) == pytest.approx(1.0)


def test_benchmark_tables_are_written_as_json_and_markdown(output, monkeypatch):
    sections(monkeypatch, one=["a|b", 1.5])
    run.main([])
    assert written(output)["one"]["tables"] == [{"title": "A | B", "columns": COLUMNS, "rows": [["a|b", "1.5"]]}]
    text = (output / "bench.md").read_text()
    assert "| what | energy |\n| :-- | --: |\n| a\\|b | 1.5 |\n" in text and "## one" in text


def test_a_section_replaces_its_own_tables_alone(output, monkeypatch):
    sections(monkeypatch, one=["old", 1], two=["kept", 2])
    run.main([])
    sections(monkeypatch, one=["new", 3], two=["other", 4])
    run.main(["one"])
    assert {name: it["tables"][0]["rows"] for name, it in written(output).items()} == {
        "one": [["new", "3"]],
        "two": [["kept", "2"]],
    }
    text = (output / "bench.md").read_text()
    assert "| new | 3 |" in text and "| kept | 2 |" in text and "old" not in text
    assert sorted(path.name for path in output.iterdir()) == ["bench.json", "bench.md"]  # no temporary file stays


def test_benchmark_words_and_pictures_are_written(output, monkeypatch):
    def section():
        for _ in range(2):
            measure.say("Skipped: a peer")
        measure.picture(growth.new_figure(1, 1)[0], "plot.png")

    sections(monkeypatch, one=section)
    run.main(["one"])
    text = (output / "bench.md").read_text()
    assert text.count("Skipped: a peer") == 1 and "![plot](plot.png)" in text and (output / "plot.png").stat().st_size


def test_every_package_version_is_recorded_or_said_to_be_missing(output, monkeypatch):
    monkeypatch.setattr(record, "PACKAGES", ("numpy", "no-such-package"))
    sections(monkeypatch, one=["a", 1])
    run.main([])
    text = (output / "bench.md").read_text()
    assert f"| numpy | {np.__version__} |" in text and "| no-such-package | not installed |" in text
    assert f"| treefield | {tf.__version__} |" in text and "| processor |" in text


def test_a_section_of_other_versions_says_so(output, monkeypatch):
    sections(monkeypatch, one=["a", 1], two=["b", 2])
    with monkeypatch.context() as then:
        then.setattr(record, "machine", lambda: {"numpy": "1.0", "scipy": "1.1"})
        run.main(["one"])
        then.setattr(record, "machine", lambda: {"numpy": "2.0", "scipy": "1.1"})
        run.main(["two"])
    first, second = (output / "bench.md").read_text().split("## ")[1:]
    assert "Then: numpy 1.0." in first and "Then" not in second


def test_an_unknown_benchmark_section_is_refused_in_one_line(output, monkeypatch):
    sections(monkeypatch, one=["a", 1], two=["b", 2])
    with pytest.raises(SystemExit) as refused:
        run.main(["one", "three"])
    assert refused.value.code == "no section is named 'three'; there are one, two"
    assert not output.exists()


def test_the_list_option_names_all_benchmark_sections(capsys):
    run.main(["--list"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(run.SECTIONS) and all(len(line.split()) > 3 for line in lines)


def test_an_interrupted_benchmark_keeps_the_finished_sections(output, monkeypatch, capsys):
    def interrupted():
        tf.t_icm(tiny(), callback=lambda _: os.kill(os.getpid(), signal.SIGINT), rng=0)
        measure.table("goes on", COLUMNS, [])

    sections(monkeypatch, one=["a", 1], two=interrupted, three=["c", 3])
    with pytest.raises(SystemExit) as ended:
        run.main([])
    assert ended.value.code == 130
    assert list(written(output)) == ["one"]
    assert "interrupted in two; done: one" in capsys.readouterr().out


def tiny():
    return growth.field(12, seed=0)


def tiny_problem(**changes):
    return curves.Problem("Tiny", tiny, 1.0, **changes)


def test_curves_never_rise_and_end_at_the_energy():
    mrf, problem = tiny(), tiny_problem()
    for method in curves.OURS:
        res = curves.run_method(mrf, method, problem, 0, maxiter=20)
        best = res.trace["best"]
        assert len(best) > 1 and (np.diff(best) <= 0).all() and best[0] > best[-1] == mrf.energy(res.x)


def test_a_peer_that_is_missing_or_refuses_is_left_out_with_a_note(monkeypatch):
    def refuses(mrf):
        raise ValueError("it takes no trees")

    monkeypatch.setattr(peers, "CURVES", {"here": lambda mrf: [mrf], "gone": lambda mrf: None, "refuses": refuses})
    mrf = tiny()
    assert curves.ask_peers(mrf, tiny_problem(peers=("here", "gone", "refuses"))) == {"here": [mrf]}
    assert measure.take_output()["words"] == ["Tiny: not for refuses, since it takes no trees"]


def run_with(*steps):
    """A run that found these energies after these seconds."""
    trace = np.zeros(len(steps), tf.results.TRACE)
    trace["seconds"], trace["best"] = zip(*steps, strict=True)
    return tf.MAPResult(trace=trace)


def test_the_share_in_a_peer_row_is_of_median_times():
    ends = [(None, 10.0, seconds) for seconds in (4.0, 1.0, 2.0)]
    fast = [run_with((0.0, 20.0), (seconds, 10.0)) for seconds in (0.1, 0.5, 9.0)]
    slow = [run_with((0.0, 20.0), (1.0, 10.5))] * 3
    problem = tiny_problem(goal=15)
    row = curves.peer_row(problem, "numpy", ends, {"minimize": fast, "T-ILS (best)": slow})
    assert row == [f"Tiny: numpy {np.__version__}", "10", "2.00", "0.500", "1/4.0", "not reached", "", ""]
    assert curves.time_cells(fast, 25.0, 2.0) == ["0.000", ""]


def test_published_energies_are_compared_without_a_time():
    runs = {method: [run_with((0.0, 20.0), (0.25, 12.0))] for method in curves.COMPARED}
    rows = curves.published_rows(tiny_problem(published=(11, 9.5, 12)), runs)
    assert [row[1:5] for row in rows] == [["11", "", "not reached", ""], ["12", "", "0.250", ""]]


def test_growth_skips_missing_peers_and_draws_the_rest(output, monkeypatch):
    for name, value in (("SIZES", (8, 16, 32)), ("FITTED", 8), ("ROUNDS", 1)):
        monkeypatch.setattr(growth, name, value)
    for module in ("maxflow", "gco"):
        monkeypatch.setitem(sys.modules, module, None)
    chosen = {name: method for name, method in growth.METHODS.items() if "cycle" in name or "copy" in name}
    work = lambda mrf: 1e-9 * mrf.size  # noqa: E731
    monkeypatch.setattr(growth, "METHODS", chosen | {"linear": ("treefield", work, 16)})
    growth.growth()
    sections_output = measure.take_output()
    rows = {row[0]: row[1:] for row in sections_output["tables"][0]["rows"]}
    assert rows["linear"] == ["6.4e-05", "0.000256", "", "1.00", "1.00"]
    assert set(rows) == {"linear", "np.copyto of the costs"}
    assert sum("is not installed" in words for words in sections_output["words"]) == 2
    assert sections_output["pictures"] == ["growth.png"] and pathlib.Path(output, "growth.png").exists()


def test_growth_times_iterations_of_a_solver():
    assert growth.time_iteration(tf.trw, 3, tol=0)(tiny()) > 0
    assert growth.time_sweep(1)(tiny()) > 0


@pytest.mark.skipif(problems.data_folder() is None, reason="the benchmark data is not there")
def test_no_labelling_of_a_known_instance_is_below_the_least_energy():
    found = {name: (read(), least) for name, read, least in instances.known()}
    assert len(found) == 22
    for mrf, least in found.values():
        for x in (mrf.backend.best_labels(), mrf.backend.random_labels(np.random.default_rng(0))):
            assert mrf.energy(x) >= least - 1e-6 * abs(least)


def test_samplers_of_dwave_get_the_same_energies():
    pytest.importorskip("dimod")
    rng = np.random.default_rng(0)
    edges = [(i, j) for i in range(6) for j in range(i)]
    mrf = tf.GraphMRF(rng.random((6, 2)), edges, tf.Table([[1, -1], [-1, 1]]), weights=rng.normal(size=len(edges)))
    x = mrf.backend.random_labels(rng)
    assert graphs.bqm(mrf).energy(dict(enumerate(2 * x - 1))) == pytest.approx(mrf.energy(x))


@pytest.mark.parametrize("method", scale.SEARCHES)
def test_the_benchmark_image_for_clusters_is_the_same_each_time(method):
    dask = pytest.importorskip("dask")
    pixels = scale.image(128, 64)
    lazy = scale.search_image(pixels, **scale.SEARCHES[method])
    (x, fun, bound), image, again = dask.compute(tuple(lazy), pixels, scale.image(128, 64), scheduler="synchronous")
    np.testing.assert_array_equal(image, again)
    assert fun == tf.GridMRF(scale.level_costs(image), scale.SMOOTH).energy(x)
    assert image.max() == scale.LEVELS - 1 and len(np.unique(x)) > 4
    assert np.isnan(bound) if method == "t_icm" else bound <= fun
