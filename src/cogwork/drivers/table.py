"""The models that come with Cogwork."""

from __future__ import annotations

from cogwork.drivers.generic.fake import FakeGeneric, FakeGenericAttributes
from cogwork.drivers.sensor.fake import FakeSensor, FakeSensorAttributes
from cogwork.graph.name import Api, ModelName
from cogwork.resource.model import Model

_FAKE = ModelName.parse("fake")


def builtin_models() -> list[Model]:
    return [
        Model(
            Api.parse("rdk:component:sensor"),
            _FAKE,
            FakeSensorAttributes,
            FakeSensor.new,
            reconfigures=True,
        ),
        Model(Api.parse("rdk:component:generic"), _FAKE, FakeGenericAttributes, FakeGeneric.new),
        Model(Api.parse("rdk:service:generic"), _FAKE, FakeGenericAttributes, FakeGeneric.new),
    ]
