"""Compiled loops over grids."""
