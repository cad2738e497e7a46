"""A servo that turns in time, and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from viam.components.servo import Servo

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import InvalidRequest
from cogwork.drivers.mover import Mover
from cogwork.drivers.servo.attributes import FakeServoAttributes
from cogwork.drivers.shapeless import Shapeless
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of


class FakeServo(Shapeless, Servo):
    """The newest command has the servo; an older move that it ends fails and says so."""

    def __init__(self, name: ResourceName, attributes: FakeServoAttributes, clock: Clock) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._attributes = attributes
        self._mover = Mover(f'servo "{name.name}"', (float(attributes.minimum),), clock)

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: FakeServoAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> FakeServo:
        del dependencies
        return cls(name, attributes, clock or SystemClock())

    async def move(self, angle: int, **_: Any) -> None:
        least, most = self._attributes.minimum, self._attributes.maximum
        if not least <= angle <= most:
            raise InvalidRequest(
                f"{self._mover.called} turns from {least} to {most} degrees, not to {angle}"
            )
        await self._mover.go("move", [(float(angle),)], (self._attributes.degrees_per_second,))

    async def get_position(self, **_: Any) -> int:
        """In whole degrees: the API has no others."""
        (angle,) = self._mover.joints
        return round(angle)

    async def stop(self, **_: Any) -> None:
        self._mover.halt("stop")

    async def close(self) -> None:
        self._mover.halt("close")

    async def is_moving(self) -> bool:
        return self._mover.is_moving

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        (angle,) = self._mover.joints
        return {"position_deg": angle, "is_moving": self._mover.is_moving}
