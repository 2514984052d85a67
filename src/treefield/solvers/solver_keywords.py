"""The keywords of solvers as types, for functions that pass them on."""

from __future__ import annotations

from typing import TypedDict

from treefield.protocols import Accept, Jump, Sweeps, Trees


class MethodKeywords(TypedDict, total=False):
    """Keywords that some solvers take and `minimize(method="auto")` does not; each solver explains its own."""

    accept: Accept | None
    arithmetic: str
    axis: int
    bands: int | None
    beta: float | None
    crossover: str
    damping: float
    decoding: str
    inner_iter: int | None
    jump: Jump | None
    local_search: str | Sweeps
    max_backtracks: int | None
    memory: str
    mutation: Jump | None
    nu: float
    order: str
    population: int
    restarts: int
    schedule: str
    temperatures: tuple[float, float] | None
    trees: Trees | None
    width: int | None
    workers: int | None


class SolverKeywords(MethodKeywords, total=False):
    """Those, and the limits that `minimize` shares with most solvers."""

    time_limit: float | None
    tol: float | None
    maxiter: int | None
    patience: int | None
    memory_limit: float | str | None
    threads: int | None
