"""The SDK's service classes, made to ask our machine for their resources."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from cogwork.graph.name import Api, ResourceName
from cogwork.wire.handlers import Servable

Find = Callable[[ResourceName], object]
"""The ready resource, or an error that says why there is none."""


def sdk_service(kind: type[Any], api: Api, find: Find) -> Servable:
    """An instance of one of the SDK's `…RPCService` classes."""

    def get_resource(_: object, name: str) -> object:
        remote, _colon, short = name.rpartition(":")
        return find(ResourceName(api, short, remote))

    tamed = type(f"Served{kind.__name__}", (kind,), {"get_resource": get_resource})
    return cast("Servable", tamed(manager=None))
