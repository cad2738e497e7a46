"""A module with a resource of an API of its own."""

# The SDK's own classes are not all typed.
# mypy: disable-error-code="no-untyped-call,misc"

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any, ClassVar

sys.path.insert(0, str(Path(__file__).parents[4]))

from tests.modules.sdk.echo.api import Echo, register
from tests.modules.sdk.echo.echo_pb2 import EchoReply, EchoRequest
from viam.module.module import Module
from viam.resource.easy_resource import EasyResource


class TestEcho(Echo, EasyResource):
    MODEL: ClassVar[Any] = "acme:test:echo"

    def reply(self, request: EchoRequest) -> EchoReply:
        return EchoReply(text=request.text, data=request.data)


if __name__ == "__main__":
    register()
    asyncio.run(Module.run_from_registry())
