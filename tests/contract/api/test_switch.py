from __future__ import annotations

from cogwork.contracts.switch import SwitchContract


class TestFake(SwitchContract):
    model = "fake"


class TestFakeWithLabels(SwitchContract):
    model = "fake"
    attributes = {"labels": ["off", "slow", "fast"]}
