"""Batches: every item has its own result or error, in this process, in worker processes and on a cluster."""

import functools
import multiprocessing
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest

import treefield as tf
from small import check_raises
from treefield.apps.batch import BatchInterrupted, WorkerDiedError, run_batch
from treefield.io import write_image
from treefield.io.files import MissingPackageError

pytestmark = pytest.mark.usefixtures("no_hang")
FEW = {"levels": 8, "rng": 0}


class OddError(Exception):
    """An exception that cannot be unpickled."""

    def __init__(self, first, second):
        super().__init__(first)


class Deadly:
    """A value that kills the process that pickles it, as one too large for the memory may."""

    def __reduce__(self):
        os.kill(os.getpid(), signal.SIGKILL)


def act(event, *, folder, rng=None, threads=None):
    """Return, raise or kill this process, as the event says."""
    if event == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if event == "dies once" and not pathlib.Path(folder, "died").exists():
        pathlib.Path(folder, "died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if event == "fails":
        raise OddError("odd", "error")
    if event == "exits":
        sys.exit(3)
    if event == "cannot be sent":
        return lambda: None
    if event == "dies while it is sent":
        return Deadly()
    if event == "warns":
        warnings.warn("take care", stacklevel=1)
    return str(event), threads, rng if isinstance(rng, int) else rng.random(), os.getpid()


@pytest.fixture(scope="module")
def pooled(tmp_path_factory):
    """The results of two workers, some of which die, raise or warn."""
    folder = tmp_path_factory.mktemp("pooled")
    names = (
        "one",
        "dies",
        "two",
        "fails",
        "dies once",
        "cannot be sent",
        "three",
        "warns",
        "exits",
        "dies while it is sent",
    )
    given = {"folder": folder, "rng": np.random.default_rng(0)}
    return names, tf.batch(act, [np.array(name) for name in names], workers=2, **given)


def test_a_worker_that_dies_fails_only_its_own_item(pooled):
    names, results = pooled
    assert [item.name for item in results] == list(range(len(names)))
    good = {"one", "two", "three", "dies once"}
    for name, item in zip(names, results, strict=True):
        assert (item.error is None) == (name in good)
        assert name not in good or item.value[0] == name
    for died in (results[1].error, results[9].error):
        assert isinstance(died, WorkerDiedError) and "died twice" in str(died)


def test_values_and_errors_that_cannot_be_pickled_are_reported_as_errors(pooled):
    _, results = pooled
    assert str(results[3].error) == "OddError: odd" and results[3].value is None
    assert "cannot be sent" in str(results[5].error) and results[5].value is None
    assert isinstance(results[7].error, UserWarning) and str(results[7].error) == "7: take care"  # an error in tests
    assert isinstance(results[8].error, SystemExit)


def test_workers_are_other_processes_with_one_thread_and_a_generator_for_each_item(pooled):
    names, results = pooled
    rngs = np.random.default_rng(0).spawn(len(names))
    for item, rng in zip(results, rngs, strict=True):
        if item.error is None:
            assert item.value[1:3] == (1, rng.random()) and item.value[3] != os.getpid()


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """A folder with a grey image, a colour image and a broken one."""
    folder = tmp_path_factory.mktemp("images")
    grey = np.random.default_rng(0).normal(np.kron([[50, 200], [120, 80]], np.ones((6, 8))), 15)
    grey = np.clip(grey, 0, 255).astype(np.uint8)
    write_image(folder / "c.png", grey)
    write_image(folder / "a.png", np.stack([grey, grey[::-1], grey[:, ::-1]], axis=-1))
    (folder / "b.png").write_text("no image")
    (folder / "notes.txt").write_text("no image, to be skipped")
    return folder, grey


def check_restored(results, folder, grey):
    """The images of the folder are restored in the order of their names, with colours as channels."""
    assert [item.name for item in results] == [folder / name for name in ("a.png", "b.png", "c.png")]
    colour = np.stack([grey, grey[::-1], grey[:, ::-1]], axis=-1)
    np.testing.assert_array_equal(results[0].value, tf.denoise(colour, channel_axis=-1, **FEW))
    np.testing.assert_array_equal(results[2].value, tf.denoise(grey, **FEW))
    assert isinstance(results[1].error, ValueError) and "b.png is not an image" in str(results[1].error)
    assert results[1].value is None and results[0].error is None and results[2].error is None
    assert all(item.seconds > 0 for item in results)


def test_worker_processes_restore_a_folder_as_this_process_does(images, capsys):
    folder, grey = images
    check_restored(tf.batch(tf.denoise, folder, workers=2, **FEW), folder, grey)
    assert capsys.readouterr().err == ""
    check_restored(tf.batch(tf.denoise, str(folder), workers=1, progress=True, **FEW), folder, grey)
    assert "3/3" in (bar := capsys.readouterr().err) and "failed=1" in bar


@pytest.fixture(scope="module")
def cluster():
    distributed, dask = pytest.importorskip("distributed"), pytest.importorskip("dask")
    given = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}), distributed.LocalCluster(**given) as local:
        yield local


def test_a_cluster_restores_a_folder_as_this_process_does(cluster, images):
    folder, grey = images
    check_restored(tf.batch(tf.denoise, folder, scheduler=cluster.scheduler_address, **FEW), folder, grey)


def test_an_address_without_a_scheduler_raises_a_connection_error(cluster):
    dask = pytest.importorskip("dask")
    (worker, *_) = cluster.scheduler_info["workers"]
    with socket.socket() as mute, dask.config.set({"treefield.connect-timeout": "500 ms"}):
        mute.bind(("127.0.0.1", 0))
        silent = f"tcp://127.0.0.1:{mute.getsockname()[1]}"
        ends = {
            silent: "within 0.5 s",
            "nonsense": "missing port",
            worker: "of a Worker",
            "x://a:1": "unknown address scheme",
        }
        for address, words in ends.items():
            refused = functools.partial(tf.batch, tf.denoise, ITEMS, scheduler=address)
            check_raises(refused, ConnectionError, f"no Dask scheduler answers at {address}.*{words}")
        mute.listen()  # it accepts connections but never answers
        refused = functools.partial(tf.batch, tf.denoise, ITEMS, scheduler=silent)
        check_raises(refused, ConnectionError, f"no Dask scheduler answers at {silent} within 0.5 s")
    with dask.config.set({"treefield.connect-timeout": "soon"}):
        check_raises(refused, ValueError, "must be a time such as 30s, got 'soon'")


def test_batch_leaves_the_client_open_and_reports_the_error_of_each_pair(cluster):
    from distributed import Client

    scene = np.random.default_rng(1).integers(0, 256, (10, 24), dtype=np.uint8)
    pairs = [(scene[:, :18], scene[:, k : k + 18]) for k in range(4)]
    pairs[2] = (scene, scene[:5])
    with Client(cluster) as client:
        results = tf.batch(tf.stereo, iter(pairs), scheduler=client, num_disparities=6, rng=0)
        assert client.status == "running"
    assert [type(item.error) for item in results] == [type(None), type(None), ValueError, type(None)]
    for k in (0, 1, 3):
        np.testing.assert_array_equal(results[k].value, tf.stereo(*pairs[k], num_disparities=6, rng=0))


def test_a_cluster_finishes_the_other_items_when_a_worker_dies(cluster, tmp_path):
    names = ("one", "dies", "two", "three", "fails")
    given = {"folder": tmp_path, "rng": 0}
    results = tf.batch(act, map(np.array, names), scheduler=cluster.scheduler_address, **given)
    assert isinstance(results[1].error, WorkerDiedError) and str(results[4].error) == "OddError: odd"
    assert [results[k].value[:3] for k in (0, 2, 3)] == [(names[k], 1, 0) for k in (0, 2, 3)]


def test_a_stack_is_one_item_per_image_and_an_iterator_is_consumed_lazily():
    stack = np.random.default_rng(0).integers(0, 256, (3, 4, 5))
    assert [item.value for item in tf.batch(np.sum, stack, workers=1)] == stack.sum(axis=(1, 2)).tolist()
    done = []

    def slices():
        for k, image in enumerate(stack):
            assert len(done) == k  # all before it are done
            yield image
        raise OSError("the camera is gone")

    results = tf.batch(lambda image: done.append(image.max()), slices(), workers=1)
    assert done == stack.max(axis=(1, 2)).tolist()
    assert [str(item.error) for item in results] == ["None"] * 3 + ["the camera is gone"]
    assert tf.batch(np.sum, [], workers=2) == []


def interrupt(k, folder):
    """Send Ctrl-C from the second item, when the first is done."""
    if k == 0:
        return "done"
    if k == 1:
        while not pathlib.Path(folder, "go").exists():
            time.sleep(0.01)
        os.kill(multiprocessing.parent_process().pid if folder.name == "2" else os.getpid(), signal.SIGINT)
    time.sleep(100)


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_keeps_finished_items_and_ends_the_workers(tmp_path, workers):
    folder = tmp_path / str(workers)
    folder.mkdir()
    recorded, others = [], multiprocessing.active_children()

    def record(item):
        recorded.append(item)
        (folder / "go").touch()

    results = run_batch(interrupt, range(5), {"folder": folder}, workers=workers, on_item=record)
    assert results == recorded and results[0].value == "done" and results[0].error is None
    assert [str(item.error) for item in results[1:]] == ["interrupted"] * 4
    assert all(isinstance(item.error, BatchInterrupted) for item in results[1:])
    for worker in set(multiprocessing.active_children()) - set(others):
        if worker.name.startswith("Dask"):  # of the cluster fixture, restarted after its death
            continue
        # not `join`: the pool's own thread may be about to note that it has collected the process
        deadline = time.monotonic() + 10
        while worker.is_alive() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not worker.is_alive()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_script_without_a_main_guard_gets_a_helpful_error(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import numpy as np, treefield as tf\ntf.batch(np.sum, np.zeros((3, 4, 5)), workers=2)\n")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=100)
    assert done.returncode == 1 and 'call batch below `if __name__ == "__main__":`' in done.stderr


ITEMS = [np.zeros((4, 5))] * 2
REFUSED = {
    "no function": (lambda: tf.batch("denoise", ITEMS), TypeError, "function must be a function of an image"),
    "workers": (lambda: tf.batch(tf.denoise, ITEMS, workers=0), ValueError, "workers must be at least 1, got 0"),
    "half a worker": (lambda: tf.batch(tf.denoise, ITEMS, workers=1.5), TypeError, "workers must be an integer"),
    "both": (lambda: tf.batch(tf.denoise, ITEMS, workers=2, scheduler="tcp://a:1"), ValueError, "give one of them"),
    "one image": (lambda: tf.batch(tf.denoise, ITEMS[0]), ValueError, r"shape \(4, 5\), expected a stack"),
    "no items": (lambda: tf.batch(tf.denoise, 5), TypeError, "items must be a list of images .* got int"),
    "no folder": (lambda: tf.batch(tf.denoise, "no/such"), FileNotFoundError, "there is no folder no/such"),
    "a file": (lambda: tf.batch(tf.denoise, __file__), ValueError, "got the file .*: give a list"),
    "a lambda": (lambda: tf.batch(lambda image: image, ITEMS, workers=2), TypeError, "no lambda, or workers=1"),
    "checkpoint": (lambda: tf.batch(tf.denoise, ITEMS, checkpoint="c.npz"), ValueError, "checkpoint is one file"),
    "scheduler": (lambda: tf.batch(tf.denoise, ITEMS, scheduler=5), TypeError, "scheduler must be an address"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_arguments_raise(case):
    check_raises(*REFUSED[case])


def test_the_error_without_dask_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    refused = functools.partial(tf.batch, tf.denoise, ITEMS, scheduler="tcp://localhost:1")
    check_raises(refused, MissingPackageError, r'pip install "treefield\[dask\]"')


def no_keywords(image, *, factor=1):
    return image * factor


def any_keywords(image, **keywords):
    return sorted(keywords)


@pytest.mark.parametrize(
    ("function", "keywords", "message"),
    [
        (tf.denoise, {"n_jobs": 2}, r"batch takes no n_jobs; did you mean workers\? It takes workers, .* of denoise$"),
        (tf.denoise, {"seed": 2}, r"batch takes no seed; did you mean rng\?"),
        (functools.partial(tf.denoise, levels=4), {"sigm": 2}, r"batch takes no sigm; did you mean sigma\?.*denoise$"),
        (no_keywords, {"facter": 2}, r"batch takes no facter; did you mean factor\? .* keywords of no_keywords$"),
    ],
)
def test_a_misspelt_keyword_raises_before_any_item_is_run(function, keywords, message):
    with pytest.raises(TypeError, match=message):
        tf.batch(function, [np.zeros((3, 3))], **keywords)


def test_a_function_of_any_keywords_gets_them_all():
    (item,) = tf.batch(any_keywords, [np.zeros((3, 3))], workers=1, n_jobs=2, sigm=3)
    assert item.value == ["n_jobs", "sigm"]
