"""RobotService: the calls under way."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from google.protobuf.json_format import MessageToDict, SerializeToJsonError
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Struct
from viam.gen.robot.v1 import robot_pb2 as robot

from cogwork.resource.moments import timestamp
from cogwork.robot.operations import Cancelled, Operation, Operations
from cogwork.robot.sessions import ID as SESSION
from cogwork.wire.described import Answer
from cogwork.wire.handlers import Stream

_LARGEST_SHOWN = 4096
_LONGEST_ARGUMENT = 200


class OperationsService:
    def __init__(self, operations: Operations) -> None:
        self._operations = operations

    def answers(self) -> Mapping[str, Answer]:
        return {
            "GetOperations": self.get_operations,
            "CancelOperation": self.cancel_operation,
            "BlockForOperation": self.block_for_operation,
        }

    async def get_operations(self, *_: object) -> robot.GetOperationsResponse:
        operations = self._operations
        shown = [_operation(each, operations.started(each)) for each in operations.others()]
        return robot.GetOperationsResponse(operations=shown)

    async def cancel_operation(
        self, request: robot.CancelOperationRequest, _: Stream
    ) -> robot.CancelOperationResponse:
        """One that is over already is as good as cancelled."""
        for operation in self._operations.find(request.id):
            operation.end(Cancelled(f"operation {operation.id} was cancelled"))
        return robot.CancelOperationResponse()

    async def block_for_operation(
        self, request: robot.BlockForOperationRequest, _: Stream
    ) -> robot.BlockForOperationResponse:
        found = self._operations.find(request.id)
        if found:
            await asyncio.wait([operation.over for operation in found])
        return robot.BlockForOperationResponse()


def _operation(operation: Operation, started: float) -> robot.Operation:
    return robot.Operation(
        id=operation.id,
        method=operation.method.path,
        arguments=_arguments(operation.stream.request),
        started=timestamp(started),
        session_id=_session(operation),
    )


def _session(operation: Operation) -> str:
    given = operation.stream.metadata.get(SESSION)
    return given if isinstance(given, str) else ""


def _arguments(request: Any) -> Struct:
    arguments = Struct()
    if isinstance(request, Message):
        arguments.update(_shortened(_shown(request)))
    return arguments


def _shown(request: Message) -> dict[str, Any]:
    """Of a large request only how large it is: whoever asks must not hold up everybody else."""
    size = request.ByteSize()
    if size <= _LARGEST_SHOWN:
        try:
            return MessageToDict(request, preserving_proto_field_name=True)
        except (SerializeToJsonError, ValueError):
            pass  # A number that JSON does not have.
    return {"name": getattr(request, "name", ""), "…": f"{size} bytes"}


def _shortened(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _LONGEST_ARGUMENT:
        return f"{value[:_LONGEST_ARGUMENT]}… ({len(value)} characters)"
    if isinstance(value, dict):
        return {key: _shortened(member) for key, member in value.items()}
    if isinstance(value, list):
        rest = [f"… ({len(value)} in all)"] if len(value) > _LONGEST_ARGUMENT else []
        return [_shortened(member) for member in value[:_LONGEST_ARGUMENT]] + rest
    return value
