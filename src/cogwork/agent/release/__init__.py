"""Releases: signed archives from which versions of the server and of the agent are installed."""
