"""A checkpoint that belongs to something else, or is none, is refused and left as it is."""

import numpy as np
import pytest

import treefield as tf
from small import check_same
from treefield.moves import BoxJump, Greedy, MixedJump, UniformJump, Unvisited
from treefield.solvers import checkpoint as checkpoints


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


def test_the_file_of_another_model_is_refused(mrf, path):
    tf.t_ils(mrf, maxiter=2, rng=0, checkpoint=path)
    for other in other_models(mrf):
        check_refused_and_kept(
            lambda other=other: tf.t_ils(other, checkpoint=path, maxiter=5), path, ValueError, "is of another model"
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"jump": UniformJump(0.2)}, r"jump=UniformJump\(0\.1\), this has UniformJump\(0\.2\)"),
        ({"jump": MixedJump()}, r"jump=UniformJump\(0\.1\), this has MixedJump"),
        ({"accept": Greedy()}, r"accept=Metropolis\(\), this has Greedy\(\)"),
        ({"beta": 1}, r"accept=Metropolis\(\), this has Metropolis\(beta=1\.0\)"),
        ({"inner_iter": 2}, "inner_iter=1, this has 2"),
        ({"inner_iter": None}, "inner_iter=1, this has None"),
        ({"trees": "bands"}, "trees=.*rows-columns.*, this has .*bands"),
        ({"trees": [np.arange(24)]}, "trees=.*rows-columns"),
        ({"order": "random"}, "order=fixed, this has random"),
        ({"local_search": "icm"}, "t_icm.*, this has .*icm"),
    ],
    ids=str,
)
def test_the_file_of_other_settings_is_refused(mrf, path, options, message):
    tf.t_ils(mrf, maxiter=2, rng=0, checkpoint=path)
    check_refused_and_kept(lambda: tf.t_ils(mrf, checkpoint=path, maxiter=5, **options), path, ValueError, message)


def test_limits_and_machinery_are_no_settings(mrf, path):
    whole = tf.t_ils(mrf, maxiter=9, rng=0)
    tf.t_ils(mrf, maxiter=2, rng=0, checkpoint=path, threads=1, time_limit=1e6, memory="low")
    check_same(tf.t_ils(mrf, maxiter=9, checkpoint=path, threads=2, patience=1000), whole)


def test_the_file_of_another_solver_is_refused(mrf, path):
    tf.genetic(mrf, population=3, maxiter=1, rng=0, checkpoint=path)
    check_refused_and_kept(lambda: tf.t_ils(mrf, checkpoint=path), path, ValueError, "is of genetic, this is t_ils")
    for options, message in [
        ({"population": 4}, "population=3, this has 4"),
        ({"population": 3, "crossover": "site"}, "crossover=merge, this has site"),
        ({"population": 3, "mutation": BoxJump()}, "mutation=UniformJump"),
    ]:
        check_refused_and_kept(
            lambda options=options: tf.genetic(mrf, checkpoint=path, **options), path, ValueError, message
        )


def test_another_kind_of_random_numbers_is_refused(mrf, path):
    tf.t_ils(mrf, maxiter=2, rng=np.random.Generator(np.random.MT19937(0)), checkpoint=path)
    check_refused_and_kept(
        lambda: tf.t_ils(mrf, maxiter=5, rng=0, checkpoint=path), path, ValueError, "from MT19937, but .* from PCG64"
    )


def other_files(folder):
    """Files that no search wrote."""
    path = folder / "other"
    for content in (b"", b"\0", b"treefield checkpoint 1", b"PK\3\4", np.random.default_rng(0).bytes(5000)):
        path.write_bytes(content)
        yield path
    with path.open("wb") as file:
        np.save(file, np.arange(5))
    yield path
    for arrays in ({"x": np.arange(5)}, {"header": np.array("no JSON")}, {"header": np.array("[1, 2]")}):
        with path.open("wb") as file:
            np.savez(file, **arrays)
        yield path


@pytest.mark.parametrize("solver", [tf.t_ils, tf.genetic])
def test_a_file_that_is_no_checkpoint_is_refused(mrf, tmp_path, solver):
    for path in other_files(tmp_path):
        check_refused_and_kept(
            lambda path=path: solver(mrf, checkpoint=path), path, ValueError, "is not a file that treefield wrote"
        )


def test_a_file_of_another_format_is_refused(mrf, path):
    with path.open("wb") as file:
        np.savez(file, header=np.array('{"format": "treefield checkpoint 99"}'))
    check_refused_and_kept(
        lambda: tf.t_ils(mrf, checkpoint=path), path, ValueError, "format 'treefield checkpoint 99', expected"
    )


def test_a_file_that_was_cut_off_is_refused(mrf, path):
    tf.t_ils(mrf, maxiter=2, rng=0, checkpoint=path)
    whole = path.read_bytes()
    for length in [*range(0, len(whole), 97), len(whole) - 1]:
        path.write_bytes(whole[:length])
        check_refused_and_kept(
            lambda: tf.t_ils(mrf, checkpoint=path), path, ValueError, "is not a file that treefield wrote"
        )


def test_a_damaged_file_is_refused(mrf, path):
    """One byte after the other is changed: either that is seen, or the search ends as it would have."""
    whole = tf.t_ils(mrf, maxiter=4, rng=0)
    tf.t_ils(mrf, maxiter=2, rng=0, checkpoint=path)
    content, refused = path.read_bytes(), 0
    places = range(0, len(content), max(1, len(content) // 300))
    for place in places:
        path.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        try:
            res = tf.t_ils(mrf, maxiter=4, checkpoint=path)
        except ValueError as error:
            assert "is not a file that treefield wrote" in str(error)
            refused += 1
        else:
            np.testing.assert_array_equal(res.x, whole.x)
    assert refused > 0.8 * len(places)


@pytest.mark.parametrize("solver", [tf.t_ils, tf.genetic])
def test_a_folder_is_no_file_and_a_folder_that_is_not_there_is_not_made(mrf, tmp_path, solver):
    with pytest.raises(IsADirectoryError, match="is a folder"):
        solver(mrf, checkpoint=tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        solver(mrf, checkpoint=tmp_path / "missing" / "search")
    assert list(tmp_path.iterdir()) == []


def test_a_refusal_draws_no_random_number(mrf, path):
    path.write_bytes(b"mine")
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="is not a file that treefield wrote"):
        tf.t_ils(mrf, rng=rng, checkpoint=path)
    assert rng.random() == np.random.default_rng(0).random()


def test_a_jump_of_the_users_own_is_known_again_by_its_name(mrf, path):
    tf.t_ils(mrf, jump=own_jump, maxiter=2, rng=0, checkpoint=path)
    check_same(tf.t_ils(mrf, jump=own_jump, maxiter=6, checkpoint=path), tf.t_ils(mrf, jump=own_jump, maxiter=6, rng=0))
    check_refused_and_kept(
        lambda: tf.t_ils(mrf, jump=other_jump, checkpoint=path), path, ValueError, "own_jump>, this has .*other_jump"
    )


def test_a_jump_of_the_users_own_is_known_again_inside_a_mixture():
    described = [checkpoints.described(MixedJump([OwnJump()])) for _ in range(2)]
    assert described[0] == described[1]
    assert " at 0x" not in described[0] + checkpoints.described(Unvisited(own_jump))


class OwnJump:
    def __call__(self, x, mrf, rng):
        return x.copy()


def own_jump(x, mrf, rng):
    return UniformJump(0.2)(x, mrf, rng)


def other_jump(x, mrf, rng):
    return UniformJump(0.3)(x, mrf, rng)


def test_settings_that_differ_little_differ(mrf, path):
    tf.t_ils(mrf, jump=UniformJump(0.1), maxiter=2, rng=0, checkpoint=path)
    check_refused_and_kept(
        lambda: tf.t_ils(mrf, jump=UniformJump(0.10000001), checkpoint=path, maxiter=4), path, ValueError, "jump="
    )
