"""The methods of RobotService that deal with operations."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from google.protobuf.json_format import MessageToDict, SerializeToJsonError
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Struct
from viam.gen.robot.v1 import robot_pb2 as robot

from cogwork.resource.messages.timestamps import to_timestamp
from cogwork.robot.middleware.operations import Cancelled, Operation, Operations
from cogwork.robot.motion.session_manager import session_id_of
from cogwork.wire.table.descriptor_service import UnaryHandler
from cogwork.wire.table.handlers import Stream

_MAX_REQUEST_SHOWN = 4096
_MAX_ARGUMENT_LENGTH = 200


class OperationsService:
    def __init__(self, operations: Operations) -> None:
        self._operations = operations

    def unary_handlers(self) -> Mapping[str, UnaryHandler]:
        return {
            "GetOperations": self.get_operations,
            "CancelOperation": self.cancel_operation,
            "BlockForOperation": self.block_for_operation,
        }

    async def get_operations(
        self, _: robot.GetOperationsRequest, stream: Stream
    ) -> robot.GetOperationsResponse:
        operations = self._operations
        shown = [
            _to_operation_proto(each, operations.start_time(each), stream)
            for each in operations.others()
        ]
        return robot.GetOperationsResponse(operations=shown)

    async def cancel_operation(
        self, request: robot.CancelOperationRequest, _: Stream
    ) -> robot.CancelOperationResponse:
        """Cancel an operation. Do nothing if it has already ended."""
        for operation in self._operations.find(request.id):
            operation.end(Cancelled(f"operation {operation.id} was cancelled"))
        return robot.CancelOperationResponse()

    async def block_for_operation(
        self, request: robot.BlockForOperationRequest, _: Stream
    ) -> robot.BlockForOperationResponse:
        found = self._operations.find(request.id)
        if found:
            await asyncio.wait([operation.finished for operation in found])
        return robot.BlockForOperationResponse()


def _to_operation_proto(operation: Operation, started: float, caller: Stream) -> robot.Operation:
    return robot.Operation(
        id=operation.id,
        method=operation.method.path,
        arguments=_to_arguments_struct(operation.stream.request),
        started=to_timestamp(started),
        session_id=_visible_session_id(operation.stream, caller),
    )


def _visible_session_id(stream: Stream, caller: Stream) -> str:
    """Return the session id only to its own client, because the id is a secret."""
    session = session_id_of(stream)
    if session is None:
        return ""
    return session if session == session_id_of(caller) or stream.peer == caller.peer else ""


def _to_arguments_struct(request: Any) -> Struct:
    arguments = Struct()
    if isinstance(request, Message):
        arguments.update(_shorten(_request_to_dict(request)))
    return arguments


def _request_to_dict(request: Message) -> dict[str, Any]:
    """Return the request, or only its size if it is large: the conversion would block the event
    loop."""
    size = request.ByteSize()
    if size <= _MAX_REQUEST_SHOWN:
        try:
            return MessageToDict(request, preserving_proto_field_name=True)
        except (SerializeToJsonError, ValueError):
            pass  # the request contains a number that JSON cannot represent
    return {"name": getattr(request, "name", ""), "…": f"{size} bytes"}


def _shorten(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _MAX_ARGUMENT_LENGTH:
        return f"{value[:_MAX_ARGUMENT_LENGTH]}… ({len(value)} characters)"
    if isinstance(value, dict):
        return {key: _shorten(member) for key, member in value.items()}
    if isinstance(value, list):
        rest = [f"… ({len(value)} in all)"] if len(value) > _MAX_ARGUMENT_LENGTH else []
        return [_shorten(member) for member in value[:_MAX_ARGUMENT_LENGTH]] + rest
    return value
