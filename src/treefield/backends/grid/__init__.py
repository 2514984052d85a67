"""Answers for grids, by kernels over lines."""
