"""Registers the services that gRPC itself defines: health and reflection.

They are imported on their first call, so that a machine starts without grpclib's client and server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Protocol

from google.protobuf.descriptor_pool import DescriptorPool

from cogwork.wire.table.handlers import HandlerTable, Method


class ServingStatus(Protocol):
    """Whether a process does its work, as gRPC's health service reports it."""

    @property
    def is_serving(self) -> bool: ...

    def change(self) -> asyncio.Future[None]:
        """Return a future that is done when something changes."""


FindDescriptors = Callable[[str], Awaitable[DescriptorPool | None]]
"""Returns the descriptors of the API of a resource, as its provider has them."""


async def _find_none(_: str) -> None:
    return None


def add_standard_services(
    table: HandlerTable,
    external: Callable[[], Mapping[str, DescriptorPool]] = dict,
    status: ServingStatus | None = None,
    find_descriptors: FindDescriptors = _find_none,
) -> None:
    """Add health, and both versions of reflection.

    `external` returns the services that are not in the table, with the descriptors that their
    modules provide. Without a `status`, the process serves as long as it runs. `find_descriptors`
    returns those of the provider of a resource, if they are others than ours.
    """
    table.add("grpc.health.v1.Health", lambda: _load_health(table, status))
    for version in ("v1", "v1alpha"):
        table.add(
            f"grpc.reflection.{version}.ServerReflection",
            lambda: _load_reflection(table, external, find_descriptors),
        )


def _load_health(table: HandlerTable, status: ServingStatus | None) -> Iterable[Method]:
    from cogwork.wire.table.health import health_methods

    return health_methods(table, status)


def _load_reflection(
    table: HandlerTable,
    external: Callable[[], Mapping[str, DescriptorPool]],
    find_descriptors: FindDescriptors,
) -> Iterable[Method]:
    from cogwork.wire.table.reflection import reflection_methods

    return reflection_methods(table, external, find_descriptors)
