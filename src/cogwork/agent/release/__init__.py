"""Releases: signed archives with a version of the server or of the agent."""
