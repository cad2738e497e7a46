"""Helpers for all other packages: clocks, errors, back-off, threads and files."""
