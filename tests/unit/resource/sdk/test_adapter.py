"""Module classes of the SDK that run in this process, called with the SDK's client."""

from __future__ import annotations

import asyncio
import importlib
import logging
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.support.machine.running import plug_in
from tests.support.waiting import run_others

from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.loader import load
from cogwork.config.schema.json_schema import machine_schema
from cogwork.contracts.harness import Harness, running_harness
from cogwork.contracts.motor import MotorContract
from cogwork.core.clock import SystemClock
from cogwork.graph.name import Api, ModelName, ResourceName
from cogwork.graph.provider import Offer, Unavailable
from cogwork.graph.spec import Spec
from cogwork.resource.registry import Registry, entry_point_models
from cogwork.resource.sdk import clean_import as sdk
from cogwork.resource.sdk.adapter import FreeAttributes, model_from_sdk_class
from cogwork.robot.status.health import health_of

assert sdk.VERSION  # the SDK must be imported first
from grpclib import GRPCError, Status  # noqa: E402
from viam.components.board import Board  # noqa: E402
from viam.components.camera import Camera  # noqa: E402
from viam.components.camera.client import CameraClient  # noqa: E402
from viam.components.motor import Motor  # noqa: E402
from viam.components.motor.client import MotorClient  # noqa: E402
from viam.components.sensor import Sensor  # noqa: E402
from viam.components.sensor.client import SensorClient  # noqa: E402
from viam.errors import NotSupportedError, ViamGRPCError  # noqa: E402
from viam.resource.easy_resource import EasyResource  # noqa: E402
from viam.utils import struct_to_dict  # noqa: E402

MOTOR = Api.parse("rdk:component:motor")
SENSOR = Api.parse("rdk:component:sensor")
PINS = {"name": "pins", "api": "rdk:component:board", "model": "fake"}


class PinMotor(Motor, EasyResource):  # type: ignore[misc, no-untyped-call]
    """A motor as a module author writes it, without any Cogwork code."""

    MODEL: ClassVar[Any] = "acme:easy:motor"

    board: Any
    pin: Any
    power: float

    @classmethod
    def validate_config(cls, config: Any) -> Any:
        attributes: dict[str, Any] = {**struct_to_dict(config.attributes)}
        if "board" not in attributes:
            raise ValueError('"board" is missing: name the board it hangs on')
        return [str(attributes["board"])], [str(name) for name in attributes.get("uses", [])]

    @classmethod
    def new(cls, config: Any, dependencies: Any) -> PinMotor:
        motor = cls(config.name)
        motor.config, motor.dependencies = config, dependencies  # type: ignore[attr-defined]
        name = struct_to_dict(config.attributes)["board"]
        motor.board = dependencies[Board.get_resource_name(str(name))]
        motor.power = 0.0
        return motor

    async def set_power(self, power: float, **_: Any) -> None:
        if not -1 <= power <= 1:
            raise ViamGRPCError(f"a power is from -1 to 1, not {power:g}", Status.INVALID_ARGUMENT)
        pin = await self.board.gpio_pin_by_name("12")
        await pin.set_pwm(abs(power))
        self.power = power

    async def stop(self, **_: Any) -> None:
        await self.set_power(0)

    async def is_powered(self, **_: Any) -> tuple[bool, float]:
        return self.power != 0, self.power

    async def is_moving(self, **_: Any) -> bool:
        return self.power != 0

    async def get_properties(self, **_: Any) -> Motor.Properties:
        return Motor.Properties(position_reporting=False)

    async def get_position(self, **_: Any) -> float:
        raise NotSupportedError("it does not know its position")

    async def go_for(self, rpm: float, revolutions: float, **_: Any) -> None:
        raise NotSupportedError("it does not know its position")

    async def go_to(self, rpm: float, position_revolutions: float, **_: Any) -> None:
        raise NotSupportedError("it does not know its position")

    async def set_rpm(self, rpm: float, **_: Any) -> None:
        raise NotSupportedError("it does not know its speed")

    async def reset_zero_position(self, offset: float, **_: Any) -> None:
        raise NotSupportedError("it does not know its position")


class BareCamera(Camera, EasyResource):  # type: ignore[misc, no-untyped-call]
    """A camera without geometries."""

    MODEL: ClassVar[Any] = "acme:test:eye"

    async def get_images(self, **_: Any) -> Any:
        return [], None

    async def get_point_cloud(self, **_: Any) -> Any:
        return b"", "pointcloud/pcd"

    async def get_properties(self, **_: Any) -> Any:
        return Camera.Properties()


async def test_missing_method_of_a_class_is_unimplemented() -> None:
    """This holds also for services of ours, such as that of cameras."""
    eye = {"name": "eye", "api": "rdk:component:camera", "model": str(BareCamera.MODEL)}
    async with running_harness([model_from_sdk_class(BareCamera)]) as harness:
        await harness.run(eye)
        with pytest.raises(GRPCError) as refused:
            await CameraClient("eye", harness.channel).get_geometries()
    assert refused.value.status is Status.UNIMPLEMENTED


class TestMotorContract(MotorContract):
    model = "acme:easy:motor"
    models = (model_from_sdk_class(PinMotor),)
    attributes: ClassVar[Mapping[str, Any]] = {"board": "pins"}
    other_resources = (PINS,)
    unsupported_methods = (
        "GetGeometries",
        "GetPosition",
        "GoFor",
        "GoTo",
        "ResetZeroPosition",
        "SetRPM",
    )


def motor_config(**attributes: Any) -> dict[str, Any]:
    return {
        "name": "m",
        "api": str(MOTOR),
        "model": "acme:easy:motor",
        "attributes": attributes,
    }


def get_resource(harness: Harness, name: str = "m", api: Api = MOTOR) -> Any:
    node = harness.machine.nodes[ResourceName(api, name)]
    assert node.usable is not None, health_of(node).reason
    return node.usable.resource


def unavailable_reason(harness: Harness, name: str = "m", api: Api = MOTOR) -> str:
    return str(health_of(harness.machine.nodes[ResourceName(api, name)]).reason)


async def test_class_gets_the_config_and_dependencies_of_a_module() -> None:
    async with running_harness([model_from_sdk_class(PinMotor)]) as harness:
        extra = {"name": "extra", "api": "rdk:component:generic", "model": "fake"}
        uses = {"name": "used", "api": "rdk:component:generic", "model": "fake"}
        config = motor_config(board="pins", uses=["used"], speeds={"slow": 1, "fast": [2, True]})
        await harness.run({**config, "depends_on": ["extra"]}, PINS, extra, uses)
        resource = get_resource(harness)
        assert str(resource.config.name) == "m"
        assert (resource.config.api, resource.config.model) == (
            "rdk:component:motor",
            "acme:easy:motor",
        )
        assert (resource.config.namespace, resource.config.type) == ("rdk", "motor")
        assert struct_to_dict(resource.config.attributes)["speeds"] == {
            "slow": 1,
            "fast": [2, True],
        }
        assert list(resource.config.depends_on) == ["extra"]
        assert resource.config.log_configuration.level in ("debug", "info", "warn")
        given = {f"{n.namespace}:{n.type}:{n.subtype}/{n.name}" for n in resource.dependencies}
        assert given == {
            "rdk:component:board/pins",
            "rdk:component:generic/extra",
            "rdk:component:generic/used",
        }
        client = MotorClient("m", harness.channel)
        await client.set_power(0.25)
        pin = await get_resource(
            harness, "pins", Api.parse("rdk:component:board")
        ).gpio_pin_by_name("12")
        assert await pin.get_pwm() == 0.25


async def test_validation_error_of_the_class_is_the_reason() -> None:
    async with running_harness([model_from_sdk_class(PinMotor)]) as harness:
        await harness.run(motor_config(), PINS)
        assert unavailable_reason(harness) == (
            'acme:easy:motor rejects its configuration: "board" is missing: '
            "name the board it hangs on"
        )
        await harness.run(motor_config(board="nobody"), PINS)
        assert 'depends on "nobody", which is not configured' in unavailable_reason(harness)
        await harness.run(motor_config(board="pins"), PINS)
        get_resource(harness)


async def test_class_logs_under_the_resource_logger() -> None:
    async with running_harness([model_from_sdk_class(PinMotor)]) as harness:
        await harness.run(motor_config(board="pins"), PINS)
        assert get_resource(harness).logger.name == "rdk.resource_manager.rdk:component:motor/m"


def test_all_attributes_are_accepted() -> None:
    registry = Registry([model_from_sdk_class(PinMotor)])
    text = (
        '{"components": [{"name": "m", "api": "rdk:component:motor", "model": "acme:easy:motor",'
        ' "attributes": {"borad": 1, "model_config": {"a": null}}}]}'
    )
    loaded = load(text, LoadContext(registry, Path("/home"), {}))
    assert loaded.diagnostics == ()
    (spec,) = loaded.result.specs
    assert isinstance(spec.settings, FreeAttributes)
    assert spec.settings.model_extra == {"borad": 1, "model_config": {"a": None}}
    schema = machine_schema(registry)["$defs"]["FreeAttributes"]
    assert schema["additionalProperties"] is True


class PlainSensor(Sensor):
    """A sensor of the SDK without the EasyResource mixin."""

    MODEL = "acme:easy:plain"
    clock: ClassVar[SettableClock]
    returned: ClassVar[Any] = ([], [])
    validated: ClassVar[int] = 0

    @classmethod
    def validate_config(cls, config: Any) -> Any:
        PlainSensor.validated += 1
        if isinstance(cls.returned, BaseException):
            raise cls.returned
        return cls.returned

    @classmethod
    def new(cls, config: Any, dependencies: Any) -> Any:
        return cls(config.name)

    async def get_readings(self, **_: Any) -> Mapping[str, Any]:
        return {"a": 1}


class SettableClock(SystemClock):
    """A clock that tests set."""

    now = 0.0

    def monotonic(self) -> float:
        return self.now


SPEC = Spec(ResourceName(SENSOR, "s"), ModelName.parse("acme:easy:plain"), FreeAttributes())


@pytest.mark.parametrize(
    ("returned", "needs", "wants"),
    [
        (([], []), [], []),
        ((["a"], ["b"]), ["a"], ["b"]),
        (["a", "rdk:component:board/b"], ["a", "rdk:component:board/b"], []),
        ((), [], []),
    ],
)
def test_validate_config_may_return_one_or_two_lists(
    returned: Any, needs: list[str], wants: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PlainSensor, "returned", returned)
    offer = Registry([model_from_sdk_class(PlainSensor)]).offer(SPEC)
    assert isinstance(offer, Offer)
    assert [*map(str, offer.needs)] == needs
    assert [*map(str, offer.wants)] == wants


@pytest.mark.parametrize(
    ("returned", "words"),
    [
        (None, "validate_config returned None; return two lists of names"),
        ("board", "validate_config returned 'board'"),
        ((["a"], [1]), r"validate_config returned \(\['a'\], \[1\]\)"),
        (["a/b"], '"a/b" is not a full resource name'),
        (RuntimeError(), "RuntimeError$"),
        (KeyError("pin"), "KeyError: 'pin'"),
        (Exception("no pin"), "configuration: no pin"),
        (SystemExit(3), "SystemExit: 3"),
    ],
)
def test_invalid_result_of_validate_config_is_the_reason(
    returned: Any, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PlainSensor, "returned", returned)
    answer = Registry([model_from_sdk_class(PlainSensor)]).offer(SPEC)
    assert isinstance(answer, Unavailable)
    assert answer.reason.startswith("acme:easy:plain rejects its configuration: ")
    assert re.search(words, answer.reason), answer.reason


def test_async_validate_config_is_refused() -> None:
    class Waiting(PlainSensor):
        @classmethod
        async def validate_config(cls, config: Any) -> Any:
            return [], []

    answer = Registry([model_from_sdk_class(Waiting)]).offer(SPEC)
    assert isinstance(answer, Unavailable)
    assert "is async; define it with def" in answer.reason


def test_validate_config_runs_once_per_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PlainSensor, "validated", 0)
    registry = Registry([model_from_sdk_class(PlainSensor)])
    first = registry.offer(SPEC)
    assert registry.offer(SPEC) is first
    assert PlainSensor.validated == 1
    changed = Spec(SPEC.name, SPEC.model, FreeAttributes.model_validate({"a": 1}))
    second = registry.offer(changed)
    assert PlainSensor.validated == 2
    assert isinstance(first, Offer)
    assert isinstance(second, Offer)
    assert first.builder is second.builder
    monkeypatch.setattr(PlainSensor, "returned", ValueError("not yet"))
    refused = Spec(SPEC.name, SPEC.model, FreeAttributes.model_validate({"a": 2}))
    assert isinstance(registry.offer(refused), Unavailable)
    monkeypatch.setattr(PlainSensor, "returned", ([], []))
    assert isinstance(registry.offer(refused), Offer), "it may have been asked too early"


async def build(kind: type, clock: SettableClock) -> Any:
    offer = Registry([model_from_sdk_class(kind, clock)]).offer(SPEC)
    assert isinstance(offer, Offer)
    return await offer.builder.build(SPEC, {})


async def test_blocking_validation_and_construction_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = SettableClock()

    class Slow(PlainSensor):
        @classmethod
        def validate_config(cls, config: Any) -> Any:
            clock.now += 0.2
            return [], []

        @classmethod
        def new(cls, config: Any, dependencies: Any) -> Any:
            clock.now += 0.34
            return cls(config.name)

    await build(Slow, clock)
    assert [(each.levelname, each.getMessage()) for each in caplog.records] == [
        (
            "WARNING",
            "validating acme:easy:plain blocked the event loop for 200 ms; "
            "move slow work into a thread",
        ),
        (
            "WARNING",
            "building acme:easy:plain blocked the event loop for 340 ms; "
            "move slow work into a thread",
        ),
    ]


async def test_only_blocking_steps_of_async_construction_are_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = SettableClock()

    class Patient(PlainSensor):
        @classmethod
        async def new(cls, config: Any, dependencies: Any) -> Any:
            clock.now += 0.09
            asyncio.get_running_loop().call_soon(setattr, clock, "now", clock.now + 60)
            await run_others()
            clock.now += 0.09
            with pytest.raises(LookupError):
                await raise_lookup_error()
            clock.now += 0.15
            return cls(config.name)

    async def raise_lookup_error() -> None:
        await run_others()
        raise LookupError

    sensor = await build(Patient, clock)
    assert sensor.name == "s"
    (record,) = caplog.records
    assert "building acme:easy:plain blocked the event loop for 150 ms" in record.getMessage()


async def test_construction_can_be_cancelled() -> None:
    cleaned = []

    class Endless(PlainSensor):
        @classmethod
        async def new(cls, config: Any, dependencies: Any) -> Any:
            try:
                await asyncio.Event().wait()
            finally:
                await run_others()
                cleaned.append(True)

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(build(Endless, SettableClock()), 0.01)
    assert cleaned


async def test_new_that_returns_none_raises() -> None:
    class Forgetful(PlainSensor):
        @classmethod
        def new(cls, config: Any, dependencies: Any) -> Any:
            return None

    with pytest.raises(TypeError, match=r"new\(\) of acme:easy:plain returned None"):
        await build(Forgetful, SettableClock())


class Recorder(PlainSensor):
    MODEL = "acme:easy:recorder"
    events: ClassVar[list[Any]] = []

    def reconfigure(self, config: Any, dependencies: Any) -> None:
        self.events.append(struct_to_dict(config.attributes))

    async def get_readings(self, **_: Any) -> Mapping[str, Any]:
        return {"object": id(self)}

    def stop(self) -> None:
        self.events.append("stop")
        raise RuntimeError("it is stuck")

    async def close(self) -> None:
        self.events.append("close")


async def test_class_is_reconfigured_stopped_and_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def recorder_config(**attributes: Any) -> dict[str, Any]:
        model = "acme:easy:recorder"
        return {"name": "s", "api": str(SENSOR), "model": model, "attributes": attributes}

    Recorder.events.clear()
    async with running_harness([model_from_sdk_class(Recorder)]) as harness:
        await harness.run(recorder_config(a=1))
        client = SensorClient("s", harness.channel)
        before = await client.get_readings()
        await harness.run(recorder_config(a=2))
        assert await client.get_readings() == before
        assert Recorder.events == [{"a": 2}]
        with caplog.at_level(logging.WARNING):
            await harness.run()
    assert Recorder.events == [{"a": 2}, "stop", "close"]
    assert "stopping the resource failed: RuntimeError: it is stuck" in caplog.text


def test_class_without_api_or_model_raises() -> None:
    class Nothing: ...

    class Unnamed(Sensor):
        @classmethod
        def new(cls, config: Any, dependencies: Any) -> Any: ...

    with pytest.raises(TypeError, match='Nothing has no attribute "API"; derive the class from'):
        model_from_sdk_class(Nothing)
    with pytest.raises(TypeError, match='Unnamed has no attribute "MODEL"; add MODEL = "acme'):
        model_from_sdk_class(Unnamed)


PACKAGE = """
from typing import ClassVar
from viam.components.sensor import Sensor
from viam.resource.easy_resource import EasyResource


class One(Sensor, EasyResource):
    MODEL = "acme:plugged:one"

    async def get_readings(self, **_):
        return {"a": 1}


class Two(Sensor, EasyResource):
    MODEL = "acme:plugged:two"


class Unnamed(Sensor):
    pass


ALL = [One, Two]


def some():
    return ALL
"""
LINES = (
    "one = {module}:One",
    "all = {module}:ALL",
    "some = {module}:some",
    "unnamed = {module}:Unnamed",
)


@pytest.fixture
def install_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    environment = plug_in(tmp_path / "installed", PACKAGE, *LINES)
    monkeypatch.syspath_prepend(tmp_path / "installed")
    importlib.invalidate_caches()
    yield environment
    sys.modules.pop("tests_plug_in", None)


async def test_package_entry_points_may_be_classes(
    install_package: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "rdk.resource_manager"):
        found = [str(each.name) for each in entry_point_models() if each.name.family == "plugged"]
    assert sorted(found) == [*["acme:plugged:one"] * 3, *["acme:plugged:two"] * 2]
    (complaint,) = caplog.messages
    assert complaint.startswith("cannot load plug-in unnamed of tests_plug_in: TypeError: ")
    async with running_harness() as harness:
        one = {"name": "s", "api": str(SENSOR), "model": "acme:plugged:one"}
        two = {"name": "t", "api": str(SENSOR), "model": "acme:plugged:two"}
        await harness.run(one, two)
        assert await SensorClient("s", harness.channel).get_readings() == {"a": 1}
        assert "abstract method" in unavailable_reason(harness, "t", SENSOR)


def test_sdk_is_configured_before_the_package_imports_it(install_package: dict[str, str]) -> None:
    script = (
        "import logging, sys\n"
        "from cogwork.resource.registry import entry_point_models\n"
        "assert entry_point_models()\n"
        "assert sys.excepthook is sys.__excepthook__\n"
        "names = logging.Logger.manager.loggerDict\n"
        "assert not [name for name in names if logging.getLogger(name).handlers]\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=install_package,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
