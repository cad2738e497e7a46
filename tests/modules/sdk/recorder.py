"""A module with a motor that writes down when it moves and when it rests.

`RECORD` names the file; times are those of the system's monotonic clock.
"""

# The SDK's own classes are not all typed.
# mypy: disable-error-code="no-untyped-call,misc"

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any, ClassVar

from viam.components.motor import Motor
from viam.module.module import Module
from viam.resource.easy_resource import EasyResource


class Recorder(Motor, EasyResource):
    MODEL: ClassVar[Any] = "acme:test:recorder"

    async def set_power(self, power: float, **_: Any) -> None:
        record(f"{time.monotonic()} {power}\n")

    async def stop(self, **_: Any) -> None:
        await self.set_power(0.0)

    async def set_rpm(self, rpm: float, **_: Any) -> None: ...

    async def go_for(self, rpm: float, revolutions: float, **_: Any) -> None: ...

    async def go_to(self, rpm: float, position_revolutions: float, **_: Any) -> None: ...

    async def reset_zero_position(self, offset: float, **_: Any) -> None: ...

    async def get_position(self, **_: Any) -> float:
        return 0.0

    async def get_properties(self, **_: Any) -> Motor.Properties:
        return Motor.Properties(position_reporting=False)

    async def is_powered(self, **_: Any) -> tuple[bool, float]:
        return False, 0.0

    async def is_moving(self) -> bool:
        return False


def record(line: str) -> None:
    with Path(os.environ["RECORD"]).open("a") as file:
        file.write(line)


if __name__ == "__main__":
    asyncio.run(Module.run_from_registry())
