"""Jumps that differ in any code or value are distinguished when a search is resumed, also in another process."""

import functools
import os
import pathlib
import subprocess
import sys
import threading

import numba
import numpy as np
import pytest

import treefield as tf
from small import check_same
from treefield.moves import MixedJump, PerComponent, UniformJump, Unvisited
from treefield.solvers.identity import describe_part

SHARE = 0.2


class Own:
    """A jump with the default repr."""

    def __init__(self, share=0.1):
        self.share = share

    def __call__(self, x, mrf, rng):
        return UniformJump(self.share)(x, mrf, rng)


class Shown(Own):
    """A jump with a repr that shows its settings."""

    def __repr__(self):
        return f"Shown({self.share!r})"


def wide(x, mrf, rng):
    return UniformJump(0.5)(x, mrf, rng)


def narrow(x, mrf, rng):
    return UniformJump(0.05)(x, mrf, rng)


def by_global(x, mrf, rng):
    return UniformJump(SHARE)(x, mrf, rng)


def by_helper(x, mrf, rng):
    return by_global(x, mrf, rng)


def closed(share):
    return lambda x, mrf, rng: UniformJump(share)(x, mrf, rng)


def defaulted(share):
    def jump(x, mrf, rng, share=share):
        return UniformJump(share)(x, mrf, rng)

    return jump


def local_class(share):
    class Local:
        def __call__(self, x, mrf, rng):
            return UniformJump(self.size)(x, mrf, rng)

        @property
        def size(self):
            return share

    return Local()


def class_value(value):
    class Valued(Own):
        share_of_all = value

    return Valued()


def compiled(share):
    @numba.njit
    def jump(x, mrf, rng):
        return share

    return jump


def recursive(depth):
    def jump(x, mrf, rng):
        return jump if depth else x

    return jump


PAIRS = {
    "lambdas": (lambda x, mrf, rng: UniformJump(0.1)(x, mrf, rng), lambda x, mrf, rng: UniformJump(0.2)(x, mrf, rng)),
    "closures": (closed(0.1), closed(0.2)),
    "closures of containers": (closed([{"a": 1}, (2,)]), closed([{"a": 1}, (3,)])),
    "closures of arrays": (closed(np.arange(5000)), closed(np.where(np.arange(5000) == 2500, 0, np.arange(5000)))),
    "closures of objects": (closed(Own(0.1)), closed(Own(0.2))),
    "defaults": (defaulted(0.1), defaulted(0.2)),
    "attributes": (Own(0.1), Own(0.2)),
    "attributes of another type": (Own(1), Own(1.0)),
    "classes of one name": (local_class(0.1), local_class(0.2)),
    "class attributes": (class_value(1), class_value(2)),
    "bound methods": (Own(0.1).__call__, Own(0.2).__call__),
    "partial functions": (functools.partial(closed, 0.1), functools.partial(closed, 0.2)),
    "compiled functions": (compiled(1), compiled(2)),
    "cached functions": (functools.cache(closed(0.1)), functools.cache(closed(0.2))),
    "universal functions": (closed(np.add), closed(np.multiply)),
    "reprs of large arrays": (Shown(np.zeros(5000)), Shown(np.arange(5000) == 2500.0)),
    "reprs of close numbers": (Shown(np.array([0.1])), Shown(np.array([0.1 + 1e-15]))),
    "recursive functions": (recursive(0), recursive(1)),
    "inside a mixture": (MixedJump([wide, closed(0.1)]), MixedJump([wide, closed(0.2)])),
    "inside an acceptance": (Unvisited(Own(0.1)), Unvisited(Own(0.2))),
}


@pytest.mark.parametrize("name", PAIRS)
def test_two_jumps_that_differ_only_inside_have_different_descriptions(name):
    first, second = (describe_part(part, "jump") for part in PAIRS[name])
    assert first != second
    assert " at 0x" not in first + second
    assert describe_part(PAIRS[name][0], "jump") == first


def test_jumps_made_again_have_equal_descriptions():
    for make in (closed, defaulted, local_class, class_value, compiled, recursive, Own, lambda n: MixedJump([Own(n)])):
        assert describe_part(make(0.3), "jump") == describe_part(make(0.3), "jump")


def test_a_changed_global_variable_makes_another_jump(monkeypatch):
    before = [describe_part(jump, "jump") for jump in (by_global, by_helper, wide)]
    monkeypatch.setattr(sys.modules[__name__], "SHARE", 0.3)
    after = [describe_part(jump, "jump") for jump in (by_global, by_helper, wide)]
    assert [old == new for old, new in zip(before, after, strict=True)] == [False, False, True]


def test_an_object_with_a_repr_is_known_by_it_alone():
    jump = Shown()
    jump.calls = 17
    assert describe_part(jump, "jump") == describe_part(Shown(), "jump") == "Shown(0.1)"


def test_a_part_whose_content_cannot_be_listed_is_refused_at_the_start(mrf, path):
    lock = threading.Lock()

    def locked(x, mrf, rng):
        with lock:
            return wide(x, mrf, rng)

    advice = r"jump=<function .*locked> cannot be recognised .*lock.*give its class a __repr__"
    with pytest.raises(ValueError, match=advice):
        tf.t_ils(mrf, jump=locked, maxiter=2, checkpoint=path)
    assert list(path.parent.iterdir()) == []
    assert tf.t_ils(mrf, jump=locked, maxiter=2, rng=0).nit == 2  # without a checkpoint any jump will do


def test_a_tree_set_as_local_search_is_refused_with_a_checkpoint(mrf, path):
    with pytest.raises(ValueError, match="name the trees with trees= instead"):
        tf.t_ils(mrf, local_search=mrf.backend.tree_set("bands"), maxiter=2, checkpoint=path)


def test_a_local_search_of_the_user_is_recognised(mrf, path):
    class Still:
        def __init__(self, change):
            self.change = change

        def sweep(self, x, rng, reverse):
            return self.change

    whole = tf.t_ils(mrf, local_search=Still(0.0), maxiter=6, rng=0)
    tf.t_ils(mrf, local_search=Still(0.0), maxiter=2, rng=0, checkpoint=path)
    with pytest.raises(ValueError, match="was written with local_search="):
        tf.t_ils(mrf, local_search=Still(1.0), maxiter=6, checkpoint=path)
    check_same(tf.t_ils(mrf, local_search=Still(0.0), maxiter=6, checkpoint=path), whole)


@pytest.mark.parametrize(
    ("first", "second"), [({"jump": closed(0.1)}, {"jump": closed(0.9)}), ({"jump": Own(0.1)}, {"jump": Own(0.9)})]
)
def test_a_checkpoint_of_a_jump_that_differs_only_inside_is_refused(mrf, path, first, second):
    tf.t_ils(mrf, maxiter=3, rng=0, checkpoint=path, **first)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"was written with jump=.*, this search has jump="):
        tf.t_ils(mrf, maxiter=5, checkpoint=path, **second)
    assert path.read_bytes() == before
    check_same(tf.t_ils(mrf, maxiter=5, checkpoint=path, **first), tf.t_ils(mrf, maxiter=5, rng=0, **first))


SCRIPT = """
import numpy as np
from treefield.moves import MixedJump, UniformJump
from treefield.solvers.identity import describe_part

NAMES = {"rows", "columns", "diagonals", "boxes", "balls"}

class Jump:
    def __init__(self):
        self.names, self.table = set(NAMES), np.arange(3)
    def __call__(self, x, mrf, rng):
        return x.copy() if "rows" in {"rows", "columns", "spirals"} else NAMES

print(describe_part(MixedJump([Jump(), lambda x, mrf, rng: UniformJump(0.1)(x, mrf, rng)]), "jump"))
"""


def test_descriptions_are_equal_in_every_process():
    package = str(pathlib.Path(tf.__file__).parents[1])
    texts = set()
    for seed in range(4):
        given = os.environ | {"PYTHONHASHSEED": str(seed), "PYTHONPATH": package}
        child = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=given, check=True)
        texts.add(child.stdout)
    assert len(texts) == 1


def test_moves_of_the_package_are_known_by_their_reprs():
    for part in (MixedJump(), PerComponent(), UniformJump(0.25)):
        assert describe_part(part, "jump") == repr(part)
