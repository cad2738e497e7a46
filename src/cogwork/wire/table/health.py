"""gRPC's health service: reports whether this process serves, not whether a resource works."""

from __future__ import annotations

import asyncio

from grpclib import GRPCError
from grpclib.const import Status
from grpclib.health.v1.health_grpc import HealthBase
from grpclib.health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpclib.server import Stream

from cogwork.wire.table.grpc_services import ServingStatus
from cogwork.wire.table.handlers import HandlerTable, Method, methods_from_service


def health_methods(table: HandlerTable, status: ServingStatus | None) -> list[Method]:
    return methods_from_service(_Health(table, status))


class _Health(HealthBase):
    def __init__(self, table: HandlerTable, status: ServingStatus | None) -> None:
        self._table = table
        self._status = status

    async def Check(self, stream: Stream[HealthCheckRequest, HealthCheckResponse]) -> None:
        request = await stream.recv_message()
        assert request is not None
        if not self._is_known(request.service):
            raise GRPCError(Status.NOT_FOUND, f'unknown service "{request.service}"')
        await stream.send_message(HealthCheckResponse(status=self._find_status(request.service)))

    async def Watch(self, stream: Stream[HealthCheckRequest, HealthCheckResponse]) -> None:
        """Send the status, and send it again after each change."""
        request = await stream.recv_message()
        assert request is not None
        last = None
        while True:
            if (status := self._find_status(request.service)) != last:
                await stream.send_message(HealthCheckResponse(status=status))
                last = status
            await asyncio.wait({self._find_change()})  # does not cancel the shared future

    def _find_status(self, service: str) -> HealthCheckResponse.ServingStatus.ValueType:
        if not self._is_known(service):
            return HealthCheckResponse.SERVICE_UNKNOWN
        is_serving = self._status is None or self._status.is_serving
        return HealthCheckResponse.SERVING if is_serving else HealthCheckResponse.NOT_SERVING

    def _find_change(self) -> asyncio.Future[None]:
        if self._status is not None:
            return self._status.change()
        return asyncio.get_running_loop().create_future()

    def _is_known(self, service: str) -> bool:
        return not service or service in self._table.services()
