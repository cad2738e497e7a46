"""Methods that a public service has in another version of the API: their provider has them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import grpc.aio
import pytest
from google.protobuf import text_format
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from grpclib.const import Status
from grpclib.reflection.service import ServerReflection
from tests.support.machine.served import refused
from tests.support.waiting import wait_until
from tests.unit.robot.bench import MOTOR, Bench, Mover
from tests.unit.robot.middleware.test_access import LimitedModules
from tests.unit.robot.middleware.test_authentication import LockedBench
from viam.gen.common.v1.common_pb2 import safety_heartbeat_monitored
from viam.gen.component.motor.v1.motor_pb2 import IsMovingRequest
from viam.gen.robot.v1 import robot_pb2 as robot

from cogwork.cli.client.grpc_client import CommandError
from cogwork.cli.client.reflection_client import fetch_service
from cogwork.graph.name import Api, ResourceName
from cogwork.resource.model import Model
from cogwork.resource.sdk.clients import RemoteResource
from cogwork.wire.table.handlers import HandlerTable, Method, methods_from_service
from cogwork.wire.transports.grpc import grpc_server

SERVICE = "viam.component.motor.v1.MotorService"
TWIRL, GET_MODE, PEEK = f"/{SERVICE}/Twirl", f"/{SERVICE}/GetMode", f"/{SERVICE}/Peek"
NAMED = IsMovingRequest(name="wheel").SerializeToString()
BEYOND = NAMED + b"\x7a\x03\x00\xff\x01"  # a field that nobody here knows
DESCRIPTION = """
name: "motor.proto" package: "viam.component.motor.v1" syntax: "proto3"
message_type { name: "Named"
  field { name: "name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL } }
service { name: "MotorService"
  method { name: "Twirl" input_type: "Named" output_type: "Named" }
  method { name: "GetMode" input_type: "Named" output_type: "Named" } }
"""


class Provider:
    """A module with the motors, which knows other methods than this server."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, bytes]] = []
        self.metadata: dict[str, Any] = {}
        self.deadline: float | None = None
        self.release = asyncio.Event()
        self.release.set()
        self.is_described = True

    async def serve(self, path: str, stream: Any) -> None:
        self.calls.append((path, await stream.recv_message()))
        self.metadata = dict(stream.metadata)
        self.deadline = stream.deadline.time_remaining() if stream.deadline else None
        await self.release.wait()
        await stream.send_message(b"reply")

    def table(self) -> HandlerTable:
        table = HandlerTable(fallback=self.serve)
        file = text_format.Parse(DESCRIPTION, FileDescriptorProto())
        file.service[0].method[0].options.Extensions[safety_heartbeat_monitored] = True
        pool = DescriptorPool()
        pool.Add(file)  # type: ignore[no-untyped-call]
        (service, *_) = ServerReflection.extend([], pool=pool)
        for version in ("v1", "v1alpha"):
            name = f"grpc.reflection.{version}.ServerReflection"
            table.add(name, lambda: self._reflection(service))
        return table

    def _reflection(self, service: Any) -> list[Method]:
        return methods_from_service(service) if self.is_described else []


class ProvidedMotor(Mover, RemoteResource):
    def __init__(self, name: ResourceName, bench: ProvidedBench) -> None:
        super().__init__(name, bench)
        self.raw_channel = bench.channel


class ProvidedBench(LockedBench):
    channel: grpc.aio.Channel

    def _model(
        self, api: Api, name: str, kind: Callable[..., object], *, reconfigures: bool = False
    ) -> Model:
        kind = ProvidedMotor if api == MOTOR else kind
        return super()._model(api, name, kind, reconfigures=reconfigures)

    async def send(self, path: str, role: str = "operator", **options: Any) -> Any:
        metadata = {**await self.log_in(role), **options.pop("metadata", {})}
        return await self.call(path, BEYOND, metadata=metadata, **options)


@pytest.fixture
def provider() -> Provider:
    return Provider()


@pytest.fixture
async def bench(provider: Provider) -> AsyncIterator[ProvidedBench]:
    server = grpc_server(provider.table())
    port = server.add_insecure_port("localhost:0")
    await server.start()
    bench = ProvidedBench()
    bench.channel = grpc.aio.insecure_channel(f"localhost:{port}")
    await bench.apply({"name": "wheel", "api": str(MOTOR), "model": "mover"})
    watching = asyncio.ensure_future(bench.machine.sessions.watch())
    yield bench
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    await bench.machine.aclose(1.0)
    await bench.channel.close()
    await server.stop(None)


async def test_request_reaches_the_provider_undecoded(
    bench: ProvidedBench, provider: Provider
) -> None:
    assert await bench.send(GET_MODE) == [b"reply"]
    assert provider.calls == [(GET_MODE, BEYOND)]


@pytest.mark.parametrize(
    ("path", "role"), [(GET_MODE, "viewer"), (f"/{SERVICE}/SetMode", "operator"), (TWIRL, "owner")]
)
async def test_role_is_known_by_name_or_owner(
    bench: ProvidedBench, provider: Provider, path: str, role: str
) -> None:
    roles = ("viewer", "operator", "owner")
    for each in roles[: roles.index(role)]:
        with refused() as error:
            await bench.send(path, each)
        assert error.status is Status.PERMISSION_DENIED
    with refused() as error:
        await bench.call(path, BEYOND)
    assert error.status is Status.UNAUTHENTICATED
    assert provider.calls == []
    await bench.send(path, role)


async def test_module_with_limited_access_is_refused(
    bench: ProvidedBench, provider: Provider
) -> None:
    bench.machine.modules = LimitedModules()
    with refused() as error:
        await bench.call(GET_MODE, BEYOND, peer="module:acme")
    assert error.status is Status.PERMISSION_DENIED
    assert provider.calls == []


async def test_deadline_is_forwarded(bench: ProvidedBench, provider: Provider) -> None:
    await bench.send(GET_MODE, timeout=7.0)
    assert provider.deadline is not None
    assert 5 < provider.deadline < 7.1


@pytest.mark.parametrize("allowed", [(), ("x-mine",)])
async def test_only_listed_headers_of_the_client_are_forwarded(
    bench: ProvidedBench, provider: Provider, allowed: tuple[str, ...]
) -> None:
    wheel: Any = bench.machine.find(ResourceName(MOTOR, "wheel"))
    wheel.forwarded_headers = allowed
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    secrets = {"cookie": "a=b", "viam-sid": (await start_session(bench))["viam-sid"]}
    given = {"opid": "mine", "traceparent": trace, "x-mine": "1", "x-other": "2", **secrets}
    await bench.send(TWIRL, "owner", metadata=given)
    kept = {key: value for key, value in provider.metadata.items() if key != "user-agent"}
    assert kept == {"opid": "mine", "traceparent": trace, **dict.fromkeys(allowed, "1")}
    await bench.send(GET_MODE, "owner")
    assert len(provider.metadata["opid"]) == 36  # its own, if the client gives none


async def start_session(bench: ProvidedBench) -> dict[str, str]:
    reply = await bench.call_robot("StartSession", metadata=await bench.log_in("owner"))
    return {"viam-sid": reply.id}


async def find_stopped(bench: ProvidedBench) -> list[str]:
    """Return what was stopped when the sessions expired."""
    await bench.clock.advance(3)
    return [name for what, name, *_ in bench.history if what == "stop"]


async def test_described_method_that_moves_claims_the_motor(bench: ProvidedBench) -> None:
    await bench.send(TWIRL, "owner", metadata=await start_session(bench))
    assert await find_stopped(bench) == ["wheel"]


async def test_described_method_that_reads_does_not(bench: ProvidedBench) -> None:
    await bench.send(GET_MODE, "owner", metadata=await start_session(bench))
    assert await find_stopped(bench) == []


@pytest.mark.parametrize("names_session", [True, False])
async def test_method_without_description_claims_it_for_the_session_that_it_names(
    bench: ProvidedBench, provider: Provider, names_session: bool
) -> None:
    provider.is_described = False
    session = await start_session(bench)
    await bench.send(TWIRL, "owner", metadata=session if names_session else {})
    assert await find_stopped(bench) == (["wheel"] if names_session else [])


async def test_method_without_description_or_session_leaves_the_claim(
    bench: ProvidedBench, provider: Provider
) -> None:
    provider.is_described = False
    await bench.send(TWIRL, "owner", metadata=await start_session(bench))
    await bench.send(PEEK, "owner")
    assert await find_stopped(bench) == ["wheel"]


async def test_expired_session_is_refused(bench: ProvidedBench, provider: Provider) -> None:
    with refused() as error:
        await bench.send(TWIRL, "owner", metadata={"viam-sid": "old"})
    assert error.words == "SESSION_EXPIRED"
    assert provider.calls == []


async def test_calls_hold_the_places_of_their_resource(
    bench: ProvidedBench, provider: Provider
) -> None:
    """Whatever the methods are called: a client could invent any number of them."""
    provider.release.clear()
    metadata = await bench.log_in("owner")
    calls = [
        asyncio.ensure_future(bench.call(f"/{SERVICE}/Do{number}", BEYOND, metadata=metadata))
        for number in range(60)
    ]
    await wait_until(lambda: len(provider.calls) == 50)
    await bench.clock.advance(5.1)
    late = [each for each in calls if each.done()]
    assert len(late) == 10
    assert "wheel has 50 calls in flight" in str(late[0].exception())
    provider.release.set()
    await asyncio.gather(*calls, return_exceptions=True)
    assert len(provider.calls) == 50


@pytest.mark.parametrize(("resource", "has_it"), [("rdk:component:motor/wheel", True), ("", False)])
async def test_reflection_for_a_resource_describes_what_its_provider_has(
    bench: ProvidedBench, resource: str, has_it: bool
) -> None:
    bench.authentication.use(None)
    server = grpc_server(bench.table)
    port = server.add_insecure_port("localhost:0")
    await server.start()
    with grpc.insecure_channel(f"localhost:{port}") as channel:
        service = await asyncio.to_thread(fetch_service, channel, SERVICE, resource)
    assert ("Twirl" in service.methods_by_name) == has_it
    assert ("SetPower" in service.methods_by_name) != has_it
    await server.stop(None)


async def test_service_that_nobody_describes_is_an_error_with_a_sentence(
    bench: ProvidedBench,
) -> None:
    bench.authentication.use(None)
    server = grpc_server(bench.table)
    port = server.add_insecure_port("localhost:0")
    await server.start()
    with (
        grpc.insecure_channel(f"localhost:{port}") as channel,
        pytest.raises(CommandError, match=r"does not describe acme\.v1\.Unknown, so its methods"),
    ):
        await asyncio.to_thread(fetch_service, channel, "acme.v1.Unknown", "")
    await server.stop(None)


async def test_built_in_resource_says_that_it_has_no_such_method() -> None:
    bench = Bench()
    await bench.apply({"name": "wheel", "api": str(MOTOR), "model": "mover"})
    with refused() as error:
        await bench.call(TWIRL, NAMED)
    assert error.status is Status.UNIMPLEMENTED
    assert error.words == f"{TWIRL} is not served: wheel is built in, and has no such method"
    with refused() as error:
        await bench.call("/viam.robot.v1.RobotService/Dance", robot.StopAllRequest())
    assert error.status is Status.UNIMPLEMENTED
    assert error.words.endswith("Dance is not served: this server has no such method")
    await bench.machine.aclose(1.0)
