"""A checkpoint that belongs to something else, or is none, is refused and left as it is."""

import os
import re

import numpy as np
import pytest

import treefield as tf
from fuzz_checkpoints import packed, parsed
from small import check_same
from treefield.moves import BoxJump, Greedy, MixedJump, UniformJump


def check_refused_and_kept(call, path, error, message):
    before = path.read_bytes()
    with pytest.raises(error, match=message):
        call()
    assert path.read_bytes() == before and list(path.parent.iterdir()) == [path]


def other_models(mrf):
    unary = mrf.unary.copy()
    unary[3, 4, 1] += 1
    yield tf.GridMRF(unary, tf.Potts(0.4))
    yield tf.GridMRF(mrf.unary, tf.Potts(0.5))
    yield tf.GridMRF(mrf.unary, tf.TruncatedLinear(0.4, 1))
    yield tf.GridMRF(mrf.unary, tf.Potts(0.4), weights=(1, 2))
    yield tf.GridMRF(mrf.unary.transpose(1, 0, 2), tf.Potts(0.4))
    yield tf.GridMRF(mrf.unary.reshape(24, 20, 4), tf.Potts(0.4))
    yield tf.GridMRF(mrf.unary.reshape(4, 5, 24, 4), tf.Potts(0.4))
    yield tf.GridMRF(mrf.unary.astype(np.float64), tf.Potts(0.4))


def test_the_checkpoint_of_another_model_is_refused(mrf, path):
    tf.t_ils(mrf, maxiter=2, rng=0, checkpoint=path)
    for other in other_models(mrf):
        check_refused_and_kept(
            lambda other=other: tf.t_ils(other, checkpoint=path, maxiter=5),
            path,
            ValueError,
            "belongs to another model",
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"jump": UniformJump(0.2)}, r"jump=UniformJump\(0\.1\), this search has jump=UniformJump\(0\.2\)"),
        ({"jump": MixedJump()}, r"jump=UniformJump\(0\.1\), this search has jump=MixedJump"),
        ({"accept": Greedy()}, r"accept=Metropolis\(\), this search has accept=Greedy\(\)"),
        ({"beta": 1}, r"accept=Metropolis\(\), this search has accept=Metropolis\(beta=1\.0\)"),
        ({"inner_iter": 2}, "inner_iter=1, this search has inner_iter=2"),
        ({"inner_iter": None}, "inner_iter=1, this search has inner_iter=None"),
        ({"trees": "bands"}, "trees=.*rows-columns.*, this search has trees=.*bands"),
        ({"trees": [np.arange(24)]}, "trees=.*rows-columns"),
        ({"trees": "ribbons", "width": 2}, "trees=.*rows-columns.*, this search has trees=.*ribbons"),
        ({"order": "random"}, "order=fixed, this search has order=random"),
        ({"local_search": "icm"}, "t_icm.*, this search has .*icm"),
    ],
    ids=str,
)
def test_the_checkpoint_of_other_settings_is_refused(mrf, path, options, message):
    tf.t_ils(mrf, maxiter=2, rng=0, checkpoint=path)
    check_refused_and_kept(lambda: tf.t_ils(mrf, checkpoint=path, maxiter=5, **options), path, ValueError, message)


@pytest.mark.parametrize("solver", [tf.t_ils, tf.genetic])
def test_the_checkpoint_of_another_width_is_refused(mrf, path, solver):
    solver(mrf, maxiter=2, rng=0, trees="ribbons", width=2, checkpoint=path)
    for width in (None, 3):
        check_refused_and_kept(
            lambda width=width: solver(mrf, checkpoint=path, maxiter=5, trees="ribbons", width=width),
            path,
            ValueError,
            f"was written with width=2, this search has width={width}",
        )


@pytest.mark.parametrize("solver", [tf.t_ils, tf.genetic])
def test_a_search_without_a_width_has_the_settings_of_earlier_versions(mrf, path, solver):
    """Their checkpoints can be resumed."""
    solver(mrf, maxiter=1, rng=0, checkpoint=path)
    assert "width" not in parsed(path.read_bytes())[0]["owner"]["settings"]


def test_limits_threads_and_memory_may_change_between_resumes(mrf, path):
    whole = tf.t_ils(mrf, maxiter=9, rng=0)
    tf.t_ils(mrf, maxiter=2, rng=0, checkpoint=path, threads=1, time_limit=1e6, memory="low")
    check_same(tf.t_ils(mrf, maxiter=9, checkpoint=path, threads=2, patience=1000), whole)


def test_the_checkpoint_of_another_solver_is_refused(mrf, path):
    tf.genetic(mrf, population=3, maxiter=1, rng=0, checkpoint=path)
    check_refused_and_kept(
        lambda: tf.t_ils(mrf, checkpoint=path), path, ValueError, "was written by genetic, cannot resume t_ils"
    )
    for options, message in [
        ({"population": 4}, "population=3, this search has population=4"),
        ({"population": 3, "crossover": "site"}, "crossover=merge, this search has crossover=site"),
        ({"population": 3, "mutation": BoxJump()}, "mutation=UniformJump"),
    ]:
        check_refused_and_kept(
            lambda options=options: tf.genetic(mrf, checkpoint=path, **options), path, ValueError, message
        )


def test_a_checkpoint_of_another_kind_of_generator_is_refused(mrf, path):
    tf.t_ils(mrf, maxiter=2, rng=np.random.Generator(np.random.MT19937(0)), checkpoint=path)
    check_refused_and_kept(
        lambda: tf.t_ils(mrf, maxiter=5, rng=0, checkpoint=path),
        path,
        ValueError,
        "come from MT19937, but rng draws from PCG64",
    )


def other_files(folder):
    """Files that no search wrote."""
    path = folder / "other"
    for content in (b"", b"\0", b"treefield", b"PK\3\4", np.random.default_rng(0).bytes(5000)):
        path.write_bytes(content)
        yield path
    with path.open("wb") as file:
        np.save(file, np.arange(5))
    yield path
    with path.open("wb") as file:
        np.savez(file, x=np.arange(5))
    yield path


@pytest.mark.parametrize("solver", [tf.t_ils, tf.genetic, tf.anneal])
def test_a_file_that_is_no_checkpoint_is_refused(mrf, tmp_path, solver):
    for path in other_files(tmp_path):
        check_refused_and_kept(
            lambda path=path: solver(mrf, checkpoint=path),
            path,
            ValueError,
            f"{re.escape(str(path))} is not a treefield checkpoint",
        )


def test_a_checkpoint_of_format_1_is_refused_by_its_name(mrf, path):
    with path.open("wb") as file:
        np.savez(file, header=np.array('{"format": "treefield checkpoint 1"}'), x=np.zeros(5))
    check_refused_and_kept(
        lambda: tf.t_ils(mrf, checkpoint=path),
        path,
        ValueError,
        "has the format 'treefield checkpoint 1', expected 'treefield checkpoint 2'",
    )


def test_a_checkpoint_of_a_later_format_is_refused_by_its_name(mrf, path):
    path.write_bytes(b"treefield checkpoint 99\nwhatever this is\n")
    check_refused_and_kept(
        lambda: tf.t_ils(mrf, checkpoint=path), path, ValueError, "format 'treefield checkpoint 99', expected"
    )


def test_a_truncated_checkpoint_is_refused(mrf, path):
    tf.t_ils(mrf, maxiter=2, rng=0, checkpoint=path)
    whole = path.read_bytes()
    for length in [*range(0, len(whole), 97), len(whole) - 1]:
        path.write_bytes(whole[:length])
        why = "is damaged: its content does not match its checksum" if length >= 23 else "is not a treefield checkpoint"
        check_refused_and_kept(lambda: tf.t_ils(mrf, checkpoint=path), path, ValueError, why)


def test_a_checkpoint_with_one_changed_byte_is_refused(mrf, path):
    tf.t_ils(mrf, maxiter=2, rng=0, checkpoint=path)
    content = path.read_bytes()
    for place in [*range(600), *range(600, len(content), 41)]:
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x04]) + content[place + 1 :])
        check_refused_and_kept(
            lambda: tf.t_ils(mrf, maxiter=4, checkpoint=path),
            path,
            ValueError,
            f"^checkpoint {re.escape(str(path))} (is damaged|is not a treefield checkpoint|has the format)",
        )


def test_a_flipped_bit_in_the_length_of_the_trace_is_refused(mrf, path):
    tf.t_ils(mrf, maxiter=300, rng=0, checkpoint=path)
    content = path.read_bytes()
    assert content.count(b"[302]") == 1
    path.write_bytes(content.replace(b"[302]", b"[202]"))
    check_refused_and_kept(lambda: tf.t_ils(mrf, maxiter=320, checkpoint=path), path, ValueError, "is damaged")


@pytest.mark.parametrize("maxiter", [3, 6])
@pytest.mark.parametrize("name", ["x", "best", "population"])
def test_labels_out_of_range_under_a_right_checksum_are_refused(mrf, path, name, maxiter):
    solver, options = (tf.genetic, {"population": 3}) if name == "population" else (tf.t_ils, {})
    solver(mrf, maxiter=3, rng=0, checkpoint=path, **options)
    header, arrays = parsed(path.read_bytes())
    arrays[name][:] = b"\xfa" * len(arrays[name])
    path.write_bytes(packed(header, arrays))
    check_refused_and_kept(
        lambda: solver(mrf, maxiter=maxiter, checkpoint=path, **options),
        path,
        ValueError,
        f"{re.escape(str(path))} cannot be resumed \\({name} holds labels from 250 to 250, expected 0 to 3\\)",
    )


def test_a_label_that_its_site_lacks_is_refused(path):
    mrf = tf.GraphMRF([[0, 1], [2, 0, 4], [0, 3]], [(0, 1), (1, 2), (0, 2)], tf.Potts(1))
    tf.t_ils(mrf, maxiter=3, rng=0, checkpoint=path)
    header, arrays = parsed(path.read_bytes())
    arrays["best"][2] = 2
    path.write_bytes(packed(header, arrays))
    check_refused_and_kept(
        lambda: tf.t_ils(mrf, maxiter=3, checkpoint=path), path, ValueError, r"best\[2\] is label 2, but the site has"
    )


@pytest.mark.parametrize("solver", [tf.t_ils, tf.genetic, tf.anneal])
def test_a_missing_key_under_a_right_checksum_is_refused(mrf, path, solver):
    options = {"schedule": "log"} if solver is tf.anneal else {}
    solver(mrf, maxiter=2, rng=0, checkpoint=path, **options)
    content = path.read_bytes()
    for keys in [("owner",), ("arrays", "x"), ("owner", "model"), *(("state", k) for k in ("run", "rng", "search"))]:
        header, arrays = parsed(content)
        inner = header
        for key in keys[:-1]:
            inner = inner[key]
        del inner[keys[-1]]
        path.write_bytes(packed(header, arrays))
        check_refused_and_kept(
            lambda: solver(mrf, maxiter=4, checkpoint=path, **options),
            path,
            ValueError,
            f"{re.escape(str(path))} cannot be resumed .*must have the keys .*{keys[-1]}",
        )


def test_a_refused_state_leaves_the_generator_unchanged(mrf, path):
    tf.t_ils(mrf, maxiter=2, rng=0, checkpoint=path)
    header, arrays = parsed(path.read_bytes())
    header["state"]["search"]["accept"]["tried"] = -1
    path.write_bytes(packed(header, arrays))
    rng = np.random.default_rng(7)
    with pytest.raises(ValueError, match="tried must be at least 0, got -1"):
        tf.t_ils(mrf, rng=rng, checkpoint=path)
    assert rng.random() == np.random.default_rng(7).random()


def test_an_error_of_a_users_set_state_names_the_file(mrf, path):
    class Own(OwnJump):
        def get_state(self):
            return {"calls": 1}

        def set_state(self, state):
            raise KeyError("steps")

    tf.t_ils(mrf, jump=Own(), maxiter=2, rng=0, checkpoint=path)
    check_refused_and_kept(
        lambda: tf.t_ils(mrf, jump=Own(), maxiter=4, checkpoint=path),
        path,
        ValueError,
        f"{re.escape(str(path))} cannot be resumed \\(KeyError: 'steps'\\)",
    )


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_named_pipe_is_refused_without_waiting_for_it(mrf, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="is not a regular file"):
        tf.t_ils(mrf, checkpoint=tmp_path / "pipe")


def test_a_loop_of_symbolic_links_is_refused(mrf, tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(ValueError, match="is a loop of symbolic links"):
        tf.t_ils(mrf, checkpoint=loop, maxiter=1)


@pytest.mark.parametrize("solver", [tf.t_ils, tf.genetic])
def test_a_folder_or_a_path_in_a_missing_folder_is_refused_as_checkpoint(mrf, tmp_path, solver):
    with pytest.raises(IsADirectoryError, match="is a folder"):
        solver(mrf, checkpoint=tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        solver(mrf, checkpoint=tmp_path / "missing" / "search")
    assert list(tmp_path.iterdir()) == []


def test_a_refused_checkpoint_draws_no_random_number(mrf, path):
    path.write_bytes(b"mine")
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="is not a treefield checkpoint"):
        tf.t_ils(mrf, rng=rng, checkpoint=path)
    assert rng.random() == np.random.default_rng(0).random()


def test_a_function_is_recognised_as_a_jump(mrf, path):
    tf.t_ils(mrf, jump=own_jump, maxiter=2, rng=0, checkpoint=path)
    check_same(tf.t_ils(mrf, jump=own_jump, maxiter=6, checkpoint=path), tf.t_ils(mrf, jump=own_jump, maxiter=6, rng=0))
    check_refused_and_kept(
        lambda: tf.t_ils(mrf, jump=other_jump, checkpoint=path),
        path,
        ValueError,
        "jump=<function own_jump> .*, this search has jump=<function other_jump>",
    )


class OwnJump:
    def __call__(self, x, mrf, rng):
        return x.copy()


def own_jump(x, mrf, rng):
    return UniformJump(0.2)(x, mrf, rng)


def other_jump(x, mrf, rng):
    return UniformJump(0.3)(x, mrf, rng)


def test_a_checkpoint_of_slightly_different_settings_is_refused(mrf, path):
    tf.t_ils(mrf, jump=UniformJump(0.1), maxiter=2, rng=0, checkpoint=path)
    check_refused_and_kept(
        lambda: tf.t_ils(mrf, jump=UniformJump(0.10000001), checkpoint=path, maxiter=4), path, ValueError, "jump="
    )
