"""Forwards calls to resources in other processes: modules and other machines."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from grpclib.const import Cardinality

from cogwork.core.errors import CogworkError, InvalidRequest
from cogwork.graph.name import Api, ResourceName
from cogwork.graph.public_apis import API_BY_SERVICE, PUBLIC_APIS, SERVICE_BY_API
from cogwork.resource.sdk.clients import RemoteResource
from cogwork.robot.machine import Machine
from cogwork.robot.middleware.operations import (
    MAX_CALL_SECONDS,
    OPERATION_ID_KEY,
    TookTooLong,
    current_operation,
)
from cogwork.robot.middleware.provider_descriptors import ProviderDescriptors
from cogwork.robot.motion.moving_methods import is_marked
from cogwork.robot.motion.session_manager import session_id_of
from cogwork.robot.unavailable import NotAvailable
from cogwork.wire.clients.proxy import forward
from cogwork.wire.messages.protobuf_encoding import encode_field_header
from cogwork.wire.messages.raw_request import (
    read_nested_resource_name,
    read_resource_name,
    rename_nested_resource,
    rename_resource,
)
from cogwork.wire.messages.resource_field import name_field
from cogwork.wire.table.concurrency_limit import STOP_METHODS, ConcurrencyLimiter
from cogwork.wire.table.event_streams import declares_events
from cogwork.wire.table.first_message import recv_first_message
from cogwork.wire.table.handlers import Method, ProxyRoute, Stream
from cogwork.wire.table.opening_message import OPENED_BY_A_MESSAGE, opened_by_a_message

Rename = Callable[[bytes, RemoteResource], bytes]
"""A function that replaces the resource name of a request by the name in the other process."""

_OWN_SERVICES: Final = ("viam.robot.", "grpc.", "proto.")
"""Prefixes of services that no module provides."""
_CAMERA_API: Final = Api.parse("rdk:component:camera")
_CAMERA_FIELD: Final = "camera_name"
"""Field of a request that names a second resource."""
_TRACE_KEY: Final = "traceparent"
_CAPTURE_ALL: Final = "/viam.service.vision.v1.VisionService/CaptureAllFromCamera"
_EMPTY_PARTS: Final = encode_field_header(1, 0) + encode_field_header(99, 0)
"""An image field and an `extra` field without content, encoded."""


class ResourceProxy:
    def __init__(self, machine: Machine, limiter: ConcurrencyLimiter) -> None:
        self._machine = machine
        self._limiter = limiter
        self._descriptors = ProviderDescriptors()

    def make_proxy_route(self, method: Method) -> ProxyRoute | None:
        """Return the proxy route of a method of the public API; None for any other method."""
        api = API_BY_SERVICE.get(method.service)
        if api is None or (method.request is None and method.cardinality.client_streaming):
            return None
        is_nested = _names_resource_in_nested_message(method)
        read_name = read_nested_resource_name if is_nested else read_resource_name
        rename = self._make_rename(method, is_nested=is_nested)
        machine, nodes = self._machine, self._machine.nodes

        def matches(first: bytes) -> bool:
            node = nodes.get(machine.resolve(ResourceName.from_short(api, read_name(first) or "")))
            live = node.usable if node is not None else None
            return live is not None and isinstance(live.resource, RemoteResource)

        async def handle(stream: Stream) -> None:
            first = stream.request if stream.request is not None else await stream.recv_message()
            name = ResourceName.from_short(api, read_name(first) or "")
            target = self._find_target(name, method.path)
            await self._forward(target, method.path, method.cardinality, stream, first, rename)

        return ProxyRoute(lambda: machine.has_other_processes, matches, handle)

    async def forward_unknown(self, path: str, stream: Stream) -> None:
        """Forward a call of an unregistered method to the module or remote that has the resource.

        The method may belong to an API that only modules and remotes know, or to another version of
        a public API.
        """
        service = path.lstrip("/").rpartition("/")[0]
        api = API_BY_SERVICE.get(service) or self._find_module_api(service)
        if api is None:
            raise self._not_served_error(path, service)
        first = await recv_first_message(stream, path)
        if not (short := read_resource_name(first)):
            raise InvalidRequest(
                f"cannot route {path}: the first field of the request must be the name of a "
                f"resource of {api}"
            )
        name = self._machine.resolve(ResourceName.from_short(api, short))
        target = self._find_target(name, path)
        method = await self._describe(target.resource, service, path)
        async with self._hold_place(name, method, path, stream):
            with self._claim(name, service, method, stream):
                if method is not None and _is_unary(method):
                    await self._forward_unary(target, path, stream, first)
                else:
                    await self._forward(target, path, Cardinality.STREAM_STREAM, stream, first)

    async def find_descriptors(self, resource: str) -> DescriptorPool | None:
        """Return the descriptors of a resource's API from its provider; None if the descriptors of
        this server apply."""
        try:
            name = self._machine.resolve(ResourceName.parse(resource))
        except ValueError:
            return None
        service = SERVICE_BY_API.get(name.api)
        node = self._machine.nodes.get(name)
        live = node.usable if node is not None else None
        if service is None or live is None or not isinstance(live.resource, RemoteResource):
            return None
        return await self._descriptors.find_pool(live.resource.raw_channel, service)

    async def _describe(
        self, resource: RemoteResource, service: str, path: str
    ) -> MethodDescriptor | None:
        if service in API_BY_SERVICE:
            return await self._descriptors.describe(resource.raw_channel, path)
        return self._machine.describe(path)

    def _hold_place(
        self, name: ResourceName, method: MethodDescriptor | None, path: str, stream: Stream
    ) -> contextlib.AbstractAsyncContextManager[object]:
        if path.endswith(STOP_METHODS):
            return contextlib.nullcontext()
        waits = method is not None and declares_events(method) and not is_marked(method)
        hold = self._limiter.hold_events if waits else self._limiter.hold
        return hold(name, stream.peer, name.short)

    def _claim(
        self, name: ResourceName, service: str, method: MethodDescriptor | None, stream: Stream
    ) -> contextlib.AbstractContextManager[None]:
        """Claim the resource for the caller, if the call moves it.

        If the method has no descriptor, assume that a call with a session moves the resource: its
        client wants the motion to stop when the session ends.
        """
        if service not in API_BY_SERVICE:
            return contextlib.nullcontext()
        moves = is_marked(method) if method is not None else session_id_of(stream) is not None
        return self._machine.sessions.claimed(name, stream) if moves else contextlib.nullcontext()

    async def _forward_unary(
        self, target: _Target, path: str, stream: Stream, request: bytes
    ) -> None:
        """Forward a unary call with a time limit.

        The machine treats unregistered methods as streams, which have no time limit.
        """
        timeout = MAX_CALL_SECONDS if stream.deadline is None else None
        try:
            async with asyncio.timeout(timeout) as limit:
                await self._forward(target, path, Cardinality.UNARY_UNARY, stream, request)
        except TimeoutError:
            if not limit.expired():
                raise
            raise TookTooLong(
                f"{path} was cancelled after {MAX_CALL_SECONDS:g}s; set a deadline for calls that "
                "take longer"
            ) from None

    def _find_target(self, name: ResourceName, path: str) -> _Target:
        """Return a resource in another process. Raise an error if it is unavailable or in this
        process."""
        resource = self._machine.find(name)
        if isinstance(resource, RemoteResource):
            return _Target(resource, name.short)
        public = PUBLIC_APIS.get(name.api)
        if public is not None and not public.is_served:
            why = f"{name.api} is not part of this release yet"
        else:
            why = f"{name.short} is built in, and has no such method"
        raise NotImplementedError(f"{path} is not served: {why}")

    async def _forward(
        self,
        target: _Target,
        path: str,
        cardinality: Cardinality,
        stream: Stream,
        first: bytes | None,
        rename: Rename | None = None,
    ) -> None:
        resource, rename = target.resource, rename or _rename
        rewrite = None if resource.name == target.name else lambda data: rename(data, resource)
        channel, metadata = resource.raw_channel, _metadata_for(resource, stream)
        if path == _CAPTURE_ALL:
            stream = _CompletedCapture(stream)
        if path not in OPENED_BY_A_MESSAGE:
            await forward(channel, path, cardinality, stream, first, rewrite, metadata)
            return
        async with opened_by_a_message(stream) as opened:
            await forward(channel, path, cardinality, opened, first, rewrite, metadata)

    def _make_rename(self, method: Method, *, is_nested: bool) -> Rename:
        """Return a function that replaces the resource names in a request by the names in the other
        process."""
        if is_nested:
            return lambda data, target: rename_nested_resource(data, target.name)
        request: Any = method.request
        if request is None or _CAMERA_FIELD not in request.DESCRIPTOR.fields_by_name:
            return _rename

        def rename_both(data: bytes, target: RemoteResource) -> bytes:
            message = request.FromString(data)
            message.name = target.name
            message.camera_name = self._camera_there(message.camera_name, target)
            encoded: bytes = message.SerializeToString()
            return encoded

        return rename_both

    def _camera_there(self, name: str, target: RemoteResource) -> str:
        """Return the name that the process of the vision service uses for a camera.

        If the camera and the vision service are in different processes, return the camera's name on
        this machine.
        """
        full = self._machine.resolve(ResourceName.from_short(_CAMERA_API, name))
        camera = self._machine.nodes.get(full)
        live = camera.usable if camera is not None else None
        if live is None or not isinstance(live.resource, RemoteResource):
            return name
        return live.resource.name if live.resource.raw_channel is target.raw_channel else name

    def _find_module_api(self, service: str) -> Api | None:
        services = self._machine.services()
        return next((api for api, name in services.items() if name == service), None)

    def _not_served_error(self, path: str, service: str) -> CogworkError | NotImplementedError:
        if service.startswith(_OWN_SERVICES):
            return NotImplementedError(f"{path} is not served: this server has no such method")
        if reason := self._machine.modules.pending_reason():
            return NotAvailable(f"{path} is not served yet: {reason}")
        return NotImplementedError(
            f"{path} is not served: no module or remote of this machine provides {service}"
        )


class _Target(NamedTuple):
    resource: RemoteResource
    name: str
    """The name of the resource in the caller's request."""


class _CompletedCapture:
    """A stream that appends an empty image and an empty `extra` to each reply. A module may omit
    them, but Go clients read both without a check."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def send_message(self, message: bytes, *, end: bool = False) -> None:
        # An empty field does not change a field that the reply has: protobuf merges the two.
        await self._stream.send_message(message + _EMPTY_PARTS, end=end)


def _metadata_for(resource: RemoteResource, stream: Stream) -> list[tuple[str, str | bytes]]:
    """Return the call's metadata that the process of the resource may see.

    Withhold all other headers: they may contain credentials.
    """
    operation = current_operation()
    found: list[tuple[str, str | bytes]] = (
        [(OPERATION_ID_KEY, operation.id)] if operation is not None else []
    )
    allowed = resource.forwarded_headers
    for name, value in stream.metadata.items():
        if name == _TRACE_KEY or name in allowed:
            found.append((name, value))
    return found


def _is_unary(method: MethodDescriptor) -> bool:
    return not (method.client_streaming or method.server_streaming)


def _rename(data: bytes, target: RemoteResource) -> bytes:
    return rename_resource(data, target.name)


def _names_resource_in_nested_message(method: Method) -> bool:
    request = method.request
    return request is not None and name_field(request.DESCRIPTOR) is None
