"""Releases: lock their dependencies, and build them."""
