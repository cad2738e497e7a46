"""Registers the services that gRPC itself defines: health and reflection.

Their modules are imported at the first call, so that a machine starts without loading grpclib's
client and server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Protocol

from google.protobuf.descriptor_pool import DescriptorPool

from cogwork.wire.table.handlers import HandlerTable, Method


class ServingStatus(Protocol):
    """The state that gRPC's health service reports for a process."""

    @property
    def is_serving(self) -> bool: ...

    def change(self) -> asyncio.Future[None]:
        """Return a future that is done at the next change of the state."""


FindDescriptors = Callable[[str], Awaitable[DescriptorPool | None]]
"""Returns the descriptors of a resource's API from the provider of the resource; None if they are
the same as in this process."""


async def _find_none(_: str) -> None:
    return None


def add_standard_services(
    table: HandlerTable,
    external: Callable[[], Mapping[str, DescriptorPool]] = dict,
    status: ServingStatus | None = None,
    find_descriptors: FindDescriptors = _find_none,
) -> None:
    """Add the health service, and both versions of the reflection service.

    `external` returns the services that are not in the table, with the descriptors from their
    modules. Without a `status`, the process counts as serving while it runs. `find_descriptors`
    returns the descriptors of a resource's provider if they differ from the local ones.
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
