"""Grids larger than memory, searched tile by tile."""
