"""Attributes of the generic models."""

from __future__ import annotations

from cogwork.config.fields import Attributes


class FakeGenericAttributes(Attributes):
    pass
