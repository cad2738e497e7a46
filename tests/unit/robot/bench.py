"""A machine on a manual clock, with scripted resources and calls without a network."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from google.protobuf.message import Message
from grpclib import GRPCError
from grpclib.const import Cardinality
from grpclib.metadata import Deadline

from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.loader import load
from cogwork.config.schema.fields import Attributes
from cogwork.config.schema.machine import JobConfig
from cogwork.control.static_site import StaticSite
from cogwork.core.clock import ManualClock, SystemClock
from cogwork.graph.desired_specs import DefaultSpecs
from cogwork.graph.limits import GraphLimits
from cogwork.graph.name import Api, ModelName, ResourceName
from cogwork.graph.provider import Dependencies, Providers
from cogwork.graph.reconciler import Outcome
from cogwork.net.peer import Peer
from cogwork.resource.model import Model
from cogwork.resource.registry import Registry
from cogwork.resource.sdk import clean_import as sdk
from cogwork.robot.handler_table import build_handler_table
from cogwork.robot.jobs.job_call import make_job_call, resolve_name
from cogwork.robot.machine import Machine
from cogwork.robot.middleware.authentication import Authentication
from cogwork.robot.middleware.operations import Operations
from cogwork.robot.status.server_load import ServerLoad
from cogwork.robot.status.server_report import ServerReport
from cogwork.robot.status.update_file import UpdateFile
from cogwork.wire.table.handlers import Metadata
from cogwork.wire.table.status import status_of

assert sdk.VERSION  # the SDK must be imported first
from viam.components.generic import Generic  # noqa: E402
from viam.components.sensor import Sensor  # noqa: E402
from viam.gen.common.v1 import common_pb2 as common  # noqa: E402
from viam.gen.component.arm.v1.arm_pb2 import JointPositions  # noqa: E402
from viam.gen.robot.v1 import robot_pb2 as robot  # noqa: E402
from viam.utils import dict_to_struct, struct_to_dict  # noqa: E402

GENERIC = Api.parse("rdk:component:generic")
SENSOR = Api.parse("rdk:component:sensor")
VIDEO = Api.parse("rdk:service:video")
MOTOR = Api.parse("rdk:component:motor")
ARM = Api.parse("rdk:component:arm")
BUTTON = Api.parse("rdk:component:button")
MOTION = Api.parse("rdk:service:motion")
BASE = Api.parse("rdk:component:base")

ROBOT = "/viam.robot.v1.RobotService"
DO_COMMAND = "/viam.component.generic.v1.GenericService/DoCommand"
READ = "/viam.component.sensor.v1.SensorService/GetReadings"

Behavior = Callable[..., Any]
T = TypeVar("T")


NO_LOGIN = Authentication(Operations(SystemClock()))
NO_SITE = StaticSite(Path("no such directory"))


class ThingAttributes(Attributes):
    label: str = ""


class Thing(Generic):
    """A resource that runs its behavior, the coroutine function `behaviors["<its name>"]`."""

    def __init__(self, name: ResourceName, bench: Bench) -> None:
        super().__init__(name.name)
        self.bench = bench

    async def do_command(self, command: Mapping[str, Any], **_: Any) -> Mapping[str, Any]:
        behavior = self.bench.behaviors.get(self.name)
        done = await behavior(command) if behavior is not None else command
        return done if isinstance(done, Mapping) else {}

    async def reconfigure(self, attributes: ThingAttributes, dependencies: Dependencies) -> None:
        await self.bench.run_script("reconfigure", self.name)

    async def close(self) -> None:
        await self.bench.run_script("close", self.name)


class Mover(Thing):
    async def stop(self, *, extra: dict[str, Any] | None = None, **_: Any) -> None:
        await self.bench.run_script("stop", self.name, extra)


class Wheel(Mover):
    """A motor with the methods that the tests call."""

    async def set_power(self, power: float, **_: Any) -> None:
        if (behavior := self.bench.behaviors.get(self.name)) is not None:
            await behavior()

    async def go_for(self, rpm: float, revolutions: float, **_: Any) -> None:
        await wait_forever()

    async def is_moving(self) -> bool:
        await self.bench.run_script("look", self.name)
        return False


class Reach(Mover):
    """An arm whose behavior returns the joints and the kinematics."""

    async def move_through_joint_positions_streamed(
        self, batches: AsyncIterator[Any], **_: Any
    ) -> AsyncIterator[Any]:
        async for batch in batches:
            yield batch
        await wait_forever()

    async def get_kinematics(self) -> Any:
        return self.bench.behaviors[self.name]()[1]

    async def get_joint_positions(self) -> Any:
        return JointPositions(values=self.bench.behaviors[self.name]()[0])


class Bell(Thing):
    """A button whose behavior is the push."""

    async def push(self, **_: Any) -> None:
        await self.bench.behaviors[self.name]()


class Planner(Thing):
    """A motion service whose behavior is the move."""

    async def move(self, *_: Any, **__: Any) -> bool:
        await self.bench.behaviors[self.name]()
        return True

    async def move_on_map(self, *_: Any, **__: Any) -> str:
        return "an execution"

    async def stop_plan(self, component_name: str, **_: Any) -> None:
        await self.bench.run_script("stop plan", component_name)


class Probe(Sensor):
    def __init__(self, name: ResourceName, bench: Bench) -> None:
        super().__init__(name.name)
        self.bench = bench

    async def get_readings(self, **options: Any) -> Any:
        return await self.bench.behaviors[self.name](**options)


@dataclass
class Bench:
    clock: ManualClock = field(default_factory=ManualClock)
    defaults: DefaultSpecs = field(default_factory=dict)
    behaviors: dict[str, Behavior] = field(default_factory=dict)
    scripts: dict[tuple[str, str], Behavior] = field(default_factory=dict)
    """Scripts for ("build" | "reconfigure" | "close" | "stop", name)."""
    history: list[Any] = field(default_factory=list)
    shutdown_reasons: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        models = [
            *(
                self._model(GENERIC, name, kind, reconfigures=reconfigures)
                for name, kind, reconfigures in (
                    ("thing", Thing, False),
                    ("mutable", Thing, True),
                    ("mover", Mover, False),
                    ("mutable_mover", Mover, True),
                )
            ),
            self._model(SENSOR, "probe", Probe),
            self._model(VIDEO, "thing", Thing),
            self._model(MOTOR, "mover", Wheel),
            self._model(ARM, "mover", Reach),
            self._model(BASE, "mover", Mover),
            self._model(BUTTON, "bell", Bell),
            self._model(MOTION, "planner", Planner),
        ]
        self.registry = Registry(models)
        self.machine = Machine(
            Providers({"built in": self.registry}),
            self.clock,
            limits=GraphLimits(),
            observe=lambda _event: None,
            job_call=self._call_job,
            defaults=self.defaults,
        )
        self.report = ServerReport(ServerLoad(self.clock), UpdateFile({}))
        self.table = build_handler_table(self.machine, self.clock, self.shutdown_reasons.append)

    async def _call_job(self, config: JobConfig) -> None:
        machine, modules = self.machine, self.machine.modules
        call = make_job_call(
            self.table, lambda text: resolve_name(text, machine.names()), lambda: modules
        )
        await call(config)

    def _model(
        self, api: Api, name: str, kind: Callable[..., object], *, reconfigures: bool = False
    ) -> Model:
        async def construct(
            full_name: ResourceName, attributes: object, dependencies: Dependencies
        ) -> object:
            await self.run_script("build", full_name.name)
            return kind(full_name, self)

        return Model(api, ModelName.parse(name), ThingAttributes, construct, reconfigures)

    async def run_script(self, what: str, name: str, given: object = None) -> None:
        self.history.append((what, name) if given is None else (what, name, given))
        script = self.scripts.get((what, name))
        if script is not None:
            await script()

    def start_apply(self, config: Mapping[str, Any] | str) -> asyncio.Future[Outcome]:
        text = config if isinstance(config, str) else json.dumps(config)
        return self.machine.apply(load(text, LoadContext(self.registry, Path("/home"), {})))

    async def apply(self, *resources: dict[str, Any], **sections: Any) -> Outcome:
        outcome = self.start_apply({"components": list(resources), **sections})
        await self.clock.settle()
        assert outcome.done(), "it is not applied yet"
        return outcome.result()

    async def call_robot(self, method: str, request: Message | None = None, **options: Any) -> Any:
        """Call a method of RobotService."""
        kind = getattr(robot, f"{method}Request")
        return await self.call(f"{ROBOT}/{method}", request or kind(), **options)

    async def do_command(
        self, name: str, command: Mapping[str, Any] | None = None, **options: Any
    ) -> Any:
        request = common.DoCommandRequest(name=name, command=dict_to_struct(command or {}))
        return struct_to_dict((await self.call(DO_COMMAND, request, **options)).result)

    async def call(self, path: str, request: Any, **options: Any) -> Any:
        """Call a method and return the reply, or raise a GRPCError, as a client gets it."""
        method = self.table.find(path)
        assert method is not None
        stream = InProcess(request, **options)
        try:
            await method.handle(stream)
        except Exception as error:
            status, words = status_of(error, path)
            raise GRPCError(status, words) from error
        if method.cardinality is Cardinality.UNARY_UNARY:
            (reply,) = stream.replies
            return reply
        return stream.replies

    async def start_call(self, call: Awaitable[T]) -> asyncio.Task[T]:
        """Start the call as a task and run it until it waits."""
        task = asyncio.ensure_future(call)
        await self.clock.settle()
        return task

    async def operations(self) -> list[robot.Operation]:
        return list((await self.call_robot("GetOperations")).operations)


class InProcess:
    """The stream of one call with one request, as a transport provides it."""

    def __init__(
        self,
        request: Any,
        *,
        metadata: Metadata | None = None,
        timeout: float | None = None,
        peer: str = "ipv4:127.0.0.1:50112",
    ) -> None:
        self.request = self._unread = request
        self.metadata: Metadata = metadata or {}
        self.deadline = Deadline.from_timeout(timeout) if timeout is not None else None
        self.peer = peer
        self.client = Peer(peer, is_local=True)
        self.replies: list[Any] = []

    async def recv_message(self) -> Any:
        request, self._unread = self._unread, None
        return request

    async def send_message(self, message: Any, *, end: bool = False) -> None:
        self.replies.append(message)

    async def send_initial_metadata(self, *, metadata: Metadata | None = None) -> None:
        pass

    async def send_trailing_metadata(self, *, metadata: Metadata | None = None) -> None:
        pass

    async def __aiter__(self) -> AsyncIterator[Any]:
        while (message := await self.recv_message()) is not None:
            yield message


@contextlib.asynccontextmanager
async def running_bench(defaults: DefaultSpecs | None = None) -> AsyncIterator[Bench]:
    """Run a bench, and check at the end that no call is running and everything closes."""
    bench = Bench(defaults=defaults or {})
    watching = asyncio.ensure_future(bench.machine.operations.watch())
    try:
        yield bench
        assert bench.machine.operations.others() == []
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        closing = asyncio.ensure_future(bench.machine.aclose())
        await bench.clock.advance(30)
        assert closing.result() == []


def thing(name: str, model: str = "thing", *, needs: str = "", label: str = "") -> dict[str, Any]:
    return {
        "name": name,
        "api": str(GENERIC),
        "model": model,
        "attributes": {"label": label} if label else {},
        "depends_on": needs.split(),
    }


def probe(name: str) -> dict[str, Any]:
    return {"name": name, "api": str(SENSOR), "model": "probe"}


def full_name(name: str, api: Api = GENERIC) -> ResourceName:
    return ResourceName(api, name)


async def wait_forever(*_: Any, **__: Any) -> None:
    await asyncio.Event().wait()


def fail_with(words: str) -> Behavior:
    async def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError(words)

    return fail


def job(name: str = "j", schedule: str = "10s", **fields: Any) -> JobConfig:
    fields_of_job = {
        "name": name,
        "schedule": schedule,
        "resource": "a",
        "method": "GetReadings",
        **fields,
    }
    return JobConfig.model_validate(fields_of_job)
