"""Registers the services that gRPC itself defines: health and reflection.

They are imported on their first call, so that a machine starts without grpclib's client and server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from google.protobuf.descriptor_pool import DescriptorPool

from cogwork.wire.handlers import HandlerTable, Method


def add_standard_services(
    table: HandlerTable, external: Callable[[], Mapping[str, DescriptorPool]] = dict
) -> None:
    """Add health, and both versions of reflection.

    `external` returns the services that are not in the table, with the descriptors that their
    modules provide.
    """
    table.add("grpc.health.v1.Health", lambda: _load_health(table))
    for version in ("v1", "v1alpha"):
        table.add(
            f"grpc.reflection.{version}.ServerReflection", lambda: _load_reflection(table, external)
        )


def _load_health(table: HandlerTable) -> Iterable[Method]:
    from cogwork.wire.health import health_methods

    return health_methods(table)


def _load_reflection(
    table: HandlerTable, external: Callable[[], Mapping[str, DescriptorPool]]
) -> Iterable[Method]:
    from cogwork.wire.reflection import reflection_methods

    return reflection_methods(table, external)
