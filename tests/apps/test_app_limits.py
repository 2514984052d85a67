"""Limits of memory and time of stereo, segment and inpaint: what is left for the search, and what is refused."""

import time

import numpy as np
import pytest

import treefield as tf
from treefield.apps import blocks, memory, problem, stereo_costs
from treefield.solvers.minimize import METHODS

SCENE = np.random.default_rng(0).integers(0, 256, (14, 60), dtype=np.uint8)
LEFT, RIGHT = SCENE[:, :36], SCENE[:, 3:39]
MASK = np.zeros(LEFT.shape, bool)
MASK[4:10, 5:20] = True
SITES = LEFT.size

CALLS = {
    "stereo": lambda **options: tf.stereo(LEFT, RIGHT, num_disparities=8, rng=0, **options),
    "segment": lambda **options: tf.segment(LEFT, 3, rng=0, **options),
    "inpaint": lambda **options: tf.inpaint(LEFT, MASK, rng=0, **options),
    "inpaint, denoise": lambda **options: tf.inpaint(LEFT, MASK, denoise=True, levels=8, rng=0, **options),
}
COSTS = {"stereo": SITES * 8, "segment": SITES * 3 * 4, "inpaint, denoise": SITES * 8 * 2}


@pytest.fixture
def searches(monkeypatch):
    """The keywords of every call of `minimize` by an application."""
    calls = []

    def minimize(mrf, **options):
        calls.append(options)
        return tf.minimize(mrf, **options)

    monkeypatch.setattr(problem, "minimize", minimize)
    return calls


@pytest.mark.parametrize("name", COSTS)
def test_search_may_use_what_the_costs_leave_of_the_memory_limit(searches, name):
    CALLS[name](memory_limit="5 MB", maxiter=1)
    CALLS[name](maxiter=1)
    assert [call["memory_limit"] for call in searches] == [5_000_000 - COSTS[name], memory.MODEL_BYTES - COSTS[name]]


@pytest.mark.parametrize("name", CALLS)
def test_costs_beyond_the_memory_limit_are_refused_with_a_remedy(searches, name):
    with pytest.raises(
        MemoryError, match=r"sites with \d+ labels need .*memory_limit is 1 kB: take fewer .*memory_limit"
    ):
        CALLS[name](memory_limit="1 kB")
    assert not searches


@pytest.mark.parametrize("name", CALLS)
def test_default_memory_limit_is_the_free_memory_if_that_is_less(monkeypatch, name):
    monkeypatch.setattr(memory, "available_memory", lambda: 2000)
    with pytest.raises(MemoryError, match=r"only 1.6 kB of the memory are free"):
        CALLS[name]()


@pytest.mark.parametrize("name", CALLS)
def test_default_memory_limit_does_not_change_the_answer_of_small_images(name):
    np.testing.assert_array_equal(CALLS[name](maxiter=4), CALLS[name](maxiter=4, memory_limit="1 GB"))


def test_costs_of_a_camera_image_are_refused_before_they_are_allocated(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: None)
    monkeypatch.setattr(stereo_costs, "_volume", lambda *_: pytest.fail("the costs were allocated"))
    image = np.broadcast_to(np.uint8(0), (1000, 4000))
    with pytest.raises(MemoryError, match=r"the default memory_limit is 2.4 GB: take fewer disparities"):
        tf.stereo(image, image, num_disparities=700)


def test_a_little_memory_gives_a_search_without_a_bound():
    _, res = CALLS["stereo"](memory_limit="120 kB", maxiter=2, full_output=True)
    assert np.isnan(res.lower_bound) and res.fun < np.inf


@pytest.mark.parametrize("name", COSTS)
def test_a_memory_limit_that_the_costs_nearly_use_up_is_refused_with_what_the_search_needs(searches, name):
    limit = COSTS[name] + 100 * SITES
    with pytest.raises(MemoryError, match=r"leave 50.4 kB of the memory limit for the search, which needs at least"):
        CALLS[name](memory_limit=limit)
    assert not searches
    assert CALLS[name](memory_limit=limit, method="icm").shape == LEFT.shape


def test_both_models_of_an_occlusion_check_count_for_the_memory_limit(searches):
    CALLS["stereo"](memory_limit="5 MB", occlusion="mark", maxiter=1)
    assert [call["memory_limit"] for call in searches] == [5_000_000 - 2 * COSTS["stereo"]] * 2


def test_methods_without_a_memory_limit_take_that_of_the_application():
    for name in CALLS:
        assert CALLS[name](method="icm", memory_limit="5 MB").shape == LEFT.shape


class Clock:
    """A timer by a clock that only slow preparation moves."""

    now = 0.0

    def __init__(self):
        self._start = Clock.now

    def seconds(self):
        return Clock.now - self._start


@pytest.fixture
def slow_preparation(monkeypatch):
    """Every pass over an image takes 100 seconds by the clocks of the applications."""
    monkeypatch.setattr(Clock, "now", 0.0)
    for application in ("stereo", "segment", "inpaint"):
        monkeypatch.setattr(f"treefield.apps.{application}.Timer", Clock)

    def slowly(function):
        def slow(*given, **options):
            Clock.now += 100
            return function(*given, **options)

        return slow

    monkeypatch.setattr(stereo_costs, "over_blocks", slowly(blocks.over_blocks))
    monkeypatch.setattr("treefield.apps.segment.contrast_ties", slowly(tf.apps.segment.contrast_ties))
    monkeypatch.setattr("treefield.apps.inpaint.hole_problem", slowly(tf.apps.inpaint.hole_problem))
    monkeypatch.setattr("treefield.apps.inpaint.fill_problem", slowly(tf.apps.inpaint.fill_problem))


@pytest.mark.parametrize("name", CALLS)
def test_preparation_counts_for_the_time_limit(searches, slow_preparation, name):
    _, res = CALLS[name](time_limit=150, maxiter=1, full_output=True)
    assert [call["time_limit"] for call in searches] == [50]
    assert res.mrf is not None


@pytest.mark.parametrize("name", CALLS)
def test_a_time_limit_that_preparation_has_used_up_still_gives_an_answer(searches, slow_preparation, name):
    _, res = CALLS[name](time_limit=60, tol=0, full_output=True)
    assert [call["time_limit"] for call in searches] == [0] and res.nit >= 1
    assert "time_limit = 60 s" in res.message or res.success


def test_both_searches_of_an_occlusion_check_share_the_time_limit(searches, slow_preparation):
    CALLS["stereo"](time_limit=1000, occlusion="fill", maxiter=1)
    first, second = (call["time_limit"] for call in searches)
    assert first == 1000 - 100 - 500  # half of the limit is for the second search and its costs
    assert second == 1000 - 200  # the fake clock stands still during the first search


@pytest.mark.parametrize("time_limit", [None, np.inf])
def test_an_occlusion_check_needs_no_time_limit(searches, time_limit):
    CALLS["stereo"](time_limit=time_limit, occlusion="mark", maxiter=1)
    assert [call["time_limit"] for call in searches] == [time_limit] * 2


def test_bad_time_limits_are_refused_before_any_work(searches):
    for occlusion in ("keep", "fill"):
        with pytest.raises(ValueError, match="time_limit"):
            CALLS["stereo"](time_limit=-1, occlusion=occlusion)
    assert not searches


def test_results_of_blocks_are_in_order_for_any_number_of_threads():
    def late(block):
        time.sleep(0.01 * (block.start == 0))
        return block.start, block.stop

    for threads in (1, 3):
        assert blocks.over_blocks(late, 10, 4, threads) == [(0, 4), (4, 8), (8, 10)]
    assert blocks.over_blocks(late, 0, 4) == []


def test_costs_do_not_depend_on_blocks_and_threads(monkeypatch):
    images = [image[..., None].astype(np.float32) for image in (LEFT, RIGHT)]
    for cost in stereo_costs.COSTS:
        whole = stereo_costs.matching_costs(*images, cost, range(-3, 9), threads=1)
        monkeypatch.setattr(stereo_costs, "_BLOCK", 1000)
        np.testing.assert_allclose(
            stereo_costs.matching_costs(*images, cost, range(-3, 9), threads=2), whole, rtol=1e-6
        )
        monkeypatch.undo()


@pytest.mark.parametrize("method", [name for name in METHODS if name not in ("tree_bp", "scan_line")])
def test_large_stereo_models_start_from_scan_lines_with_any_method(monkeypatch, method):
    monkeypatch.setattr("treefield.apps.stereo._MANY", 0)
    assert np.mean(CALLS["stereo"](method=method, time_limit=0.2)[:, 3:] == 3) > 0.9


def test_start_of_large_stereo_models_can_be_given(searches, monkeypatch):
    monkeypatch.setattr("treefield.apps.stereo._MANY", 0)
    for options in ({}, {"x0": "unary"}):
        CALLS["stereo"](maxiter=1, **options)
    assert [call["x0"] for call in searches] == ["scan-line", "unary"]
