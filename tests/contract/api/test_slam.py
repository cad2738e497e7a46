from __future__ import annotations

from cogwork.contracts.slam import SlamContract


class TestFake(SlamContract):
    model = "fake"


class TestFakeWithABase(SlamContract):
    model = "fake"
    attributes = {"base": "b"}
    other_resources = ({"name": "b", "api": "rdk:component:base", "model": "fake"},)
