"""Fragments: configurations that several machines share."""
