"""Signaling: how clients reach machines behind routers."""
