"""Answers for fixed seeds, recorded: labellings, energies and bounds stay the same to the bit.

A change that is meant to alter an answer records the new one:
`PYTHONPATH=benchmarks python tests/test_recorded_answers.py` prints them all.
"""

import hashlib

import numpy as np
import pytest

import problems
import treefield as tf
from treefield.moves import MixedJump, PerComponent

needs_data = pytest.mark.skipif(problems.data_folder() is None, reason="the benchmark pictures are not there")


def ising():
    rng = np.random.default_rng(0)
    fields = rng.uniform(-1, 1, (60, 70))
    return tf.GridMRF(
        np.stack([-fields, fields], axis=-1),
        tf.Table([[-1, 1], [1, -1]]),
        weights=(rng.uniform(-1, 1, (59, 70)), rng.uniform(-1, 1, (60, 69))),
    )


def graph():
    rng = np.random.default_rng(1)
    edges = rng.integers(0, 300, (900, 2))
    return tf.GraphMRF(rng.normal(size=(300, 4)), edges, tf.Potts(0.7), weights=rng.normal(size=900))


def eight_neighbours():
    return tf.GridMRF(np.random.default_rng(2).random((40, 50, 3)), tf.TruncatedLinear(0.2, 1), connectivity=2)


def tiled():
    unary = np.random.default_rng(3).integers(0, 99, (90, 80, 5)).astype(np.uint8)
    return tf.TiledMRF(unary, tf.Potts(30), tile=32)


SEARCHES = {
    "minimize": lambda mrf: tf.minimize(mrf, maxiter=6, tol=0, rng=0),
    "t_icm": lambda mrf: tf.t_icm(mrf, rng=0),
    "t_ils": lambda mrf: tf.t_ils(mrf, maxiter=6, rng=0),
    "mixed": lambda mrf: tf.t_ils(mrf, jump=MixedJump(), accept=PerComponent(), maxiter=12, rng=0),
    "trw": lambda mrf: tf.trw(mrf, maxiter=6),
    "anneal": lambda mrf: tf.anneal(mrf, maxiter=6, rng=0),
    "loopy_bp": lambda mrf: tf.loopy_bp(mrf, maxiter=6),
}
MODELS = {
    "tsukuba": problems.tsukuba,
    "venus": problems.middlebury_venus,
    "ising": ising,
    "graph": graph,
    "eight neighbours": eight_neighbours,
    "tiled": tiled,
}
CASES = [
    *((name, search) for name in ("tsukuba", "ising", "graph", "eight neighbours") for search in SEARCHES),
    ("venus", "minimize"),
    ("venus", "mixed"),
    ("tiled", "minimize"),
    ("tiled", "t_icm"),
    ("tiled", "t_ils"),
]
RECORDED = {
    ("tsukuba", "minimize"): ("6680efb8a7a9a00d", "392026.0", "390286.0"),
    ("tsukuba", "t_icm"): ("ccf3873be34cdcd8", "422018.0", "nan"),
    ("tsukuba", "t_ils"): ("23abde3dbbcda03f", "434918.0", "nan"),
    ("tsukuba", "mixed"): ("6e9de6b80cd50df0", "408000.0", "nan"),
    ("tsukuba", "trw"): ("32be3da55fb24b84", "399842.0", "387060.0"),
    ("tsukuba", "anneal"): ("49be8a7b9f8e83a7", "1362896.0", "nan"),
    ("tsukuba", "loopy_bp"): ("c4406fbbf16450c8", "946814.0", "nan"),
    ("ising", "minimize"): ("7cac5e81604fbcb6", "-3956.1177981447745", "-4200.01349873917"),
    ("ising", "t_icm"): ("e3dfbe80ee05b338", "-3806.02903926586", "nan"),
    ("ising", "t_ils"): ("7dbe9362b6fdaf5f", "-3820.1594965134946", "nan"),
    ("ising", "mixed"): ("a9f09612f9c769e9", "-3908.151739422454", "nan"),
    ("ising", "trw"): ("f74cb21527c0e7eb", "-3556.798004211886", "-4228.593096212315"),
    ("ising", "anneal"): ("bac9bd09e8005dbf", "-3650.8564811725", "nan"),
    ("ising", "loopy_bp"): ("f56ad3d7792bf0aa", "-3044.5277764851285", "nan"),
    ("graph", "minimize"): ("205afa7b66b4a84f", "-376.34745960943116", "-381.23674237633566"),
    ("graph", "t_icm"): ("527c7962cf06f487", "-370.3794510360433", "nan"),
    ("graph", "t_ils"): ("fa6d8d43e0b3cd49", "-370.6901731107087", "nan"),
    ("graph", "mixed"): ("35dc2ca7f6a5fa47", "-376.2669039039304", "nan"),
    ("graph", "trw"): ("28884aa6a718e8cc", "-369.1111328064009", "-387.85888835710773"),
    ("graph", "anneal"): ("096f79b9c8b96311", "-358.0951567946963", "nan"),
    ("graph", "loopy_bp"): ("8a23ba2bcce14cf0", "-360.3897848216249", "nan"),
    ("eight neighbours", "minimize"): ("1980ecca0cbad4f3", "989.024841938023", "989.024841937901"),
    ("eight neighbours", "t_icm"): ("c4adb1457d33104e", "1088.6016791031118", "nan"),
    ("eight neighbours", "t_ils"): ("b37012f159c54a87", "1087.4447056233346", "nan"),
    ("eight neighbours", "mixed"): ("4d5f43ca82a7e374", "1026.336789991568", "nan"),
    ("eight neighbours", "trw"): ("e9cdd762a3b03933", "995.2285880991432", "987.2175621293733"),
    ("eight neighbours", "anneal"): ("621cfad7ced24960", "1107.5370523517229", "nan"),
    ("eight neighbours", "loopy_bp"): ("307a14cc81fa5fa6", "1109.3188613152502", "nan"),
    ("venus", "minimize"): ("45ab586baf892d79", "3058194.0", "3040032.0"),
    ("venus", "mixed"): ("0abc255df30178c7", "3216168.0", "nan"),
    ("tiled", "minimize"): ("3bd7d6b099ef3de1", "326910.0", "321419.0"),
    ("tiled", "t_icm"): ("279e4c578d0c9e33", "340612.0", "nan"),
    ("tiled", "t_ils"): ("5e4f6d5b63837ada", "337893.0", "nan"),
}


def answer(name, search):
    """A digest of the labelling, the energy and the bound."""
    res = SEARCHES[search](MODELS[name]())
    labels = hashlib.blake2b(np.asarray(res.x, np.int32).tobytes(), digest_size=8).hexdigest()
    return labels, repr(float(res.fun)), repr(float(res.lower_bound))


@needs_data
@pytest.mark.parametrize(("name", "search"), CASES)
def test_answer_for_a_fixed_seed_equals_the_recorded_one(name, search):
    assert answer(name, search) == RECORDED[name, search]


if __name__ == "__main__":
    for case in CASES:
        print(f"    {case}: {answer(*case)},")
