"""A discovery service for devices that are connected to this computer."""

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

from cogwork.core.error_text import error_text
from cogwork.core.workers import Workers
from cogwork.drivers.camera.v4l2 import Ioctl
from cogwork.drivers.discovery.attributes import Discovered, SystemDiscoveryAttributes
from cogwork.drivers.discovery.config_proto import to_component_config
from cogwork.drivers.discovery.devices import (
    DeviceSearch,
    find_cameras,
    find_gamepads,
    find_gpio_pins,
    find_serial_ports,
    make_names_unique,
)
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.model import logger_of


class SystemDiscovery(Discovery):
    def __init__(
        self,
        name: ResourceName,
        attributes: SystemDiscoveryAttributes,
        searches: Mapping[str, DeviceSearch],
    ) -> None:
        """`searches` maps each kind of device to the function that finds such devices."""
        super().__init__(name.name, logger=logger_of(name))
        self._timeout = attributes.patience
        self._searches = searches
        # Use one thread for each kind, so that a hanging device blocks only the search for its
        # kind.
        self._workers = {
            kind: Workers(f"discovery-{name.name}-{kind}", waiting=8) for kind in searches
        }
        self._found_counts: dict[str, int] = {}
        self._errors: dict[str, str] = {}

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
        searches: dict[str, DeviceSearch] = {
            "cameras": partial(find_cameras, root, ioctl),
            "gamepads": partial(find_gamepads, root),
            "GPIO pins": partial(find_gpio_pins, root),
            "serial ports": partial(find_serial_ports, root),
        }
        return cls(name, attributes, searches)

    async def discover_resources(self, **_: Any) -> list[ComponentConfig]:
        found = await asyncio.gather(
            *(self._search(kind, search) for kind, search in self._searches.items())
        )
        return [
            to_component_config(each)
            for each in make_names_unique(itertools.chain.from_iterable(found))
        ]

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        """For each kind of device, return how many the last search found, or why the search
        failed."""
        return {"found": dict(self._found_counts), "trouble": dict(self._errors)}

    async def close(self) -> None:
        for workers in self._workers.values():
            workers.close()

    async def _search(self, kind: str, search: DeviceSearch) -> list[Discovered]:
        """Find the devices of one kind. On failure, log it and return an empty list, so that other
        kinds are still reported."""
        try:
            async with asyncio.timeout(self._timeout):
                found = await self._workers[kind].run(search)
        except TimeoutError:
            self._report_failure(kind, f"it took longer than {self._timeout:g} s")
            return []
        except Exception as error:
            self._report_failure(kind, error_text(error))
            return []
        self._errors.pop(kind, None)
        self._found_counts[kind] = len(found)
        return found

    def _report_failure(self, kind: str, reason: str) -> None:
        self._found_counts.pop(kind, None)
        self._errors[kind] = reason
        self.logger.warning("the search for %s failed: %s", kind, reason)
