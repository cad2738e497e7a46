from __future__ import annotations

from cogwork.contracts.encoder import EncoderContract


class TestFake(EncoderContract):
    model = "fake"


class TestFakeOnAMotor(EncoderContract):
    model = "fake"
    attributes = {"motor": "m"}
    beside = ({"name": "m", "api": "rdk:component:motor", "model": "fake"},)
