"""The experiments of the paper, run again: ``treefield paper``."""
