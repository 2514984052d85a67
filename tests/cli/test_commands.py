"""Each command writes the result of the function of that name."""

import json
import subprocess
import sys

import numpy as np
import pytest

import treefield as tf
from treefield.io import load_model, read_image, read_labels, write_image

FEW = ("--levels", 8)


def read_images(folder, *names):
    return [read_image(folder / name) for name in names]


def test_denoise_writes_what_the_function_returns(command, files):
    assert command("denoise", "grey.png", "out.png", *FEW, "--seed", 0).code == 0
    noisy, restored = read_images(files, "grey.png", "out.png")
    np.testing.assert_array_equal(restored, tf.denoise(noisy, levels=8, rng=0))
    assert (restored != noisy).any()


def test_inpaint_writes_what_the_function_returns(command, files):
    done = command("inpaint", "grey.png", "mask.png", "out.png", *FEW, "--smoothness", "linear", "--seed", 0)
    assert done.code == 0
    image, mask, restored = read_images(files, "grey.png", "mask.png", "out.png")
    np.testing.assert_array_equal(restored, tf.inpaint(image, mask, levels=8, smoothness="linear", rng=0))
    np.testing.assert_array_equal(restored[~mask], image[~mask])
    assert (restored[mask] != image[mask]).any()


def test_the_hole_is_where_the_mask_is_not_black_whatever_its_colour(command, files):
    (mask,) = read_images(files, "mask.png")
    write_image(files / "red.png", np.stack([mask * np.uint8(9), mask * np.uint8(0), mask * np.uint8(0)], axis=-1))
    write_image(files / "white.png", ~mask)
    for name, more in (("mask.png", ()), ("red.png", ()), ("white.png", ("--invert-mask",))):
        given = ("inpaint", "grey.png", name, f"by-{name}", *FEW, "--smoothness", "linear", "--seed", 0, *more)
        assert command(*given).code == 0
    one, two, three = read_images(files, "by-mask.png", "by-red.png", "by-white.png")
    assert (one == two).all() and (one == three).all()


def test_stereo_writes_what_the_function_returns(command, files):
    left, right = read_images(files, "left.png", "right.png")
    disparity = tf.stereo(left, right, num_disparities=6, rng=0)
    assert np.median(disparity) == 3
    given = ("stereo", "left.png", "right.png")
    for name, expected in (("d.npy", disparity), ("d.pfm", disparity), ("d.png", 51 * disparity)):
        done = command(*given, name, "--num-disparities", 6, "--seed", 0)
        assert done.code == 0 and ("times 51" in done.out) == (name == "d.png")
        np.testing.assert_array_equal(read_image(files / name), expected)
    command(*given, "scaled.png", "--num-disparities", 6, "--seed", 0, "--scale", 1000)
    np.testing.assert_array_equal(read_image(files / "scaled.png"), 1000 * disparity)


def test_stereo_options_reach_the_function(command, files):
    left, right = read_images(files, "left.png", "right.png")
    mask = np.ones((*left.shape, 3), np.uint8)
    mask[:, :5] = 0
    write_image(files / "trust.png", mask)
    given = ("stereo", "left.png", "right.png")
    options = ("--num-disparities", 4, "--min-disparity", 2, "--seed", 0)
    assert command(*given, "marked.npy", *options, "--occlusion", "mark", "--subpixel").code == 0
    shared = {"num_disparities": 4, "min_disparity": 2, "rng": 0}
    marked = tf.stereo(left, right, **shared, occlusion="mark", subpixel=True)
    np.testing.assert_array_equal(read_image(files / "marked.npy"), marked)
    assert np.isnan(marked).any()
    assert command(*given, "masked.npy", *options, "--mask", "trust.png").code == 0
    masked = tf.stereo(left, right, **shared, mask=mask[..., 0])
    np.testing.assert_array_equal(read_image(files / "masked.npy"), masked)


def test_segment_writes_what_the_function_returns(command, files, grey):
    done = command("segment", "grey.png", "out.png", "--seed", 0)
    assert done.code == 0 and "labels 1 to 2" in done.out
    np.testing.assert_array_equal(read_labels(files / "out.png"), tf.segment(grey, 2, rng=0))
    seeds = np.zeros(grey.shape, np.int32)
    seeds[0, 0], seeds[0, -1], seeds[6, 0] = 5, 7, -1
    np.save(files / "seeds.npy", seeds)
    assert command("segment", "grey.png", "out.npy", "--seeds", "seeds.npy", "--seed", 0).code == 0
    found = read_labels(files / "out.npy")
    np.testing.assert_array_equal(found, tf.segment(grey, seeds, rng=0))
    assert set(np.unique(found)) == {-1, 5, 7}


@pytest.mark.parametrize("ground", [(0, 0, 0), (0, 0, 0, 255), (255, 255, 255, 0)])
def test_each_colour_of_the_strokes_is_a_label(command, files, grey, ground):
    strokes = np.tile(np.array(ground, np.uint8), (*grey.shape, 1))
    seeds = np.zeros(grey.shape, np.int32)
    for label, colour, places in ((3, (255, 0, 0), np.s_[1, 1:7]), (1, (0, 0, 255), np.s_[2:5, 9])):
        strokes[places], seeds[places] = (*colour, 255)[: len(ground)], label
    strokes[-1, -1], seeds[-1, -1] = (0, 0, 254, 9)[: len(ground)], 1  # nearly the same is another colour
    seeds[seeds == 1] = np.where(np.arange(4) < 3, 2, 1)
    write_image(files / "strokes.png", strokes)
    done = command("segment", "grey.png", "out.png", "--seeds", "strokes.png", "--seed", 0)
    assert "seeds: #0000fe is 1 (1 pixels), #0000ff is 2 (3 pixels), #ff0000 is 3 (6 pixels)" in done.out
    np.testing.assert_array_equal(read_labels(files / "out.png"), tf.segment(grey, seeds, rng=0))
    done = command("segment", "grey.png", "json.png", "--seeds", "strokes.png", "--seed", 0, "--json")
    assert json.loads(done.out)["seeds"].startswith("#0000fe is 1")
    assert command("segment", "grey.png", "again.png", "--seeds", "out.png", "--seed", 0).code == 0  # palette


def test_ising_writes_what_the_function_returns(command, files):
    fields = np.load(files / "fields.npy")
    spins = tf.ising(fields, -0.5, rng=0)
    for name, note in (("out.npy", "spins -1 and 1"), ("out.png", "black is -1, white is 1")):
        done = command("ising", "fields.npy", name, "--coupling", -0.5, "--seed", 0)
        assert done.code == 0 and note in done.out
    np.testing.assert_array_equal(np.load(files / "out.npy"), spins)
    np.testing.assert_array_equal(read_image(files / "out.png") == 255, spins == 1)


def test_ising_reads_couplings_from_the_file_and_writes_a_chain_as_one_row(command, files):
    rng = np.random.default_rng(2)
    fields, couplings = (rng.normal(size=n).astype(np.float32) for n in (9, 8))
    np.savez(files / "chain.npz", fields=fields, couplings_0=couplings)
    assert command("ising", "chain.npz", "out.npy").code == 0
    np.testing.assert_array_equal(np.load(files / "out.npy"), [tf.ising(fields, [couplings])])


def test_solve_proves_its_labels_optimal(command, files):
    done = command("solve", "model.npz", "out.png", "--tol", 0, "--seed", 0)
    assert done.code == 0 and ("proved optimal" in done.out or "exact" in done.out)
    mrf = load_model(files / "model.npz")
    assert mrf.energy(read_labels(files / "out.png")) == tf.minimize(mrf, tol=0, rng=1).fun


def test_solve_finds_the_same_energy_for_a_saved_model(command, files):
    first = command("segment", "grey.png", "out.png", "--save-model", "saved.npz", "--seed", 0, "--tol", 0, "--json")
    again = command("solve", "saved.npz", "labels.npy", "--seed", 0, "--tol", 0, "--json")
    assert json.loads(first.out)["energy"] == json.loads(again.out)["energy"]
    np.testing.assert_array_equal(read_labels(files / "out.png"), read_labels(files / "labels.npy") + 1)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_command_does_not_depend_on_the_number_of_threads(command, files, grey, threads):
    command("denoise", "grey.png", "out.png", *FEW, "--seed", 3, "--threads", threads)
    np.testing.assert_array_equal(read_image(files / "out.png"), tf.denoise(grey, levels=8, rng=3))


def test_the_summary_lists_energy_bound_gap_and_files(command, files):
    done = command("denoise", "grey.png", "out.png", *FEW, "--save-model", "saved.npz", "--report", "page.html")
    summary = dict(line.strip().split(": ", 1) for line in done.out.splitlines())
    assert list(summary) == ["noise", "energy", "lower bound", "gap", "time", "ended", "wrote"]
    assert summary["wrote"] == "out.png, page.html, saved.npz" and "converged" in summary["ended"]
    assert done.err == ""


def test_json_is_all_that_is_printed_and_quiet_prints_nothing(command, files):
    done = command("denoise", "grey.png", "out.png", *FEW, "--json")
    summary = json.loads(done.out)
    assert summary["output"] == "out.png" and summary["success"] and summary["lower_bound"] <= summary["energy"]
    assert 0 <= summary["gap"] <= 1e-3 and done.err == ""
    done = command("denoise", "grey.png", "quiet.png", *FEW, "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "") and (files / "quiet.png").exists()


def test_json_has_null_for_values_that_are_not_finite(command, files):
    np.savez(files / "forbidden.npz", unary=np.full((2, 2, 2), np.inf), potts=1.0)
    done = command("solve", "forbidden.npz", "out.npy", "--method", "icm", "--json")
    summary = json.loads(done.out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert summary["energy"] is None and summary["lower_bound"] is None and not summary["success"]


def test_the_command_uses_the_named_method_and_its_limits(command, files):
    summary = json.loads(command("denoise", "grey.png", "icm.png", *FEW, "--method", "icm", "--json").out)
    assert summary["method"] == "icm" and summary["lower_bound"] is None
    summary = json.loads(
        command("denoise", "grey.png", "no-time.png", *FEW, "--time-limit", 0, "--tol", 0, "--json").out
    )
    assert summary["iterations"] == 1 and "time_limit" in summary["message"] and not summary["success"]


def test_force_replaces_the_input_itself_once_there_is_a_result(command, files, grey):
    expected = tf.denoise(grey, levels=8, rng=0)
    assert command("denoise", "grey.png", "grey.png", *FEW, "--seed", 0, "--force").code == 0
    np.testing.assert_array_equal(read_image(files / "grey.png"), expected)


def test_info_lists_versions_memory_and_the_cache(command):
    summary = json.loads(command("info", "--json").out)
    assert summary["treefield"] == tf.__version__ and summary["numpy"] == np.__version__
    assert int(summary["threads"]) >= 1 and "kernel cache" in summary and "free memory" in summary
    plain = command("info")
    assert plain.code == 0 and f"numpy: {np.__version__}" in plain.out


def test_help_names_every_command_and_every_option(command):
    names = ("denoise", "inpaint", "stereo", "segment", "ising", "solve", "compare", "demo", "info")
    for done in (command(), command("--help")):
        assert done.code == 0 and done.err == "" and all(name in done.out for name in names)
    assert command("--version").out.strip() == tf.__version__
    done = command("denoise", "-h")
    assert all(name in done.out for name in ("--levels", "--time-limit", "--seed", "--report", "--force", "--json"))


def test_python_m_treefield_is_the_command():
    done = subprocess.run([sys.executable, "-m", "treefield", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == tf.__version__


def test_connectivity_of_the_command_is_that_of_the_function(command, files, grey):
    assert command("segment", "grey.png", "regions.png", "--connectivity", 2, "--seed", 0).code == 0
    np.testing.assert_array_equal(read_labels(files / "regions.png"), tf.segment(grey, 2, connectivity=2, rng=0))
