"""The programs of a machine that are released and updated."""

from __future__ import annotations

from enum import StrEnum

from cogwork import __version__

NAMED_VERSION = f"cogwork-{__version__}"
"""Our version as clients of the public API see it. Go's command line compares semantic versions
with those of another server, and takes anything else for new enough."""


class Product(StrEnum):
    SERVER = "server"
    AGENT = "agent"

    @property
    def module(self) -> str:
        """The module that runs it."""
        return f"cogwork.{self}.main"
