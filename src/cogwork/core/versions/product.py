"""The programs of a machine that are released and updated."""

from __future__ import annotations

from enum import StrEnum


class Product(StrEnum):
    SERVER = "server"
    AGENT = "agent"

    @property
    def module(self) -> str:
        """The module that runs it."""
        return f"cogwork.{self}.main"
