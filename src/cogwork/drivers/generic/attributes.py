"""Attributes of the generic models."""

from __future__ import annotations

from cogwork.config.schema.fields import Attributes


class FakeGenericAttributes(Attributes):
    """A resource without hardware that returns the commands it gets."""
