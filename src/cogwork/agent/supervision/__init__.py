"""Supervision: the server runs, a new version proves that it works, and a bad one is replaced."""
