"""A DC motor, on a motor driver that is wired to pins of a board."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from viam.components.encoder import Encoder
from viam.components.motor import Motor
from viam.proto.component.encoder import PositionType

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import CogworkError, Unsupported
from cogwork.drivers.gpio.bridge import Bridge
from cogwork.drivers.gpio.turning import lead
from cogwork.drivers.gpio.wire import answer
from cogwork.drivers.motor.attributes import GpioMotorAttributes
from cogwork.drivers.motor.orders import (
    check_go_to,
    check_offset,
    check_power,
    check_speed,
    read_go_for,
)
from cogwork.drivers.motor.travel import Look, Travel
from cogwork.drivers.shapeless import Shapeless
from cogwork.drivers.turns import Turn, Turns
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of, named

_LOOK = 0.01
"""Seconds between two looks at the encoder, at least."""
_BRAKING = 0.1
"""Seconds ahead of the end from which on it slows down."""
_SLOWEST = 0.1
"""The part of its speed that it keeps until it is there."""
_STUCK = 3.0
"""Seconds without a tick after which it counts as stuck, at least."""
_MISSING_TICKS = 3
"""Ticks that should have come by then."""
_ASTRAY = 0.25
"""Revolutions away from the end, after which it counts as going the wrong way."""
_FASTER = 2.0
"""How many times faster than it is said to be it may be."""


class Stuck(CogworkError):
    """A motor that has power, and does not get where it should."""

    status = "FAILED_PRECONDITION"


class GpioMotor(Shapeless, Motor):
    """The newest command has the motor; an older move that it ends fails and says so."""

    def __init__(
        self,
        name: ResourceName,
        attributes: GpioMotorAttributes,
        bridge: Bridge,
        encoder: Encoder | None,
        clock: Clock,
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._attributes = attributes
        self._bridge = bridge
        self._encoder = encoder
        self._clock = clock
        self._zero = 0.0
        self._direction = 1
        # A power takes until the end of a pulse: more of them would queue.
        self._look = max(_LOOK, 2 / attributes.pwm_freq if attributes.pwm_freq else 0.0)
        self._called = f'motor "{self.name}"'
        self._turns = Turns(self._called)
        self._pins = asyncio.Lock()
        lead(encoder, lambda: self._direction)

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: GpioMotorAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> GpioMotor:
        board = named(dependencies, attributes.board)
        encoder = named(dependencies, attributes.encoder) if attributes.encoder else None
        bridge = await Bridge.on(board, attributes.pins, attributes.pwm_freq)
        return cls(name, attributes, bridge, encoder, clock or SystemClock())

    async def set_power(self, power: float, **_: Any) -> None:
        check_power(self._called, power)
        await self._spin("set_power", power)

    async def set_rpm(self, rpm: float, **_: Any) -> None:
        most = self._most("set_rpm")
        check_speed(self._called, rpm, most)
        await self._spin("set_rpm", rpm / most)

    async def go_for(self, rpm: float, revolutions: float, **_: Any) -> None:
        turns = read_go_for(self._called, rpm, revolutions, self._most("go_for"))
        async with self._commanded("go_for") as turn:
            if self._encoder is None:
                await self._go_timed(turn, math.copysign(rpm, turns), abs(turns))
            else:
                travel = await self._set_out(turn)
                await self._go(turn, travel, travel.here + turns, abs(rpm))

    async def go_to(self, rpm: float, position_revolutions: float, **_: Any) -> None:
        self._check_encoder("go_to")
        check_go_to(self._called, rpm, position_revolutions, self._most("go_to"))
        async with self._commanded("go_to") as turn:
            travel = await self._set_out(turn)
            await self._go(turn, travel, position_revolutions + self._zero, abs(rpm))

    async def stop(self, **_: Any) -> None:
        await self._spin("stop", 0.0)

    async def close(self) -> None:
        await self._spin("close", 0.0)

    async def reset_zero_position(self, offset: float, **_: Any) -> None:
        self._check_encoder("reset_zero_position")
        check_offset(self._called, offset)
        self._zero = await self._turned() + offset

    async def get_position(self, **_: Any) -> float:
        self._check_encoder("get_position")
        return await self._position()

    async def get_properties(self, **_: Any) -> Motor.Properties:
        return Motor.Properties(position_reporting=self._encoder is not None)

    async def is_powered(self, **_: Any) -> tuple[bool, float]:
        power = self._bridge.power
        power = -power if self._attributes.dir_flip else power
        return power != 0, power

    async def is_moving(self) -> bool:
        return self._bridge.power != 0

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        powered, power = await self.is_powered()
        status = {"is_powered": powered, "is_moving": powered, "power": power}
        known = self._encoder is not None
        return {**status, "position": await self._position()} if known else status

    async def _spin(self, command: str, power: float) -> None:
        async with self._commanded(command) as turn:
            await self._drive(turn, power)

    @asynccontextmanager
    async def _commanded(self, command: str) -> AsyncIterator[Turn]:
        """The command has the motor from here on, whatever it must find out first."""
        turn = self._turns.take(command)
        try:
            yield turn
            turn.check()
        except BaseException:
            # At rest, it was told so already, on every pin.
            if not turn.is_over and self._bridge.told:
                await self._give_up(turn)
            raise

    async def _give_up(self, turn: Turn) -> None:
        """Whoever asked is gone, or something failed: nobody else is watching where it turns."""
        try:
            await self._drive(turn, 0.0)
        except Exception:
            self.logger.exception("it could not be stopped")

    async def _go_timed(self, turn: Turn, rpm: float, revolutions: float) -> None:
        """Its limits may make it slower or faster than it should be: how far it goes counts."""
        power = rpm / self._attributes.max_rpm
        await self._drive(turn, power)
        await turn.wait(self._clock, revolutions / self._speed(power) * 60)
        await self._drive(turn, 0.0)

    async def _set_out(self, turn: Turn) -> Travel:
        fastest = self._attributes.max_rpm / 60 * _FASTER
        return Travel(await self._seen(turn), fastest, 1 / self._attributes.ticks_per_rotation)

    async def _seen(self, turn: Turn) -> Look:
        asked = self._clock.monotonic()
        turned = await turn.outcome(self._turned())
        return Look(turned, asked, self._clock.monotonic())

    async def _go(self, turn: Turn, travel: Travel, end: float, rpm: float) -> None:
        """Until the encoder says that it is there."""
        start = seen = travel.here
        side = math.copysign(1.0, end - start)
        since = self._clock.monotonic()
        while (end - travel.here) * side > 0:
            power = _approach(abs(end - travel.here), rpm) * side / self._attributes.max_rpm
            await self._drive(turn, power)
            await turn.wait(self._clock, self._look)
            travel.add(await self._seen(turn))
            if (start - travel.here) * side > _ASTRAY:
                raise Stuck(self._astray(turn.command))
            if travel.here != seen:
                seen, since = travel.here, self._clock.monotonic()
            elif self._clock.monotonic() - since >= (patience := self._patience(power)):
                raise Stuck(self._stuck(turn.command, patience))
        await self._drive(turn, 0.0)

    def _patience(self, power: float) -> float:
        """Seconds that it gets for a tick."""
        tick = 60 / (self._speed(power) * self._attributes.ticks_per_rotation)
        return max(_STUCK, _MISSING_TICKS * tick)

    def _stuck(self, command: str, seconds: float) -> str:
        return (
            f"{self._called} did not finish {command}: its encoder saw nothing turn for "
            f'{seconds:g} s; look whether it is blocked, raise "min_power_pct", or check the '
            "encoder's wires"
        )

    def _astray(self, command: str) -> str:
        return (
            f"{self._called} did not finish {command}: its encoder counts the other way round; "
            'swap the encoder\'s pins, or change "dir_flip"'
        )

    async def _drive(self, turn: Turn, power: float) -> None:
        """One command at a time sets the pins, and none that was overtaken meanwhile."""
        async with self._pins:
            turn.check()
            self._direction = int(math.copysign(1, power)) if power else self._direction
            power = self._within_limits(power)
            await self._bridge.drive(-power if self._attributes.dir_flip else power)

    def _within_limits(self, power: float) -> float:
        if power == 0:
            return 0.0
        least, most = self._attributes.min_power_pct, self._attributes.max_power_pct
        return math.copysign(min(max(abs(power), least), most), power)

    def _speed(self, power: float) -> float:
        """Revolutions per minute, whichever way, that it makes of a power it is told."""
        return abs(self._within_limits(power)) * self._attributes.max_rpm

    async def _position(self) -> float:
        return await self._turned() - self._zero

    async def _turned(self) -> float:
        """Revolutions, as the encoder has them."""
        assert self._encoder is not None
        asking = self._encoder.get_position(PositionType.POSITION_TYPE_TICKS_COUNT)
        ticks, _ = await answer(f'encoder "{self._encoder.name}"', asking)
        return ticks / self._attributes.ticks_per_rotation

    def _most(self, command: str) -> float:
        """The speed that it turns at, at most."""
        if not self._attributes.max_rpm:
            raise Unsupported(
                f'{self._called} has no {command}, because its speed is not known: set "max_rpm"'
            )
        return self._attributes.max_rpm

    def _check_encoder(self, command: str) -> None:
        if self._encoder is None:
            raise Unsupported(
                f"{self._called} has no {command}, because nothing tells its position: "
                'give it an "encoder"'
            )


def _approach(revolutions: float, rpm: float) -> float:
    """How fast to turn with so much left to go."""
    braking = rpm / 60 * _BRAKING
    return rpm * min(1.0, max(revolutions / braking, _SLOWEST))
