"""What the generic resources read from their configuration."""

from __future__ import annotations

from cogwork.config.fields import Attributes


class FakeGenericAttributes(Attributes):
    pass
