"""The programs of a machine that are released and updated."""

from __future__ import annotations

from enum import StrEnum


class Product(StrEnum):
    SERVER = "server"
    AGENT = "agent"

    @property
    def module(self) -> str:
        """The Python module that runs the product."""
        return f"cogwork.{self}.main"
