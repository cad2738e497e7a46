"""Identities of callers, and their roles in the cloud."""
