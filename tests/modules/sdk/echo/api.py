"""The API `acme:service:echo` as the SDK asks for it: the resource, its service and its client."""

from __future__ import annotations

import abc
import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, TypeAlias

from grpclib import GRPCError, Status
from grpclib.client import Channel
from grpclib.metadata import Deadline
from grpclib.server import Stream
from tests.modules.sdk.echo.echo_grpc import EchoServiceBase, EchoServiceStub
from tests.modules.sdk.echo.echo_pb2 import EchoReply, EchoRequest
from viam.resource.registry import Registry, ResourceRegistration
from viam.resource.rpc_service_base import ResourceRPCServiceBase
from viam.resource.types import API, RESOURCE_TYPE_SERVICE
from viam.services.service_base import ServiceBase

_Call: TypeAlias = Stream[EchoRequest, EchoReply]


class Echo(ServiceBase):
    API: ClassVar[API] = API("acme", RESOURCE_TYPE_SERVICE, "echo")

    cancelled: int = 0
    """How many calls have been."""
    running: int = 0
    """How many calls are."""

    @abc.abstractmethod
    def reply(self, request: EchoRequest) -> EchoReply: ...


class EchoRPCService(EchoServiceBase, ResourceRPCServiceBase[Echo]):
    RESOURCE_TYPE = Echo  # type: ignore[assignment]

    async def Unary(self, stream: _Call) -> None:  # noqa: N802
        request = await _received(stream)
        resource = self.get_resource(request.name)
        await stream.send_initial_metadata(metadata={"x-said-first": resource.name})
        with _counting(resource):
            await _pause(request)
            reply = resource.reply(request)
            reply.metadata.update(_marked(stream.metadata or {}))
            reply.remaining = _remaining(stream.deadline)
            reply.cancelled = resource.cancelled
            reply.running = resource.running
            await stream.send_message(reply)
            await stream.send_trailing_metadata(metadata={"x-said-last": resource.name})

    async def ServerStream(self, stream: _Call) -> None:  # noqa: N802
        request = await _received(stream)
        resource = self.get_resource(request.name)
        data = bytes(request.size) or request.data
        with _counting(resource):
            for number in range(request.times):
                await _pause(request)
                await stream.send_message(EchoReply(text=request.text, data=data, number=number))

    async def ClientStream(self, stream: _Call) -> None:  # noqa: N802
        reply, resource = EchoReply(), None
        async for request in stream:
            resource = resource or self.get_resource(request.name)
            with _counting(resource):
                await _pause(request)
            reply.text += request.text
            reply.number += 1
            reply.received += len(request.data)
        await stream.send_message(reply)

    async def BiDi(self, stream: _Call) -> None:  # noqa: N802
        number = 0
        async for request in stream:
            resource = self.get_resource(request.name)
            with _counting(resource):
                await _pause(request)
                reply = resource.reply(request)
                reply.number = number
                await stream.send_message(reply)
            number += 1


async def _received(stream: _Call) -> EchoRequest:
    request = await stream.recv_message()
    assert request is not None
    return request


@contextmanager
def _counting(resource: Echo) -> Iterator[None]:
    resource.running += 1
    try:
        yield
    except asyncio.CancelledError:
        resource.cancelled += 1
        raise
    finally:
        resource.running -= 1


async def _pause(request: EchoRequest) -> None:
    if request.pause:
        await asyncio.sleep(request.pause)
    if request.status:
        raise GRPCError(Status(request.status), request.text)


def _marked(metadata: Mapping[str, Any]) -> Mapping[str, str]:
    return {name: str(value) for name, value in metadata.items() if name.startswith("x-")}


def _remaining(deadline: Deadline | None) -> float:
    return deadline.time_remaining() if deadline is not None else -1.0


class EchoClient(Echo):
    """Calls it from anywhere: in tests, and in modules that depend on one."""

    def __init__(self, name: str, channel: Channel) -> None:
        self.channel = channel
        self.client = EchoServiceStub(channel)
        super().__init__(name)

    def reply(self, request: EchoRequest) -> EchoReply:
        raise NotImplementedError

    async def unary(
        self,
        text: str = "",
        data: bytes = b"",
        *,
        pause: float = 0.0,
        status: int = 0,
        timeout: float | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> EchoReply:
        request = EchoRequest(name=self.name, text=text, data=data, pause=pause, status=status)
        return await self.client.Unary(request, timeout=timeout, metadata=dict(metadata or {}))

    async def server_stream(
        self, times: int, *, text: str = "", size: int = 0, pause: float = 0.0
    ) -> AsyncIterator[EchoReply]:
        request = EchoRequest(name=self.name, text=text, times=times, size=size, pause=pause)
        async with self.client.ServerStream.open() as stream:
            await stream.send_message(request, end=True)
            async for reply in stream:
                yield reply

    async def client_stream(self, texts: Iterable[str], data: bytes = b"") -> EchoReply:
        async with self.client.ClientStream.open() as stream:
            for text in texts:
                await stream.send_message(EchoRequest(name=self.name, text=text, data=data))
            await stream.end()
            reply = await stream.recv_message()
        assert reply is not None
        return reply

    async def bidi(self, texts: Sequence[str]) -> AsyncIterator[EchoReply]:
        """Each is sent when the one before has been answered."""
        async with self.client.BiDi.open() as stream:
            for text in texts:
                await stream.send_message(EchoRequest(name=self.name, text=text))
                reply = await stream.recv_message()
                assert reply is not None
                yield reply
            await stream.end()
            assert await stream.recv_message() is None


def register() -> None:
    """The SDK knows the API from here on."""
    Registry.register_api(ResourceRegistration(Echo, EchoRPCService, EchoClient))  # type: ignore[type-abstract]
