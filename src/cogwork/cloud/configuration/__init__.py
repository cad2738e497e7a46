"""Configurations of parts: text, checks and shared fragments."""
