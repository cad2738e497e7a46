"""A fake servo that simulates motion over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from viam.components.servo import Servo

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import InvalidRequest
from cogwork.drivers.mover import Mover
from cogwork.drivers.no_geometry import NoGeometry
from cogwork.drivers.servo.attributes import FakeServoAttributes
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of


class FakeServo(NoGeometry, Servo):
    """A fake servo. A newer command preempts a running move, which then fails with Interrupted."""

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
        minimum, maximum = self._attributes.minimum, self._attributes.maximum
        if not minimum <= angle <= maximum:
            raise InvalidRequest(
                f"{self._mover.display_name} turns from {minimum} to {maximum} degrees, "
                f"not to {angle}"
            )
        await self._mover.move_through(
            "move", [(float(angle),)], (self._attributes.degrees_per_second,)
        )

    async def get_position(self, **_: Any) -> int:
        """Return whole degrees, the only unit of the API."""
        (angle,) = self._mover.joints
        return round(angle)

    async def stop(self, **_: Any) -> None:
        self._mover.halt("stop")

    async def close(self) -> None:
        self._mover.halt("close")

    def emergency_stop(self) -> None:
        self._mover.emergency_stop()

    async def is_moving(self) -> bool:
        return self._mover.is_moving

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        (angle,) = self._mover.joints
        return {"position_deg": angle, "is_moving": self._mover.is_moving}
