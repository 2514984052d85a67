"""Fuzzer of lower bounds: small random models, compared with their exact minima.

    python tests/fuzz_bounds.py --minutes 30 [--kind grid-potts] [--seed N] [--models N]

`--seed N --models 1` checks one model and prints the code that builds it.
"""

import argparse
import itertools
import math
import random
import re
import sys
import time
import unittest.mock
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import treefield as tf
from fuzz_models import KINDS, Model, kind_of, random_model

ARITHMETICS = ("auto", "int16", "float32", "float64")
SOLVERS = ("minimize", "search", "tree_bp", *(f"trw {arithmetic}" for arithmetic in ARITHMETICS))
_ITERATIONS = 8  # of trw
_ROUNDING = Fraction(1, 10**12)  # of float64 sums, relative to the sum of magnitudes
_TIGHT = Fraction(1, 10**6)
_MODELS = 300  # where no limit is given
_PROGRESS_EVERY = 15.0  # seconds


@dataclass
class Outcome:
    """The failures of the checks of one model."""

    model: Model
    refused: str = ""  # why the library does not take the model
    failures: list[str] = field(default_factory=list)
    gaps: dict[str, Fraction] = field(default_factory=dict)  # minimum - lower bound, by solver

    def fail(self, solver: str, text: str) -> None:
        self.failures.append(f"seed {self.model.seed} {self.model.kind} {solver}: {text}")


# --- checks ---------------------------------------------------------------------------------------------------------


def check(model: Model, solvers: Iterable[str] = SOLVERS) -> Outcome:
    """Compare the bounds and energies of all solvers with the truth."""
    outcome = Outcome(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            mrf = model.call.make()
        except ValueError as error:
            outcome.refused = re.sub(r"-?\d[\d.]*(e[-+]?\d+)?", "#", str(error))
            return outcome
        except Exception as error:
            outcome.fail(model.call.name, f"raised {error!r}")
            return outcome
        for solver in solvers:
            try:
                _check_solver(outcome, mrf, solver)
            except Exception as error:
                outcome.fail(solver, f"raised {error!r}")
    return outcome


def _check_solver(outcome: Outcome, mrf: Any, solver: str) -> None:
    model = outcome.model
    if solver == "tree_bp":
        if model.truth.is_forest:
            _check_result(outcome, mrf, solver, tf.tree_bp(mrf))
    elif solver in ("minimize", "search"):
        options = {"maxiter": 5 + model.seed % 16, "rng": model.seed, "threads": 1}
        if solver == "minimize":
            res = tf.minimize(mrf, **options)
        else:
            with unittest.mock.patch("treefield.solvers.minimize.solve_by_elimination", return_value=None):
                res = tf.minimize(mrf, **options)
        _check_result(outcome, mrf, solver, res)
    else:
        arithmetic = solver.removeprefix("trw ")
        try:
            dual = mrf.backend.dual(arithmetic)
        except ValueError as error:
            if arithmetic != "auto" and re.search("does not hold these costs|goes with grids", str(error)):
                return
            raise
        # trw reports no bound above the energy that it found, which may hide one that is false
        x, should_continue = mrf.backend.best_labels(), True
        while should_continue:
            bound = max(dual.iterate(x) for _ in range(_ITERATIONS))
            should_continue = dual.refine(math.inf)
        _check_bound(outcome, f"dual {arithmetic}", bound)
        _check_result(outcome, mrf, solver, tf.trw(mrf, arithmetic=arithmetic, maxiter=_ITERATIONS))


def _check_bound(outcome: Outcome, solver: str, bound: float) -> None:
    truth = outcome.model.truth
    if math.isnan(bound):
        outcome.fail(solver, "the lower bound is NaN")
    if truth.minimum is None or bound == -math.inf or math.isnan(bound):
        return
    if bound == math.inf:
        outcome.fail(solver, f"the lower bound is inf, the minimum {float(truth.minimum)}")
        return
    outcome.gaps[solver] = truth.minimum - Fraction(bound)
    if outcome.gaps[solver] < 0:
        above = float(-outcome.gaps[solver])
        share = above / float(truth.magnitude or 1)
        outcome.fail(solver, f"the lower bound {bound!r} is above the minimum by {above:.3g}, {share:.1g} of all costs")


def _check_result(outcome: Outcome, mrf: Any, solver: str, res: tf.MAPResult) -> None:
    truth = outcome.model.truth
    if "interrupted" in res.message:  # solvers return what they have on Ctrl-C
        raise KeyboardInterrupt
    _check_bound(outcome, solver, res.lower_bound)
    if res.fun != mrf.energy(res.x):
        outcome.fail(solver, f"fun is {res.fun!r}, but the energy of x {mrf.energy(res.x)!r}")
    energy = truth.energy(res.x)
    if (energy is None) != (res.fun == math.inf) or math.isnan(res.fun) or res.fun == -math.inf:
        outcome.fail(solver, f"fun is {res.fun!r}, but the exact energy {energy if energy is None else float(energy)}")
        return
    if energy is None:
        if truth.minimum is not None and _is_proof(res):
            outcome.fail(solver, f"{res.message!r}, but there is a labelling of energy {float(truth.minimum)}")
        return
    off = float(Fraction(res.fun) - energy)
    if abs(off) > _ROUNDING * truth.magnitude_of(res.x):
        outcome.fail(solver, f"fun {res.fun!r} is off the exact energy of x by {off:.3g}")
    above = float(energy - truth.minimum)
    if _is_proof(res) and above > _ROUNDING * truth.magnitude:
        outcome.fail(solver, f"{res.message!r}, but the energy of x is above the minimum by {above:.3g}")


def _is_proof(res: tf.MAPResult) -> bool:
    return res.proof is not None


# --- runs -----------------------------------------------------------------------------------------------------------


class Tally:
    """Counts by kind."""

    def __init__(self) -> None:
        self.tried, self.failed = Counter[str](), Counter[str]()
        self.refused = Counter[tuple[str, str]]()
        self.shares: dict[str, Counter[str]] = defaultdict(Counter)
        self.failures: list[str] = []

    def add(self, outcome: Outcome) -> None:
        kind, truth = outcome.model.kind, outcome.model.truth
        self.tried[kind] += 1
        self.failed[kind] += bool(outcome.failures)
        self.failures += outcome.failures
        if outcome.refused:
            self.refused[kind, outcome.refused] += 1
        if truth.minimum is None or outcome.refused:
            return
        for solver in ("trw auto", "minimize"):
            if solver in outcome.gaps:
                small = _TIGHT * max(abs(truth.minimum), _TIGHT * truth.magnitude)
                weakest = truth.minimum - truth.simple_bound + _TIGHT * truth.magnitude
                self.shares[kind][solver] += 1
                self.shares[kind][f"{solver} tight"] += outcome.gaps[solver] <= small
                self.shares[kind][f"{solver} weak"] += outcome.gaps[solver] > weakest

    def __str__(self) -> str:
        """A table: of the bounds of feasible models, the share within 1e-6 of the minimum (tight), and the share below
        the sum of the least costs of all terms (weak)."""
        head = f"{'kind':18} {'tried':>6} {'refused':>8} {'failed':>7}"
        for solver in ("trw", "minimize"):
            head += f" {solver + ' tight':>15} {'weak':>6}"
        lines = [head]
        refused = Counter[str]()
        for (kind, _), number in self.refused.items():
            refused[kind] += number
        for kind in sorted(self.tried, key=KINDS.index):
            line = f"{kind:18} {self.tried[kind]:6} {refused[kind]:8} {self.failed[kind]:7}"
            for solver in ("trw auto", "minimize"):
                shares, number = self.shares[kind], max(1, self.shares[kind][solver])
                line += f" {shares[f'{solver} tight'] / number:15.1%} {shares[f'{solver} weak'] / number:6.1%}"
            lines.append(line)
        reasons = Counter[str]()
        for (_, reason), number in self.refused.items():
            reasons[reason] += number
        lines += [f"refused {number}: {reason}" for reason, number in reasons.most_common()]
        total = f"{sum(self.tried.values())} models, {sum(refused.values())} refused"
        return "\n".join([*lines, f"{total}, {sum(self.failed.values())} with failures"])


def seeds_of(kinds: Iterable[str], first: int = 0) -> Iterator[int]:
    """All seeds of models of some kinds."""
    wanted = set(kinds)
    return (seed for seed in itertools.count(first) if kind_of(seed) in wanted)


def run(seeds: Iterable[int], models: float, seconds: float) -> Tally:
    """Check models until a limit is reached or Ctrl-C is pressed; failures are printed when they are found."""
    tally, start = Tally(), time.monotonic()
    reported = start
    try:
        for number, seed in enumerate(seeds):
            if number >= models or time.monotonic() - start >= seconds:
                break
            outcome = check(random_model(seed))
            tally.add(outcome)
            for failure in outcome.failures:
                print(failure, flush=True)
            if time.monotonic() - reported >= _PROGRESS_EVERY:
                reported = time.monotonic()
                print(f"... {number + 1} models in {reported - start:.0f} s, at seed {seed}", flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    return tally


def _count(text: str) -> int:
    """A command-line number of at least 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 0")
    return int(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; 1 if a check failed."""
    parser = argparse.ArgumentParser(description="Compare lower bounds of random models with their exact minima.")
    parser.add_argument("--minutes", type=float, help="stop after this time")
    parser.add_argument("--models", type=_count, help=f"stop after this many models ({_MODELS} if no limit is given)")
    parser.add_argument("--seed", type=_count, help="of the first model; random by default")
    parser.add_argument("--kind", nargs="+", choices=KINDS, default=KINDS, metavar="KIND", help=", ".join(KINDS))
    given = parser.parse_args(arguments)
    first = random.randrange(10**9) if given.seed is None else given.seed
    models = given.models if given.models is not None else _MODELS if given.minutes is None else math.inf
    seconds = math.inf if given.minutes is None else 60 * given.minutes
    print(f"seeds from {first} on", flush=True)
    if models == 1:
        print(random_model(next(seeds_of(given.kind, first))))
    tally = run(seeds_of(given.kind, first), models, seconds)
    print(tally)
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
