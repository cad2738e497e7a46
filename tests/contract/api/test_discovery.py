from __future__ import annotations

from cogwork.contracts.discovery import DiscoveryContract


class TestFake(DiscoveryContract):
    model = "fake"


class TestSystem(DiscoveryContract):
    model = "system"
