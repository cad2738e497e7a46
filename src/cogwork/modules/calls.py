"""What a module is asked to do: its own service, by a channel to it, each call with a deadline."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import grpc
import grpc.aio
from google.protobuf.message import Message
from viam.gen.app.v1.robot_pb2 import ComponentConfig
from viam.gen.module.v1 import module_pb2 as messages

from cogwork.core.errors import CogworkError
from cogwork.graph.name import Api, ModelName, Reference, ResourceName

_SERVICE = "/viam.module.v1.ModuleService"
_PROBE = "/grpc.health.v1.Health/Check"
_CONFIGURING = ("AddResource", "ReconfigureResource")
_LONGER = "VIAM_RESOURCE_CONFIGURATION_TIMEOUT"


class Refused(CogworkError):
    """A module that says no, in its own words."""

    def __init__(self, status: str, words: str) -> None:
        super().__init__(words)
        self.status = status


class Needed(NamedTuple):
    """What a module says that a resource depends on."""

    needs: tuple[Reference, ...] = ()
    wants: tuple[Reference, ...] = ()


class Brought(NamedTuple):
    """What a module brings: which models, and by which gRPC services their APIs are carried."""

    models: frozenset[tuple[Api, ModelName]]
    services: dict[Api, str]


class ModuleCalls:
    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel

    async def ready(self, parent: str, timeout: float) -> Brought | None:
        """None: not yet, ask again."""
        request = messages.ReadyRequest(parent_address=parent, raw_parent_address=parent)
        reply: messages.ReadyResponse = await self._call(
            "Ready", request, messages.ReadyResponse, timeout
        )
        return _brought(reply.handlermap) if reply.ready else None

    async def validate(self, config: ComponentConfig, timeout: float) -> Needed:
        request = messages.ValidateConfigRequest(config=config)
        try:
            reply: messages.ValidateConfigResponse = await self._call(
                "ValidateConfig", request, messages.ValidateConfigResponse, timeout
            )
        except Refused as error:
            if error.status == "UNIMPLEMENTED":
                return Needed()
            raise
        return Needed(_references(reply.dependencies), _references(reply.optional_dependencies))

    async def add(
        self, config: ComponentConfig, dependencies: Iterable[ResourceName], timeout: float
    ) -> None:
        request = messages.AddResourceRequest(config=config, dependencies=map(str, dependencies))
        await self._call("AddResource", request, messages.AddResourceResponse, timeout)

    async def reconfigure(
        self, config: ComponentConfig, dependencies: Iterable[ResourceName], timeout: float
    ) -> None:
        request = messages.ReconfigureResourceRequest(
            config=config, dependencies=map(str, dependencies)
        )
        await self._call(
            "ReconfigureResource", request, messages.ReconfigureResourceResponse, timeout
        )

    async def remove(self, name: ResourceName, timeout: float) -> None:
        request = messages.RemoveResourceRequest(name=str(name))
        await self._call("RemoveResource", request, messages.RemoveResourceResponse, timeout)

    async def answers(self, timeout: float) -> bool:
        """Whatever it says: that it is not asked in vain."""
        call: Any = self._channel.unary_unary(_PROBE)
        try:
            await call(b"", timeout=timeout)
        except grpc.aio.AioRpcError as error:
            return error.code() not in (
                grpc.StatusCode.DEADLINE_EXCEEDED,
                grpc.StatusCode.UNAVAILABLE,
            )
        return True

    async def _call(
        self, method: str, request: Message, reply: type[Message], timeout: float
    ) -> Any:
        call: Any = self._channel.unary_unary(
            f"{_SERVICE}/{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=reply.FromString,
        )
        try:
            answer = await call(request, timeout=timeout)
        except grpc.aio.AioRpcError as error:
            raise Refused(error.code().name, _words(method, error, timeout)) from None
        if answer is None:
            raise Refused("INTERNAL", f"its answer to {method} cannot be read")
        return answer


def _words(method: str, error: grpc.aio.AioRpcError, timeout: float) -> str:
    if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        longer = f"; {_LONGER} gives it longer" if method in _CONFIGURING else ""
        return f"it did not answer {method} within {timeout:g}s{longer}"
    return error.details() or f"{method} failed with {error.code().name}"


def _brought(handlers: messages.HandlerMap) -> Brought:
    models: set[tuple[Api, ModelName]] = set()
    services: dict[Api, str] = {}
    for handler in handlers.handlers:
        name = handler.subtype.subtype
        api = Api(name.namespace, name.type, name.subtype)
        services[api] = handler.subtype.proto_service
        models.update((api, ModelName.parse(model)) for model in handler.models)
    return Brought(frozenset(models), services)


_INNER = ("framesystem", "$framesystem", "rdk-internal:service:frame_system/$framesystem")


def _references(names: Sequence[str]) -> tuple[Reference, ...]:
    """What is no resource of the graph here, a module is given by other means."""
    return tuple(Reference.parse(name) for name in dict.fromkeys(names) if name not in _INNER)
