"""The SDK's service of an API, with some of its methods replaced by ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from google.protobuf.descriptor import ServiceDescriptor

from cogwork.graph.name import Api
from cogwork.resource.answers import Find
from cogwork.resource.services import ServedApi, served_methods
from cogwork.wire.handlers import Handle, Method


def mended(
    api: Api, find: Find, service: ServiceDescriptor, sdk_class: str, ours: Mapping[str, Handle]
) -> Iterable[Method]:
    """`ours`: by the name of the method."""
    for method in served_methods(ServedApi(api, service.full_name, sdk_class), find):
        handle = ours.get(method.path.rpartition("/")[2])
        yield replace(method, handle=handle) if handle is not None else method
