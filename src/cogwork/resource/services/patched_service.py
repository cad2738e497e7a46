"""The SDK's gRPC service for an API, with some of its methods replaced by ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from cogwork.graph.name import Api
from cogwork.graph.public_apis import PUBLIC_APIS
from cogwork.resource.services.api_methods import load_sdk_methods
from cogwork.resource.services.resource_service import FindResource
from cogwork.wire.table.handlers import Handler, Method


def patch_methods(api: Api, find: FindResource, ours: Mapping[str, Handler]) -> Iterable[Method]:
    """Yield the methods of the SDK's service. `ours` maps method names to replacements."""
    for method in load_sdk_methods(PUBLIC_APIS[api], find):
        handle = ours.get(method.path.rpartition("/")[2])
        yield replace(method, handle=handle) if handle is not None else method
