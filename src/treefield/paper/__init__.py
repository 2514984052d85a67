"""The paper's experiments, run again: ``treefield paper``."""
