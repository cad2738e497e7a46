"""Releases: lock what they contain, and build them."""
