"""Answers for any graph."""
