"""Mutate checkpoints: each one is refused by an error that names the file, or resumes exactly as the original.

``python tests/fuzz_checkpoints.py --mutations 10000`` prints the counts and exits with 1 after a failure; ``--only
NUMBER`` repeats one mutation. Mutations run in child processes, so that a crash is one failure too.

Most mutations damage the bytes, those of the header above all, and must be refused. Others rewrite the content under a
right checksum. Such a file is refused if it cannot be resumed, resumes exactly if it means the same, and otherwise (a
forged state, such as another label in range) at least ends in a labelling with its true energy.
"""

import argparse
import collections
import copy
import faulthandler
import functools
import hashlib
import json
import operator
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy as np

import treefield as tf
from treefield.moves import Metropolis, MixedJump, PerComponent, UniformJump, Unvisited
from treefield.results import TRACE

MAGIC, DIGEST_LINE = b"treefield checkpoint 2\n", 65
HEAD = len(MAGIC) + DIGEST_LINE
DONE, MORE = 6, 9  # iterations in the file, and of a resumed search
BATCH = 500
SECONDS = 600  # for a batch, which takes a few: a hang is a failure
REFUSED, SAME, FORGED = "refused", "same", "forged"


class Wave:
    """A jump with the default repr and a state: every third one is wide."""

    def __init__(self):
        self.calls = 0

    def __call__(self, x, mrf, rng):
        self.calls += 1
        return UniformJump(0.5 if self.calls % 3 == 0 else 0.05)(x, mrf, rng)

    def get_state(self):
        return self.calls

    def set_state(self, state):
        self.calls = operator.index(state)


def grid(**lattice):
    return tf.GridMRF(np.random.default_rng(0).random((9, 8, 4), dtype=np.float32), tf.Potts(0.4), **lattice)


def forbidding_grid():
    unary = np.random.default_rng(1).random((7, 6, 300))
    unary[2, 3, :5] = np.inf
    return tf.GridMRF(unary, tf.Potts(0.4))


def uneven_graph():
    """A graph whose sites have two to five labels."""
    rng = np.random.default_rng(0)
    counts = rng.integers(2, 6, 30)
    edges = [(i, j) for i in range(30) for j in (i + 1, i + 7) if j < 30]
    tables = [rng.random((counts[i], counts[j])) for i, j in edges]
    return tf.GraphMRF([rng.random(count) for count in counts], edges, tables)


def masked_grid():
    mask = np.ones((9, 8), bool)
    mask[3:5, 2:] = False
    return grid(mask=mask)


def through_minimize(mrf, **options):
    return tf.minimize(mrf, method="t_ils", **options)


# how a search is made: a model, a solver, its options, its kind of random numbers
CASES = {
    "the paper's": (grid, tf.t_ils, lambda: {}, np.random.PCG64),
    "mixed": (grid, tf.t_ils, lambda: {"jump": MixedJump(), "accept": PerComponent(Metropolis())}, np.random.SFC64),
    "unvisited": (masked_grid, tf.t_ils, lambda: {"accept": Unvisited(Metropolis(), length=8)}, np.random.PCG64),
    "pieces": (uneven_graph, tf.t_ils, lambda: {"accept": Unvisited(PerComponent(Metropolis(2)))}, np.random.Philox),
    "graph": (uneven_graph, through_minimize, lambda: {"jump": MixedJump([Wave()])}, np.random.MT19937),
    "forbidden": (forbidding_grid, tf.t_ils, lambda: {"beta": np.inf, "jump": Wave()}, np.random.PCG64DXSM),
    "annealing": (grid, tf.anneal, lambda: {"schedule": "log"}, np.random.Philox),
    "annealing, given": (
        uneven_graph,
        tf.anneal,
        lambda: {"schedule": "log", "temperatures": (3, 0.5)},
        np.random.MT19937,
    ),
    "genetic": (grid, tf.genetic, lambda: {"population": 4}, np.random.PCG64),
    "genetic graph": (uneven_graph, tf.genetic, lambda: {"population": 3, "mutation": MixedJump()}, np.random.PCG64),
}


@functools.cache
def search(name):
    """A model, a function of iterations and a path that resumes a search of it, the content of its checkpoint, and the
    results of resuming that."""
    model, solver, options, kind = CASES[name]
    mrf = model()

    def run(maxiter, path):
        return solver(mrf, maxiter=maxiter, rng=np.random.Generator(kind(5)), checkpoint=path, **options())

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "whole"
        results = {DONE: run(DONE, path)}
        content = path.read_bytes()
        results[MORE] = run(MORE, path)
    return mrf, run, content, results


def parsed(content):
    """The JSON of a checkpoint and the bytes of its arrays by name."""
    line, _, data = content[HEAD:].partition(b"\n")
    header, arrays = json.loads(line), {}
    for name, spec in header["arrays"].items():
        item = TRACE.itemsize if name == "trace" else np.dtype(spec["dtype"]).itemsize
        size = item * int(np.prod(spec["shape"]))
        arrays[name], data = bytearray(data[:size]), data[size:]
    assert not data
    return header, arrays


def packed(header, arrays, **style):
    """A checkpoint with a right checksum."""
    body = json.dumps(header, **style).encode() + b"\n" + b"".join(arrays.values())
    return MAGIC + hashlib.blake2b(body, digest_size=32).hexdigest().encode() + b"\n" + body


# --- damage: bytes change, the checksum stays ------------------------------------------------------------------------


def damaged(content, rng):
    """A copy with damaged bytes, mostly in the header."""
    line = content.index(b"\n", HEAD) + 1
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        reach = rng.choice((HEAD, line, line, line, len(content)))
        at = rng.randrange(min(reach, len(data)) or 1)
        other, length = rng.randrange(len(data) + 1), rng.randrange(1, 200)
        kind = rng.randrange(10)
        if kind < 4 and data:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 4:
            digits = [i for i in range(HEAD, min(line, len(data))) if chr(data[i]).isdigit()]
            if digits:
                data[rng.choice(digits)] = rng.choice(b"0123456789")
        elif kind == 5:
            del data[at:]
        elif kind == 6:
            del data[at : at + length]
        elif kind == 7:
            data[other:other] = data[at : at + length]
        elif kind == 8:
            data += rng.randbytes(length)
        else:
            data[at : at + length], data[other : other + length] = (
                data[other : other + length],
                data[at : at + length],
            )
    return bytes(data)


def of_another_search(content, rng):
    """The file of another search, or the head of one and the body of another."""
    other = search(rng.choice(list(CASES)))[2]
    return other if rng.random() < 0.5 else content[:HEAD] + other[HEAD:]


# --- wrong content under a right checksum ----------------------------------------------------------------------------


def dicts_in(value):
    """All dicts in the JSON of a checkpoint."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from dicts_in(inner)


def leaves_in(value):
    """Where the values are that are no dict and no list: (holder, key); of long lists the first three."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value[:3]):
        if isinstance(inner, dict | list):
            yield from leaves_in(inner)
        else:
            yield value, key


def drop_key(header, arrays, mrf, rng):
    found = rng.choice([one for one in dicts_in(header) if one])
    del found[rng.choice(list(found))]
    return REFUSED


def add_key(header, arrays, mrf, rng):
    rng.choice(list(dicts_in(header)))["more"] = rng.choice((None, 1, "x"))
    return REFUSED


def rename_key(header, arrays, mrf, rng):
    found = rng.choice([one for one in dicts_in(header) if one])
    found["renamed"] = found.pop(rng.choice(list(found)))
    return REFUSED


def change_type(header, arrays, mrf, rng):
    holder, key = rng.choice(list(leaves_in(header)))
    holder[key] = rng.choice(("text", [], {}, [[1, 2], 3], {"a": 1}, b"x".hex(), float("nan")))
    return REFUSED


def change_number(header, arrays, mrf, rng):
    numbers = [(h, k) for h, k in leaves_in(header) if isinstance(h[k], int | float)]
    holder, key = rng.choice(numbers)
    holder[key] = rng.choice((-1, 0, 1, 0.5, 1e308, 2**31, 2**63, 2**64, 2**200, 10**400, True, None, float("inf")))
    return FORGED


def cut_list(header, arrays, mrf, rng):
    lists = [v for one in dicts_in(header["state"]) for v in one.values() if isinstance(v, list) and v]
    if not lists:
        return SAME
    found = rng.choice(lists)
    if rng.random() < 0.5:
        found.pop()
    else:
        found.append(found[-1])
    places = [one["places"] for one in dicts_in(header["state"]) if "places" in one]
    return FORGED if any(found is one for one in places) else REFUSED


def change_dtype(header, arrays, mrf, rng):
    spec = header["arrays"][rng.choice(list(arrays))]
    kinds = {"|u1", "<u2", "|i1", "<i4", ">u2", "<f8", "|O", "|b1", "nonsense", "u1", 8} - {spec["dtype"]}
    spec["dtype"] = rng.choice(sorted(kinds, key=str))
    return REFUSED


def change_shape(header, arrays, mrf, rng):
    spec = header["arrays"][rng.choice(list(arrays))]
    shape = spec["shape"]
    shapes = [[*shape, 1], shape[:-1], [-n for n in shape], [n + 1 for n in shape], [float(n) for n in shape], [0]]
    shapes += [[2**62, 4], [max(1, n - 1) for n in shape], None, "9"] + ([shape[::-1]] if len(set(shape)) > 1 else [])
    spec["shape"] = rng.choice(shapes)
    return REFUSED


def label_out_of_range(header, arrays, mrf, rng):
    name = rng.choice([name for name in arrays if name != "trace"])
    labels = np.frombuffer(arrays[name], header["arrays"][name]["dtype"]).reshape(-1, mrf.size)
    site = rng.randrange(mrf.size)
    count = int(np.asarray(mrf.backend.label_counts).reshape(-1)[site])
    labels[rng.randrange(len(labels)), site] = rng.choice((count, np.iinfo(labels.dtype).max))
    return REFUSED


def other_label(header, arrays, mrf, rng):
    name = rng.choice([name for name in arrays if name != "trace"])
    labels = np.frombuffer(arrays[name], header["arrays"][name]["dtype"]).reshape(-1, mrf.size)
    site = rng.randrange(mrf.size)
    labels[rng.randrange(len(labels)), site] = 0
    return FORGED


def wrong_trace(header, arrays, mrf, rng):
    trace = np.frombuffer(arrays["trace"], TRACE)
    row = rng.randrange(len(trace))
    name, value = rng.choice(
        (
            ("iteration", trace["iteration"][row] + rng.choice((-1, 1, 2**40))),
            ("seconds", np.nan),
            ("seconds", np.inf),
            ("energy", np.nan),
            ("best", np.nan),
            ("bound", -1e9),
        )
    )
    trace[name][row] = value
    return REFUSED


def other_energy(header, arrays, mrf, rng):
    trace = np.frombuffer(arrays["trace"], TRACE)
    trace[rng.choice(("energy", "best"))][rng.randrange(len(trace))] = rng.choice((-1e300, 0.0, 1e300, np.inf))
    return FORGED


def shorter_trace(header, arrays, mrf, rng):
    rows = header["arrays"]["trace"]["shape"][0]
    kept = rng.randrange(rows - 1)
    header["arrays"]["trace"]["shape"] = [kept]
    if rng.random() < 0.7:
        del arrays["trace"][kept * TRACE.itemsize :]
    return REFUSED


def swap_arrays(header, arrays, mrf, rng):
    first, second = rng.sample(list(arrays), 2)
    arrays[first], arrays[second] = arrays[second], arrays[first]
    same_kind = header["arrays"][first] == header["arrays"][second]
    return FORGED if same_kind else REFUSED


def drop_array(header, arrays, mrf, rng):
    name = rng.choice(list(arrays))
    del arrays[name], header["arrays"][name]
    return REFUSED


def more_or_fewer_bytes(header, arrays, mrf, rng):
    last = list(arrays.values())[-1]
    if rng.random() < 0.5:
        last += rng.randbytes(rng.randrange(1, 30))
    else:
        del last[rng.randrange(len(last)) :]
    return REFUSED


def wrong_stream(header, arrays, mrf, rng):
    stream = header["state"]["rng"]
    kind = rng.randrange(4)
    if kind == 0:
        stream["bit_generator"] = rng.choice(("PCG32", "", "MT19937x", 5, None))
    elif kind == 1:
        stream["state"] = rng.choice((None, [], 1, {}, "PCG64"))
    elif "buffer_pos" in stream:
        stream["buffer_pos"] = rng.choice((-1, -(2**31), 5, 2**31 - 1, 2**40))
    elif "pos" in stream["state"]:
        stream["state"]["pos"] = rng.choice((-1, -(2**31), 625, 2**31 - 1, 2**40))
    else:
        stream["has_uint32"] = rng.choice((-1, 2, "1", None))
    return REFUSED


def other_owner(header, arrays, mrf, rng):
    owner = header["owner"]
    kind = rng.randrange(4)
    if kind == 0:
        owner["method"] = rng.choice(("trw", "", 5, None))
    elif kind == 1:
        owner["model"] = owner["model"][::-1] + "0"
    elif kind == 2:
        owner["settings"] = rng.choice((None, [], {}, "x"))
    else:
        owner["settings"][rng.choice(list(owner["settings"]))] = "other"
    return REFUSED


def other_spelling(header, arrays, mrf, rng):
    """The same content: another order of keys and arrays, other seconds."""
    names = list(arrays)
    rng.shuffle(names)
    header["arrays"] = {name: header["arrays"][name] for name in names}
    ordered = {name: arrays[name] for name in names}
    arrays.clear()
    arrays.update(ordered)
    for one in (header, header["state"], header["owner"], header["state"]["run"]):
        items = list(one.items())
        rng.shuffle(items)
        one.clear()
        one.update(items)
    np.frombuffer(arrays["trace"], TRACE)["seconds"][:] += 1
    return SAME


REWRITES = (
    *(drop_key, add_key, rename_key, change_type, change_number, cut_list, change_dtype, change_shape),
    *(label_out_of_range, other_label, wrong_trace, other_energy, shorter_trace, swap_arrays, drop_array),
    *(more_or_fewer_bytes, wrong_stream, other_owner, other_spelling),
)


def mutated(content, mrf, rng):
    """A mutated checkpoint, what kind of mutation it is, and what must come of it."""
    chance = rng.random()
    if chance < 0.55:
        data, kind, expected = damaged(content, rng), "damaged bytes", REFUSED
    elif chance < 0.6:
        data, kind, expected = of_another_search(content, rng), "another search", REFUSED
    else:
        rewrite = rng.choice(REWRITES)
        header, arrays = copy.deepcopy(parsed(content))
        expected = rewrite(header, arrays, mrf, rng)
        separators = rng.choice((None, (",", ":"))) if expected == SAME else None
        data, kind = packed(header, arrays, separators=separators), rewrite.__name__
    return data, kind, SAME if data == content else expected


# --- running ---------------------------------------------------------------------------------------------------------


def outcome(number, seed, path):
    """Make one mutation and resume from it: (kind of mutation, outcome), or an AssertionError."""
    rng = random.Random(f"{seed} {number}")
    mrf, run, content, results = search(list(CASES)[number % len(CASES)])
    data, kind, expected = mutated(content, mrf, rng)
    path.write_bytes(data)
    maxiter = rng.choice((DONE, MORE))  # where nothing is left to do the labelling of the file is the result
    try:
        res = run(maxiter, path)
    except ValueError as error:
        text = str(error)
        assert expected != SAME, f"{kind}: refused, though it means the same: {text}"
        assert str(path) in text and "\n" not in text, f"{kind}: the message must name the file in one line: {text}"
        assert path.read_bytes() == data and list(path.parent.iterdir()) == [path], f"{kind}: the file has changed"
        return kind, REFUSED
    except Exception as error:
        raise AssertionError(f"{kind}: {type(error).__name__}: {error}") from error
    assert expected != REFUSED, f"{kind}: resumed, with the energy {res.fun}"
    same = np.array_equal(res.x, results[maxiter].x) and all(
        np.array_equal(res.trace[column], results[maxiter].trace[column]) for column in ("iteration", "energy", "best")
    )
    assert same or expected == FORGED, f"{kind}: another result, with the energy {res.fun}"
    assert res.x.shape == mrf.shape and res.fun == mrf.energy(res.x), f"{kind}: the energy is not {res.fun}"
    return kind, SAME if same else FORGED


def _batch(first, last, seed):
    """A child: prints a line for each mutation, before it and after it."""
    faulthandler.enable()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "mutated"
        for number in range(first, last):
            print(json.dumps({"number": number}), flush=True)
            path.unlink(missing_ok=True)
            try:
                kind, result = outcome(number, seed, path)
                print(json.dumps({"kind": kind, "result": result}), flush=True)
            except AssertionError as error:
                print(json.dumps({"failure": str(error)}), flush=True)


def fuzz(mutations, seed=0, first=0):
    """Run mutations in child processes; returns counts of (kind, outcome) and a list of failures."""
    counts, failures, number, end = collections.Counter(), [], first, first + mutations
    while number < end:
        last = min(number + BATCH, end)
        command = [sys.executable, __file__, "--batch", str(number), str(last), "--seed", str(seed)]
        try:
            child = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
            output, code, why = child.stdout, child.returncode, child.stderr[-500:]
        except subprocess.TimeoutExpired as error:
            output, code, why = (error.stdout or b"").decode(), "none", f"no end within {SECONDS} s"
        lines = [json.loads(line) for line in output.splitlines()]
        for line in lines:
            number = line.get("number", number)
            if "failure" in line:
                failures.append((number, line["failure"]))
            elif "kind" in line:
                counts[line["kind"], line["result"]] += 1
        if code != 0:
            failures.append((number, f"the process ended with code {code}: {why}"))
        number += 1  # go on after the mutation that ended the child
    return counts, failures


def main():
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutations", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="repeat this mutation alone")
    parser.add_argument("--batch", type=int, nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.batch:
        _batch(*given.batch, given.seed)
        return 0
    if given.only is not None:
        counts, failures = fuzz(1, given.seed, given.only)
    else:
        counts, failures = fuzz(given.mutations, given.seed)
    for (kind, result), count in sorted(counts.items()):
        print(f"{kind:24} {result:8} {count:6}")
    for number, what in failures:
        print(f"FAILURE {number}: {what}")
    totals = collections.Counter()
    for (_, result), count in counts.items():
        totals[result] += count
    print(
        f"{sum(counts.values()) + len(failures)} mutations of {len(CASES)} searches: {totals[REFUSED]} refused, "
        f"{totals[SAME]} resumed exactly, {totals[FORGED]} forged states resumed, {len(failures)} failures"
    )
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
