"""A discovery service for what is plugged into the computer that the server runs on."""

from __future__ import annotations

import asyncio
import fcntl
import itertools
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from viam.proto.app.robot import ComponentConfig
from viam.services.discovery import Discovery

from cogwork.core.workers import Workers
from cogwork.drivers.camera.v4l2 import Ioctl
from cogwork.drivers.discovery.attributes import Discovered, SystemDiscoveryAttributes
from cogwork.drivers.discovery.configs import config_of
from cogwork.drivers.discovery.devices import Look, cameras, distinct, gamepads, serial_ports
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of


class SystemDiscovery(Discovery):
    def __init__(
        self, name: ResourceName, attributes: SystemDiscoveryAttributes, looks: Mapping[str, Look]
    ) -> None:
        """`looks`: how each kind of device is found."""
        super().__init__(name.name, logger=logger_of(name))
        self._patience = attributes.patience
        self._looks = looks
        # One thread for each kind: a device that hangs keeps nobody from finding the others.
        self._threads = {
            kind: Workers(f"discovery-{name.name}-{kind}", waiting=8) for kind in looks
        }
        self._found: dict[str, int] = {}
        self._trouble: dict[str, str] = {}

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: SystemDiscoveryAttributes,
        dependencies: Dependencies,
        root: Path = Path("/dev"),
        ioctl: Ioctl = fcntl.ioctl,
    ) -> SystemDiscovery:
        del dependencies
        looks: dict[str, Look] = {
            "cameras": partial(cameras, root, ioctl),
            "gamepads": partial(gamepads, root),
            "serial ports": partial(serial_ports, root),
        }
        return cls(name, attributes, looks)

    async def discover_resources(self, **_: Any) -> list[ComponentConfig]:
        found = await asyncio.gather(
            *(self._look(kind, look) for kind, look in self._looks.items())
        )
        return [config_of(each) for each in distinct(itertools.chain.from_iterable(found))]

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        """What the last search came to."""
        return {"found": dict(self._found), "trouble": dict(self._trouble)}

    async def close(self) -> None:
        for thread in self._threads.values():
            thread.close()

    async def _look(self, kind: str, look: Look) -> list[Discovered]:
        """Nothing, where that fails: the other kinds are told all the same."""
        try:
            async with asyncio.timeout(self._patience):
                found = await self._threads[kind].run(look)
        except TimeoutError:
            self._leave_out(kind, f"they were not found within {self._patience:g} s")
            return []
        except Exception as error:
            self._leave_out(kind, str(error) or type(error).__name__)
            return []
        self._trouble.pop(kind, None)
        self._found[kind] = len(found)
        return found

    def _leave_out(self, kind: str, why: str) -> None:
        self._found.pop(kind, None)
        self._trouble[kind] = why
        self.logger.warning("%s are left out: %s", kind, why)
