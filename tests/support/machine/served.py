"""Serves resources on a real gRPC server, for the SDK's own clients."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import grpc.aio
import pytest
from grpclib import GRPCError
from grpclib.client import Channel
from grpclib.const import Status

from cogwork.graph.name import Api, ResourceName
from cogwork.graph.public_apis import PUBLIC_APIS, SERVICE_BY_API
from cogwork.resource.sdk import clean_import as sdk
from cogwork.resource.services.api_methods import load_methods
from cogwork.wire.clients.channel import SdkChannel
from cogwork.wire.table.handlers import HandlerTable
from cogwork.wire.transports.grpc import grpc_server

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.resource.base import ResourceBase  # noqa: E402

CHANNELS = ("grpclib", "ours")


class Serve(Protocol):
    def __call__(self, *resources: ResourceBase) -> AbstractAsyncContextManager[Any]: ...


@contextlib.asynccontextmanager
async def served(*resources: ResourceBase, by: str = "grpclib") -> AsyncIterator[Any]:
    """Yield a channel of the given kind to the resources."""
    server = grpc_server(_table(resources))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with _channel(port, by) as channel:
            yield channel
    finally:
        await server.stop(None)


def _table(resources: tuple[ResourceBase, ...]) -> HandlerTable:
    named = {ResourceName(_api(each), each.name): each for each in resources}
    apis = {_api(each) for each in resources}
    table = HandlerTable()
    for api in apis:
        load = partial(load_methods, PUBLIC_APIS[api], named.__getitem__)
        table.add(SERVICE_BY_API[api], load)
    return table


def _api(resource: ResourceBase) -> Api:
    return Api.parse(str(resource.API))


@contextlib.asynccontextmanager
async def _channel(port: int, by: str) -> AsyncIterator[Any]:
    if by == "grpclib":
        theirs = Channel("127.0.0.1", port)
        try:
            yield theirs
        finally:
            theirs.close()
    else:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as carrier:
            yield SdkChannel(carrier)


@dataclass
class Refusal:
    """The error that a client got."""

    status: Status = field(init=False)
    words: str = field(init=False)


@contextlib.contextmanager
def refused() -> Iterator[Refusal]:
    told = Refusal()
    with pytest.raises(GRPCError) as error:
        yield told
    told.status, told.words = error.value.status, error.value.message or ""
