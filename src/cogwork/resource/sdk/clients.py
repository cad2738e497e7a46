"""Proxies for resources in another process, based on the SDK's client of each API."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Collection
from typing import Any

import grpc.aio

from cogwork.graph.name import BUILTIN_NAMESPACE, Api
from cogwork.graph.public_apis import PUBLIC_APIS, SERVICE_BY_API
from cogwork.resource.emergency_stop import call_stop
from cogwork.resource.model import NUMPY, MissingExtra
from cogwork.wire.clients.channel import ForwardChannel, SdkChannel

_CAMERA_API = Api(BUILTIN_NAMESPACE, "component", "camera")
_MLMODEL_API = Api(BUILTIN_NAMESPACE, "service", "mlmodel")

FaultCheck = Callable[[], str | None]
"""Returns the fault of the process that runs a resource; None if the process works."""


class RemoteResource:
    """Mix-in for a resource in another process; calls to it are forwarded as raw bytes."""

    name: str
    """The name of the resource in its process."""
    forwarded_headers: Collection[str] = ()
    """The headers of a client's call that are forwarded to the process."""
    raw_channel: ForwardChannel
    _check_fault: FaultCheck
    _call_stop: Callable[[], None]

    @property
    def fault(self) -> str | None:
        return self._check_fault()

    def emergency_stop(self) -> None:
        self._call_stop()


class UnknownApiResource(RemoteResource):
    """A resource whose API is unknown in this process: calls can only be forwarded."""

    def __init__(self, name: str) -> None:
        self.name = name


async def connect_resource(
    api: Api,
    name: str,
    channel: grpc.aio.Channel,
    target: str,
    check_fault: FaultCheck,
    forwarded_headers: Collection[str],
) -> RemoteResource:
    """Create a client for a resource of a process on this computer.

    `target` is the address that the channel connects to.
    """
    stop = functools.partial(call_stop, target, SERVICE_BY_API.get(api, ""), name)
    resource = await connect_to(api, name, channel, stop, check_fault)
    resource.forwarded_headers = forwarded_headers
    return resource


async def connect_to(
    api: Api,
    name: str,
    channel: ForwardChannel,
    stop: Callable[[], None],
    check_fault: FaultCheck,
) -> RemoteResource:
    """Create a client for a resource. `stop` stops it without using the event loop."""
    resource = await _create_client(api, name, channel)
    resource.raw_channel = channel
    resource._check_fault = check_fault  # noqa: SLF001 - created here
    resource._call_stop = stop  # noqa: SLF001
    remote: RemoteResource = resource
    return remote


async def _create_client(api: Api, name: str, channel: ForwardChannel) -> Any:
    if api == _MLMODEL_API:
        return await _create_mlmodel_client(name, channel)
    if api == _CAMERA_API:
        from cogwork.resource.sdk.camera_client import HeaderCameraClient

        return _remote_class(HeaderCameraClient)(name, SdkChannel(channel), channel)
    known = PUBLIC_APIS.get(api)
    if known is None or known.sdk_client is None:
        return UnknownApiResource(name)
    module, _, kind = known.sdk_client.partition(":")
    return _remote_class(getattr(importlib.import_module(module), kind))(name, SdkChannel(channel))


async def _create_mlmodel_client(name: str, channel: ForwardChannel) -> Any:
    try:
        await NUMPY.load()
    except MissingExtra:
        # Without NumPy, calls to the model can still be forwarded, but resources in this process
        # cannot use the model.
        return UnknownApiResource(name)
    from cogwork.resource.sdk.mlmodel_client import FastMLModelClient

    return _remote_class(FastMLModelClient)(name, SdkChannel(channel), channel)


@functools.cache
def _remote_class(client: type[Any]) -> type[Any]:
    return type(f"Remote{client.__name__}", (RemoteResource, client), {})
