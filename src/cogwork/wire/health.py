"""gRPC's health service: reports whether this process serves, not whether a resource works."""

from __future__ import annotations

import asyncio

from grpclib import GRPCError
from grpclib.const import Status
from grpclib.health.v1.health_grpc import HealthBase
from grpclib.health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpclib.server import Stream

from cogwork.wire.handlers import HandlerTable, Method, methods_from_service


def health_methods(table: HandlerTable) -> list[Method]:
    return methods_from_service(_Health(table))


class _Health(HealthBase):
    def __init__(self, table: HandlerTable) -> None:
        self._table = table

    async def Check(self, stream: Stream[HealthCheckRequest, HealthCheckResponse]) -> None:
        request = await stream.recv_message()
        assert request is not None
        if not self._is_served(request.service):
            raise GRPCError(Status.NOT_FOUND, f'unknown service "{request.service}"')
        await stream.send_message(HealthCheckResponse(status=HealthCheckResponse.SERVING))

    async def Watch(self, stream: Stream[HealthCheckRequest, HealthCheckResponse]) -> None:
        """Send the status once and stay open: it does not change while the process runs."""
        request = await stream.recv_message()
        assert request is not None
        served = self._is_served(request.service)
        status = HealthCheckResponse.SERVING if served else HealthCheckResponse.SERVICE_UNKNOWN
        await stream.send_message(HealthCheckResponse(status=status))
        await asyncio.get_running_loop().create_future()

    def _is_served(self, service: str) -> bool:
        return not service or service in self._table.services()
