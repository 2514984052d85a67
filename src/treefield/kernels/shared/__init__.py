"""Kernels that grids and graphs share."""
