"""Exceptions that callers may want to catch by name."""


class CycleError(ValueError):
    """Sites that should form trees contain a cycle."""
