"""The services that gRPC itself defines, as entries of the table.

Imported when they are first called: a machine starts without grpclib's client and server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from google.protobuf.descriptor_pool import DescriptorPool

from cogwork.wire.handlers import HandlerTable, Method


def add_standard_services(
    table: HandlerTable, brought: Callable[[], Mapping[str, DescriptorPool]] = dict
) -> None:
    """Health, and reflection in both versions. `brought`: services that are not in the table, and
    are described by others."""
    table.add("grpc.health.v1.Health", lambda: _health(table))
    for version in ("v1", "v1alpha"):
        table.add(
            f"grpc.reflection.{version}.ServerReflection", lambda: _reflection(table, brought)
        )


def _health(table: HandlerTable) -> Iterable[Method]:
    from cogwork.wire.health import health_methods

    return health_methods(table)


def _reflection(
    table: HandlerTable, brought: Callable[[], Mapping[str, DescriptorPool]]
) -> Iterable[Method]:
    from cogwork.wire.reflection import reflection_methods

    return reflection_methods(table, brought)
