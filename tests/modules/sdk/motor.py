"""A module with a motor that depends on others, and that can be told to misbehave."""

# The SDK's own classes are not all typed.
# mypy: disable-error-code="no-untyped-call,misc"

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar

from viam.components.board import Board
from viam.components.motor import Motor
from viam.components.sensor import Sensor
from viam.logging import getLogger
from viam.module.module import Module
from viam.proto.app.robot import ComponentConfig
from viam.proto.common import ResourceName
from viam.resource.base import ResourceBase
from viam.resource.easy_resource import EasyResource
from viam.utils import struct_to_dict


def _log_at_every_level(logger: logging.Logger, words: str) -> None:
    logger.debug(words)
    logger.info(words)
    logger.warning(words)
    logger.error(words)
    logger.critical(words)


class TestMotor(Motor, EasyResource):
    """`needs` and `wants`: names it depends on, the second kind only if they are there.

    Its position is what the first of them says: a reading of a sensor, the level of a board's
    `pin`, the position of a motor plus one. Without any, it is how far it has turned.
    """

    MODEL: ClassVar[Any] = "acme:test:motor"

    dependencies: Mapping[ResourceName, ResourceBase]
    pin: str

    @classmethod
    def validate_config(cls, config: ComponentConfig) -> tuple[Sequence[str], Sequence[str]]:
        attributes: Mapping[str, Any] = struct_to_dict(config.attributes)
        if "broken" in attributes:
            raise ValueError(f'"broken" is {attributes["broken"]}; take it out')
        return attributes.get("needs", []), attributes.get("wants", [])

    @classmethod
    def new(
        cls, config: ComponentConfig, dependencies: Mapping[ResourceName, ResourceBase]
    ) -> TestMotor:
        attributes: Mapping[str, Any] = struct_to_dict(config.attributes)
        if "fails" in attributes:
            raise RuntimeError(str(attributes["fails"]))
        motor = cls(config.name)
        motor.dependencies = dependencies
        motor.pin = str(attributes.get("pin", "1"))
        return motor

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._turned = 0.0
        self._stopped = asyncio.Event()
        self._stopped.set()

    async def set_power(self, power: float, **_: Any) -> None:
        if power:
            self._stopped.clear()
        else:
            self._stopped.set()

    async def go_for(self, rpm: float, revolutions: float, **_: Any) -> None:
        """Takes as long as turning does; ends early when it is stopped."""
        per_second = rpm / 60 * (1 if revolutions >= 0 else -1)
        began, before = time.monotonic(), self._turned
        self._stopped.clear()
        try:
            await asyncio.wait_for(self._stopped.wait(), abs(revolutions / rpm * 60))
        except TimeoutError:
            self._turned = before + abs(revolutions) * (1 if per_second > 0 else -1)
        else:
            self._turned = before + per_second * (time.monotonic() - began)
        finally:
            self._stopped.set()

    async def go_to(self, rpm: float, position_revolutions: float, **_: Any) -> None:
        await self.go_for(abs(rpm), position_revolutions - self._turned)

    async def set_rpm(self, rpm: float, **_: Any) -> None:
        await self.set_power(rpm)

    async def reset_zero_position(self, offset: float, **_: Any) -> None:
        self._turned = -offset

    async def get_position(self, **_: Any) -> float:
        for each in self.dependencies.values():
            if isinstance(each, Sensor):
                return float(next(iter((await each.get_readings()).values())))  # type: ignore[arg-type]
            if isinstance(each, Board):
                return float(await (await each.gpio_pin_by_name(self.pin)).get())
            if isinstance(each, Motor):
                return await each.get_position() + 1
        return self._turned

    async def get_properties(self, **_: Any) -> Motor.Properties:
        return Motor.Properties(position_reporting=True)

    async def stop(self, **_: Any) -> None:
        self._stopped.set()

    async def is_powered(self, **_: Any) -> tuple[bool, float]:
        moving = await self.is_moving()
        return moving, float(moving)

    async def is_moving(self) -> bool:
        return not self._stopped.is_set()

    async def do_command(self, command: Mapping[str, Any], **_: Any) -> Mapping[str, Any]:
        """One key: which of these; its value: with what."""
        ((verb, value),) = command.items()
        commands: Mapping[str, Callable[[Any], Awaitable[Any]]] = {
            "about": self._about,
            "exit": self._exit,
            "hang": self._hang,
            "block": self._block,
            "raise": self._raise,
            "print": self._print,
            "print_error": self._print_error,
            "log": self._log,
            "log_as_library": self._log_as_library,
            "spawn": self._spawn,
        }
        return {verb: await commands[verb](value)}

    async def _about(self, _: Any) -> Mapping[str, Any]:
        return {
            "pid": os.getpid(),
            "arguments": sys.argv[1:],
            "directory": os.getcwd(),  # noqa: PTH109
            "environment": dict(os.environ),
            "dependencies": [each.name for each in self.dependencies],
        }

    async def _exit(self, code: float) -> None:
        os._exit(int(code))

    async def _hang(self, seconds: float) -> None:
        """The others of the module are served meanwhile."""
        await asyncio.sleep(seconds)

    async def _block(self, seconds: float) -> None:
        """Nobody is."""
        time.sleep(seconds)  # noqa: ASYNC251

    async def _raise(self, words: str) -> None:
        raise RuntimeError(words)

    async def _print(self, words: str) -> None:
        print(words)

    async def _print_error(self, words: str) -> None:
        print(words, file=sys.stderr)

    async def _log(self, words: str) -> None:
        _log_at_every_level(self.logger, words)

    async def _log_as_library(self, words: str) -> None:
        _log_at_every_level(getLogger("acme.library"), words)

    async def _spawn(self, how: str) -> int:
        """A child that outlives the module: `plain`, or `deaf` to SIGTERM, or in a `session`.

        Returns its number.
        """
        deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" * (how == "deaf")
        child = subprocess.Popen(  # noqa: ASYNC220
            [sys.executable, "-I", "-S", "-c", f"{deaf}import time; time.sleep(600)"],
            start_new_session=how == "session",
        )
        return child.pid


if __name__ == "__main__":
    asyncio.run(Module.run_from_registry())
