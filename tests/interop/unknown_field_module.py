"""A module whose replies have the fields of the request that its SDK does not know."""

# The SDK's own classes are not all typed.
# mypy: disable-error-code="no-untyped-call,misc"

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from viam.components.generic import Generic
from viam.components.generic.service import GenericRPCService
from viam.module.module import Module
from viam.proto.common import DoCommandResponse
from viam.resource.easy_resource import EasyResource


class Echo(Generic, EasyResource):
    MODEL: ClassVar[Any] = "acme:test:unknown-fields"


async def do_command(_: Any, stream: Any) -> None:
    request = await stream.recv_message()
    response = DoCommandResponse(result=request.command)
    for field, _value in request.ListFields():
        request.ClearField(field.name)
    response.MergeFromString(request.SerializeToString())
    await stream.send_message(response)


if __name__ == "__main__":
    GenericRPCService.DoCommand = do_command  # type: ignore[method-assign,assignment]
    asyncio.run(Module.run_from_registry())
