from __future__ import annotations

from cogwork.contracts.button import ButtonContract


class TestFake(ButtonContract):
    model = "fake"


class TestFakeWithAPin(ButtonContract):
    model = "fake"
    attributes = {"board": "b", "pin": "7", "pulse": "10ms"}
    other_resources = ({"name": "b", "api": "rdk:component:board", "model": "fake"},)
