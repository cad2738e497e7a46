"""Classes written for modules, run in this process and driven by the SDK's own client."""

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
from tests.running import plug_in

from cogwork.config.json_schema import machine_schema
from cogwork.config.load_context import LoadContext
from cogwork.config.loader import load
from cogwork.contracts.harness import Harness, running_harness
from cogwork.contracts.motor import MotorContract
from cogwork.core.clock import SystemClock
from cogwork.graph.name import Api, ModelName, ResourceName
from cogwork.graph.provider import Offer, Unavailable
from cogwork.graph.spec import Spec
from cogwork.resource import sdk
from cogwork.resource.registry import Registry, entry_point_models
from cogwork.resource.sdk_adapter import FreeAttributes, model_from_sdk_class
from cogwork.robot.health import health_of

assert sdk.VERSION  # it comes before anything else of the SDK
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
    """As an author of a module writes it: nothing of Cogwork in it."""

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


class Eye(Camera, EasyResource):  # type: ignore[misc, no-untyped-call]
    """Has no shape, and says nothing of it."""

    MODEL: ClassVar[Any] = "acme:test:eye"

    async def get_images(self, **_: Any) -> Any:
        return [], None

    async def get_point_cloud(self, **_: Any) -> Any:
        return b"", "pointcloud/pcd"

    async def get_properties(self, **_: Any) -> Any:
        return Camera.Properties()


async def test_what_a_class_does_not_write_is_not_implemented() -> None:
    """Also where the service is ours, as that of cameras."""
    eye = {"name": "eye", "api": "rdk:component:camera", "model": str(Eye.MODEL)}
    async with running_harness([model_from_sdk_class(Eye)]) as made:
        await made.run(eye)
        with pytest.raises(GRPCError) as refused:
            await CameraClient("eye", made.channel).get_geometries()
    assert refused.value.status is Status.UNIMPLEMENTED


class TestItKeepsToTheContract(MotorContract):
    model = "acme:easy:motor"
    models = (model_from_sdk_class(PinMotor),)
    attributes: ClassVar[Mapping[str, Any]] = {"board": "pins"}
    beside = (PINS,)
    lacks = ("GetGeometries", "GetPosition", "GoFor", "GoTo", "ResetZeroPosition", "SetRPM")


def motor(**attributes: Any) -> dict[str, Any]:
    return {
        "name": "m",
        "api": str(MOTOR),
        "model": "acme:easy:motor",
        "attributes": attributes,
    }


def built(made: Harness, name: str = "m", api: Api = MOTOR) -> Any:
    node = made.machine.nodes[ResourceName(api, name)]
    assert node.usable is not None, health_of(node).reason
    return node.usable.resource


def reason(made: Harness, name: str = "m", api: Api = MOTOR) -> str:
    return str(health_of(made.machine.nodes[ResourceName(api, name)]).reason)


async def test_it_is_given_what_a_module_is_given() -> None:
    async with running_harness([model_from_sdk_class(PinMotor)]) as made:
        extra = {"name": "extra", "api": "rdk:component:generic", "model": "fake"}
        uses = {"name": "used", "api": "rdk:component:generic", "model": "fake"}
        configured = motor(board="pins", uses=["used"], speeds={"slow": 1, "fast": [2, True]})
        await made.run({**configured, "depends_on": ["extra"]}, PINS, extra, uses)
        it = built(made)
        assert str(it.config.name) == "m"
        assert (it.config.api, it.config.model) == ("rdk:component:motor", "acme:easy:motor")
        assert (it.config.namespace, it.config.type) == ("rdk", "motor")
        assert struct_to_dict(it.config.attributes)["speeds"] == {"slow": 1, "fast": [2, True]}
        assert list(it.config.depends_on) == ["extra"]
        assert it.config.log_configuration.level in ("debug", "info", "warn")
        given = {f"{n.namespace}:{n.type}:{n.subtype}/{n.name}" for n in it.dependencies}
        assert given == {
            "rdk:component:board/pins",
            "rdk:component:generic/extra",
            "rdk:component:generic/used",
        }
        client = MotorClient("m", made.channel)
        await client.set_power(0.25)
        pin = await built(made, "pins", Api.parse("rdk:component:board")).gpio_pin_by_name("12")
        assert await pin.get_pwm() == 0.25


async def test_what_it_refuses_is_said_in_its_words() -> None:
    async with running_harness([model_from_sdk_class(PinMotor)]) as made:
        await made.run(motor(), PINS)
        assert reason(made) == (
            'acme:easy:motor rejects its configuration: "board" is missing: '
            "name the board it hangs on"
        )
        await made.run(motor(board="nobody"), PINS)
        assert 'depends on "nobody", which is not configured' in reason(made)
        await made.run(motor(board="pins"), PINS)
        built(made)


async def test_it_logs_where_the_rules_of_the_machine_apply() -> None:
    async with running_harness([model_from_sdk_class(PinMotor)]) as made:
        await made.run(motor(board="pins"), PINS)
        assert built(made).logger.name == "rdk.resource_manager.rdk:component:motor/m"


def test_any_attribute_is_as_good_as_another() -> None:
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


class Plain(Sensor):
    """Of the SDK, and not by its mixin."""

    MODEL = "acme:easy:plain"
    clock: ClassVar[Hand]
    returned: ClassVar[Any] = ([], [])
    validated: ClassVar[int] = 0

    @classmethod
    def validate_config(cls, config: Any) -> Any:
        Plain.validated += 1
        if isinstance(cls.returned, BaseException):
            raise cls.returned
        return cls.returned

    @classmethod
    def new(cls, config: Any, dependencies: Any) -> Any:
        return cls(config.name)

    async def get_readings(self, **_: Any) -> Mapping[str, Any]:
        return {"a": 1}


class Hand(SystemClock):
    """A clock that a test turns."""

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
def test_dependencies_new_and_old(
    returned: Any, needs: list[str], wants: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Plain, "returned", returned)
    offer = Registry([model_from_sdk_class(Plain)]).offer(SPEC)
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
def test_an_answer_that_makes_no_sense_is_told(
    returned: Any, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Plain, "returned", returned)
    answer = Registry([model_from_sdk_class(Plain)]).offer(SPEC)
    assert isinstance(answer, Unavailable)
    assert answer.reason.startswith("acme:easy:plain rejects its configuration: ")
    assert re.search(words, answer.reason), answer.reason


def test_a_validation_that_would_have_to_be_awaited_is_told() -> None:
    class Waiting(Plain):
        @classmethod
        async def validate_config(cls, config: Any) -> Any:
            return [], []

    answer = Registry([model_from_sdk_class(Waiting)]).offer(SPEC)
    assert isinstance(answer, Unavailable)
    assert "is async; define it with def" in answer.reason


def test_it_is_asked_once_for_each_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Plain, "validated", 0)
    registry = Registry([model_from_sdk_class(Plain)])
    first = registry.offer(SPEC)
    assert registry.offer(SPEC) is first
    assert Plain.validated == 1
    changed = Spec(SPEC.name, SPEC.model, FreeAttributes.model_validate({"a": 1}))
    second = registry.offer(changed)
    assert Plain.validated == 2
    assert isinstance(first, Offer)
    assert isinstance(second, Offer)
    assert first.builder is second.builder
    monkeypatch.setattr(Plain, "returned", ValueError("not yet"))
    refused = Spec(SPEC.name, SPEC.model, FreeAttributes.model_validate({"a": 2}))
    assert isinstance(registry.offer(refused), Unavailable)
    monkeypatch.setattr(Plain, "returned", ([], []))
    assert isinstance(registry.offer(refused), Offer), "it may have been asked too early"


async def build(kind: type, clock: Hand) -> Any:
    offer = Registry([model_from_sdk_class(kind, clock)]).offer(SPEC)
    assert isinstance(offer, Offer)
    return await offer.builder.build(SPEC, {})


async def test_a_step_that_holds_everybody_up_is_told(caplog: pytest.LogCaptureFixture) -> None:
    clock = Hand()

    class Slow(Plain):
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


async def test_what_waits_holds_nobody_up(caplog: pytest.LogCaptureFixture) -> None:
    clock = Hand()

    class Patient(Plain):
        @classmethod
        async def new(cls, config: Any, dependencies: Any) -> Any:
            clock.now += 0.09
            asyncio.get_running_loop().call_soon(setattr, clock, "now", clock.now + 60)
            await asyncio.sleep(0)
            clock.now += 0.09
            with pytest.raises(LookupError):
                await failing()
            clock.now += 0.15
            return cls(config.name)

    async def failing() -> None:
        await asyncio.sleep(0)
        raise LookupError

    made = await build(Patient, clock)
    assert made.name == "s"
    (told,) = caplog.records
    assert "building acme:easy:plain blocked the event loop for 150 ms" in told.getMessage()


async def test_building_can_be_given_up() -> None:
    cleaned = []

    class Endless(Plain):
        @classmethod
        async def new(cls, config: Any, dependencies: Any) -> Any:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                cleaned.append(True)

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(build(Endless, Hand()), 0.01)
    assert cleaned


async def test_a_new_that_returns_nothing_is_told() -> None:
    class Forgetful(Plain):
        @classmethod
        def new(cls, config: Any, dependencies: Any) -> Any:
            return None

    with pytest.raises(TypeError, match=r"new\(\) of acme:easy:plain returned None"):
        await build(Forgetful, Hand())


class Recorder(Plain):
    MODEL = "acme:easy:recorder"
    told: ClassVar[list[Any]] = []

    def reconfigure(self, config: Any, dependencies: Any) -> None:
        self.told.append(struct_to_dict(config.attributes))

    async def get_readings(self, **_: Any) -> Mapping[str, Any]:
        return {"object": id(self)}

    def stop(self) -> None:
        self.told.append("stop")
        raise RuntimeError("it is stuck")

    async def close(self) -> None:
        self.told.append("close")


async def test_it_is_changed_in_place_stopped_and_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def configured(**attributes: Any) -> dict[str, Any]:
        model = "acme:easy:recorder"
        return {"name": "s", "api": str(SENSOR), "model": model, "attributes": attributes}

    Recorder.told.clear()
    async with running_harness([model_from_sdk_class(Recorder)]) as made:
        await made.run(configured(a=1))
        client = SensorClient("s", made.channel)
        before = await client.get_readings()
        await made.run(configured(a=2))
        assert await client.get_readings() == before
        assert Recorder.told == [{"a": 2}]
        with caplog.at_level(logging.WARNING):
            await made.run()
    assert Recorder.told == [{"a": 2}, "stop", "close"]
    assert "stopping the resource failed: RuntimeError: it is stuck" in caplog.text


def test_a_class_that_is_no_model_is_told_what_it_lacks() -> None:
    class Nothing: ...

    class Unnamed(Sensor):
        @classmethod
        def new(cls, config: Any, dependencies: Any) -> Any: ...

    with pytest.raises(TypeError, match="Nothing has no API; add one by deriving it"):
        model_from_sdk_class(Nothing)
    with pytest.raises(TypeError, match='Unnamed has no MODEL; add one with MODEL = "acme'):
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
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    environment = plug_in(tmp_path / "installed", PACKAGE, *LINES)
    monkeypatch.syspath_prepend(tmp_path / "installed")
    importlib.invalidate_caches()
    yield environment
    sys.modules.pop("tests_plug_in", None)


async def test_a_package_brings_classes(
    installed: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "rdk.resource_manager"):
        found = [str(each.name) for each in entry_point_models() if each.name.family == "plugged"]
    assert sorted(found) == [*["acme:plugged:one"] * 3, *["acme:plugged:two"] * 2]
    (complaint,) = caplog.messages
    assert complaint.startswith("cannot load plug-in unnamed of tests_plug_in: TypeError: ")
    async with running_harness() as made:
        one = {"name": "s", "api": str(SENSOR), "model": "acme:plugged:one"}
        two = {"name": "t", "api": str(SENSOR), "model": "acme:plugged:two"}
        await made.run(one, two)
        assert await SensorClient("s", made.channel).get_readings() == {"a": 1}
        assert "abstract method" in reason(made, "t", SENSOR)


def test_the_sdk_is_tamed_before_the_package_imports_it(installed: dict[str, str]) -> None:
    script = (
        "import logging, sys\n"
        "from cogwork.resource.registry import entry_point_models\n"
        "assert entry_point_models()\n"
        "assert sys.excepthook is sys.__excepthook__\n"
        "names = logging.Logger.manager.loggerDict\n"
        "assert not [name for name in names if logging.getLogger(name).handlers]\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=installed, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
