"""A client of the module service, with a deadline for each call."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import grpc
import grpc.aio
from google.protobuf.message import DecodeError, Message
from viam.gen.app.v1.robot_pb2 import ComponentConfig
from viam.gen.module.v1 import module_pb2 as messages

from cogwork.core.errors import CogworkError
from cogwork.graph.name import Api, ModelName, Reference, ResourceName
from cogwork.modules.reply_limits import LIMITS, truncate

_SERVICE = "/viam.module.v1.ModuleService"
_HEALTH_CHECK = "/grpc.health.v1.Health/Check"
_CONFIGURE_METHODS = ("AddResource", "ReconfigureResource")
_TYPE_PREFIX = re.compile(r"\A(?:<class '[\w.]+'>: )+")
"""The prefix that the SDK writes before the message of an exception: `<class 'type'>: `."""
_TIMEOUT_VARIABLE = "VIAM_RESOURCE_CONFIGURATION_TIMEOUT"


class ModuleCallError(CogworkError):
    """A module rejected a call, with this message."""

    def __init__(self, status: str, message: str) -> None:
        super().__init__(message)
        self.status = status


class ReplyTooLarge(ModuleCallError):
    """A reply of a module exceeds a limit."""

    def __init__(self, message: str) -> None:
        super().__init__("RESOURCE_EXHAUSTED", message)


class ValidationResult(NamedTuple):
    """The dependencies of a resource, as reported by its module."""

    needs: tuple[Reference, ...] = ()
    wants: tuple[Reference, ...] = ()


class ModuleCapabilities(NamedTuple):
    """The models that a module provides, and the gRPC services of their APIs."""

    models: frozenset[tuple[Api, ModelName]]
    services: dict[Api, str]


class ModuleClient:
    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel

    async def ready(self, parent: str, timeout: float) -> ModuleCapabilities | None:
        """Return the capabilities of the module; None if it is not ready yet."""
        request = messages.ReadyRequest(parent_address=parent, raw_parent_address=parent)
        reply: messages.ReadyResponse = await self._call(
            "Ready", request, messages.ReadyResponse, timeout
        )
        return _parse_capabilities(reply.handlermap) if reply.ready else None

    async def validate(self, config: ComponentConfig, timeout: float) -> ValidationResult:
        request = messages.ValidateConfigRequest(config=config)
        try:
            reply: messages.ValidateConfigResponse = await self._call(
                "ValidateConfig", request, messages.ValidateConfigResponse, timeout
            )
        except ModuleCallError as error:
            if error.status == "UNIMPLEMENTED":
                return ValidationResult()
            raise
        return _parse_validation(reply)

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

    async def ping(self, timeout: float) -> bool:
        """Return whether the module responds. Any status counts except a timeout and
        UNAVAILABLE."""
        call: Any = self._channel.unary_unary(_HEALTH_CHECK)
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
            f"{_SERVICE}/{method}", request_serializer=type(request).SerializeToString
        )
        try:
            data: bytes = await call(request, timeout=timeout)
        except grpc.aio.AioRpcError as error:
            raise ModuleCallError(
                error.code().name, _error_message(method, error, timeout)
            ) from None
        if len(data) > LIMITS.message:
            raise ReplyTooLarge(
                f"its reply to {method} has {len(data)} bytes; the limit is {LIMITS.message}"
            )
        try:
            return reply.FromString(data)
        except DecodeError:
            raise ModuleCallError("INTERNAL", f"its reply to {method} cannot be decoded") from None


def _error_message(method: str, error: grpc.aio.AioRpcError, timeout: float) -> str:
    if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        hint = f"; set {_TIMEOUT_VARIABLE} to wait longer" if method in _CONFIGURE_METHODS else ""
        return f"it did not reply to {method} within {timeout:g}s{hint}"
    details = _TYPE_PREFIX.sub("", error.details() or "")
    return truncate(details or f"{method} failed with {error.code().name}")


def _parse_capabilities(handlers: messages.HandlerMap) -> ModuleCapabilities:
    _check_count("APIs", len(handlers.handlers), LIMITS.apis)
    _check_count("models", sum(len(each.models) for each in handlers.handlers), LIMITS.models)
    models: set[tuple[Api, ModelName]] = set()
    services: dict[Api, str] = {}
    for handler in handlers.handlers:
        name = handler.subtype.subtype
        _check_names(
            "an API", (name.namespace, name.type, name.subtype, handler.subtype.proto_service)
        )
        _check_names("a model", handler.models)
        api = Api(name.namespace, name.type, name.subtype)
        services[api] = handler.subtype.proto_service
        models.update((api, ModelName.parse(model)) for model in handler.models)
    return ModuleCapabilities(frozenset(models), services)


_INTERNAL_NAMES = ("framesystem", "$framesystem", "rdk-internal:service:frame_system/$framesystem")


def _parse_validation(reply: messages.ValidateConfigResponse) -> ValidationResult:
    needs, wants = reply.dependencies, reply.optional_dependencies
    _check_count("dependencies", len(needs) + len(wants), LIMITS.dependencies)
    return ValidationResult(_parse_references(needs), _parse_references(wants))


def _parse_references(names: Sequence[str]) -> tuple[Reference, ...]:
    """Parse dependencies. Omit the frame system: modules access it in another way."""
    _check_names("a dependency", names)
    return tuple(
        Reference.parse(name) for name in dict.fromkeys(names) if name not in _INTERNAL_NAMES
    )


def _check_count(what: str, count: int, limit: int) -> None:
    if count > limit:
        raise ReplyTooLarge(f"it reports {count} {what}; the limit is {limit}")


def _check_names(what: str, names: Iterable[str]) -> None:
    longest = max(map(len, names), default=0)
    if longest > LIMITS.name:
        raise ReplyTooLarge(
            f"it reports {what} with a name of {longest} characters; the limit is {LIMITS.name}"
        )
