from __future__ import annotations

from cogwork.contracts.slam import SlamContract


class TestFake(SlamContract):
    model = "fake"
