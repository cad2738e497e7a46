from __future__ import annotations

from viam.components.motor.client import MotorClient

from cogwork.contracts.encoder import EncoderContract
from cogwork.contracts.harness import Harness


class TestFake(EncoderContract):
    model = "fake"


class TestFakeOnAMotor(EncoderContract):
    model = "fake"
    attributes = {"motor": "m"}
    other_resources = ({"name": "m", "api": "rdk:component:motor", "model": "fake"},)
    ticks_per_revolution = 360

    async def turn(self, harness: Harness, way: int) -> None:
        await MotorClient("m", harness.channel).go_for(way * 60, 0.1)
