"""Signaling, through which clients reach machines behind routers."""
