"""A base on wheels, with motors on its left and on its right: it turns as they differ."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from viam.components.base import Base, Vector3
from viam.components.motor import Motor

from cogwork.drivers.base.attributes import WheeledBaseAttributes
from cogwork.drivers.base.drive import Leg
from cogwork.drivers.base.orders import read_power, read_spin, read_straight, read_velocity
from cogwork.drivers.shapeless import Shapeless
from cogwork.drivers.turns import Turn, Turns
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of, named

Order = Callable[[Motor, float], Coroutine[Any, Any, None]]
"""What one motor is told, given the number for its side."""
Sides = tuple[float, float]
"""A number for the left side, and one for the right."""

_STOPPED_WITHIN = 5.0


class WheeledBase(Shapeless, Base):
    """The newest command has the base, and whatever ends one ends it for all motors."""

    def __init__(
        self,
        name: ResourceName,
        attributes: WheeledBaseAttributes,
        left: Sequence[Motor],
        right: Sequence[Motor],
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._attributes = attributes
        self._left = left
        self._right = right
        self._called = f'base "{self.name}"'
        self._turns = Turns(self._called)
        self._one_at_a_time = asyncio.Lock()
        self._at_rest = True

    @classmethod
    async def new(
        cls, name: ResourceName, attributes: WheeledBaseAttributes, dependencies: Dependencies
    ) -> WheeledBase:
        left = [named(dependencies, each) for each in attributes.left]
        right = [named(dependencies, each) for each in attributes.right]
        return cls(name, attributes, left, right)

    async def move_straight(self, distance: int, velocity: float, **_: Any) -> None:
        await self._go("move_straight", read_straight(self._called, distance, velocity))

    async def spin(self, angle: float, velocity: float, **_: Any) -> None:
        await self._go("spin", read_spin(self._called, angle, velocity))

    async def set_power(self, linear: Vector3, angular: Vector3, **_: Any) -> None:
        power = read_power(self._called, linear, angular)
        left, right = power.linear - power.angular, power.linear + power.angular
        # Beyond all there is both give in, so that the arc stays the same.
        most = max(1.0, abs(left), abs(right))
        await self._command("set_power", (left / most, right / most), _set_power)

    async def set_velocity(self, linear: Vector3, angular: Vector3, **_: Any) -> None:
        speed = read_velocity(self._called, linear, angular)
        left, right = self._wheels(speed.linear, speed.angular)
        await self._command("set_velocity", (left * 60, right * 60), _turn_at)

    async def stop(self, **_: Any) -> None:
        """At once, whatever an older command may still be ending."""
        await self._halt(self._turns.take("stop"))

    async def close(self) -> None:
        turn = self._turns.take("close")
        if not self._at_rest:
            await self._halt(turn)

    async def is_moving(self) -> bool:
        return any([await motor.is_moving() for motor in self._motors])

    @property
    def turning_width_mm(self) -> float:
        return self._attributes.width_mm * self._attributes.spin_slip_factor

    async def get_properties(self, **_: Any) -> Base.Properties:
        return Base.Properties(
            width_meters=self._attributes.width_mm / 1000,
            turning_radius_meters=0.0,
            wheel_circumference_meters=self._attributes.wheel_circumference_mm / 1000,
        )

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        powers = {motor.name: (await motor.is_powered())[1] for motor in self._motors}
        return {"is_moving": await self.is_moving(), "power": powers}

    async def _go(self, command: str, leg: Leg | None) -> None:
        if leg is None:
            await self._command(command, (0.0, 0.0), _turn_at)
            return
        # Straight on or on the spot, the wheels of both sides turn alike but for the sign.
        rpm = abs(self._wheels(leg.speed.linear, leg.speed.angular)[0]) * 60

        async def go_for(motor: Motor, revolutions: float) -> None:
            await motor.go_for(rpm, revolutions)

        await self._command(command, self._wheels(leg.distance, leg.turn), go_for)

    async def _command(self, command: str, sides: Sides, order: Order) -> None:
        turn = self._turns.take(command)
        try:
            async with self._one_at_a_time:
                turn.check()
                self._at_rest = False
                await turn.outcome(self._at_once(turn, sides, order))
        except BaseException:
            if not turn.is_over:
                await self._give_up(turn)
            raise

    async def _at_once(self, turn: Turn, sides: Sides, order: Order) -> None:
        """All motors; when one of them cannot, the others do not either."""
        try:
            async with asyncio.TaskGroup() as group:
                for motors, number in zip((self._left, self._right), sides, strict=True):
                    for motor in motors:
                        group.create_task(_tell(turn, order, motor, number))
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None

    async def _halt(self, turn: Turn) -> None:
        """All motors, whatever is wrong with some of them."""
        stops = (motor.stop() for motor in self._motors)
        for result in await asyncio.gather(*stops, return_exceptions=True):
            if isinstance(result, BaseException):
                raise result
        # Whoever took over meanwhile may have it move again.
        if not turn.is_over:
            self._at_rest = True

    async def _give_up(self, turn: Turn) -> None:
        """Half a command leads anywhere, and nobody else is watching."""
        try:
            async with asyncio.timeout(_STOPPED_WITHIN):
                await self._halt(turn)
        except Exception:
            self.logger.exception("it could not be stopped")

    def _wheels(self, linear: float, angular: float) -> Sides:
        """How far the wheels turn for so many millimetres ahead and degrees to the left."""
        apart = math.radians(angular) * self.turning_width_mm / 2
        around = self._attributes.wheel_circumference_mm
        return (linear - apart) / around, (linear + apart) / around

    @property
    def _motors(self) -> tuple[Motor, ...]:
        return (*self._left, *self._right)


async def _tell(turn: Turn, order: Order, motor: Motor, number: float) -> None:
    # Whoever took over may have told the motor something else by the time this runs.
    turn.check()
    await order(motor, number)


async def _set_power(motor: Motor, power: float) -> None:
    await motor.set_power(power)


async def _turn_at(motor: Motor, rpm: float) -> None:
    if rpm:
        await motor.set_rpm(rpm)
    else:
        await motor.stop()
