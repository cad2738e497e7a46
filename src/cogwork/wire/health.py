"""gRPC's own health service: whether this process serves, not whether a resource works."""

from __future__ import annotations

import asyncio

from grpclib import GRPCError
from grpclib.const import Status
from grpclib.health.v1.health_grpc import HealthBase
from grpclib.health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpclib.server import Stream

from cogwork.wire.handlers import HandlerTable, Method, methods_of


def health_methods(table: HandlerTable) -> list[Method]:
    return methods_of(_Health(table))


class _Health(HealthBase):
    def __init__(self, table: HandlerTable) -> None:
        self._table = table

    async def Check(self, stream: Stream[HealthCheckRequest, HealthCheckResponse]) -> None:
        request = await stream.recv_message()
        assert request is not None
        if not self._is_served(request.service):
            raise GRPCError(Status.NOT_FOUND, f'"{request.service}" is no service of this machine')
        await stream.send_message(HealthCheckResponse(status=HealthCheckResponse.SERVING))

    async def Watch(self, stream: Stream[HealthCheckRequest, HealthCheckResponse]) -> None:
        """What is served stays served as long as the process lives, and so does this call."""
        request = await stream.recv_message()
        assert request is not None
        served = self._is_served(request.service)
        status = HealthCheckResponse.SERVING if served else HealthCheckResponse.SERVICE_UNKNOWN
        await stream.send_message(HealthCheckResponse(status=status))
        await asyncio.get_running_loop().create_future()

    def _is_served(self, service: str) -> bool:
        return not service or service in self._table.services()
