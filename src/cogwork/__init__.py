"""Cogwork: one JSON file becomes a running machine, and stays one while the file changes."""

__version__ = "0.2.0"
