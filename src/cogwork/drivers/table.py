"""The models that come with Cogwork."""

from __future__ import annotations

from cogwork.config.fields import Attributes
from cogwork.drivers.board.attributes import FakeBoardAttributes
from cogwork.drivers.generic.attributes import FakeGenericAttributes
from cogwork.drivers.motor.attributes import FakeMotorAttributes
from cogwork.drivers.sensor.attributes import FakeSensorAttributes, SystemSensorAttributes
from cogwork.drivers.switch.attributes import FakeSwitchAttributes
from cogwork.graph.name import Api, ModelName
from cogwork.resource.model import Model, imported_when_built


def builtin_models() -> list[Model]:
    return [
        _model("component:board", "fake", FakeBoardAttributes, "board.fake:FakeBoard"),
        _model("component:generic", "fake", FakeGenericAttributes, "generic.fake:FakeGeneric"),
        _model("component:motor", "fake", FakeMotorAttributes, "motor.fake:FakeMotor"),
        _model(
            "component:sensor",
            "fake",
            FakeSensorAttributes,
            "sensor.fake:FakeSensor",
            reconfigures=True,
        ),
        _model("component:sensor", "system", SystemSensorAttributes, "sensor.system:SystemSensor"),
        _model("component:switch", "fake", FakeSwitchAttributes, "switch.fake:FakeSwitch"),
        _model("service:generic", "fake", FakeGenericAttributes, "generic.fake:FakeGenericService"),
    ]


def _model(
    api: str, name: str, attributes: type[Attributes], driver: str, *, reconfigures: bool = False
) -> Model:
    return Model(
        Api.parse(f"rdk:{api}"),
        ModelName.parse(name),
        attributes,
        imported_when_built(f"cogwork.drivers.{driver}"),
        reconfigures,
    )
