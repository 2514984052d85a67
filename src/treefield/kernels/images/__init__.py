"""Compiled loops over the pixels of images."""
