"""Supervision of the server: start, restart, health checks of new versions, and rollback."""
