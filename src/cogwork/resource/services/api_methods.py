"""The gRPC methods of each API, and adapters that let the SDK's service classes use our machine.

The SDK's class serves an API unless it has a defect. Classes that parse images byte by byte on the
event loop, swallow errors or drop fields are replaced by our own.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast

from cogwork.graph.name import Api, ResourceName
from cogwork.graph.public_apis import PublicApi
from cogwork.resource.messages.structs import extra_to_dict, to_struct
from cogwork.resource.services.resource_service import FindResource, ResourceService
from cogwork.wire.table.descriptor_service import to_stream_handler
from cogwork.wire.table.handlers import Method, Servable, methods_from_service


def load_methods(public: PublicApi, find: FindResource) -> Iterable[Method]:
    """Import the implementation of an API with its messages, and return its methods."""
    if public.methods_factory is not None:
        methods: Iterable[Method] = _import_attribute(public.methods_factory)(public.api, find)
        return methods
    return load_sdk_methods(public, find)


def load_sdk_methods(public: PublicApi, find: FindResource) -> Iterable[Method]:
    """Return the methods of the SDK's gRPC service for an API."""
    assert public.sdk_service is not None
    path, _, kind = public.sdk_service.partition(":")
    module: Any = importlib.import_module(path)
    module.struct_to_dict = extra_to_dict
    module.dict_to_struct = to_struct
    service = create_sdk_service(getattr(module, kind), public.api, find)
    return [_replace_do_command(each, public.api, find) for each in methods_from_service(service)]


def _replace_do_command(method: Method, api: Api, find: FindResource) -> Method:
    if method.path.endswith("/DoCommand"):
        return replace(method, handle=to_stream_handler(ResourceService(api, find).do_command))
    return method


def create_sdk_service(kind: type[Any], api: Api, find: FindResource) -> Servable:
    """Create an instance of one of the SDK's `…RPCService` classes.

    Its lookup of resources is replaced, because the SDK returns the first resource with the name
    regardless of its API.
    """

    def get_resource(_: object, name: str) -> object:
        return find(ResourceName.from_short(api, name))

    patched = type(f"Served{kind.__name__}", (kind,), {"get_resource": get_resource})
    return cast("Servable", patched(manager=None))


def _import_attribute(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)
