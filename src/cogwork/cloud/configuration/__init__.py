"""Configurations of parts: text, checks, and the fragments that they share."""
