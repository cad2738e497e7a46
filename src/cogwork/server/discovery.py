"""Lets clients on the local network find this machine by its name."""

from __future__ import annotations

import asyncio
import ipaddress
import secrets
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cogwork.config.schema.machine import MachineConfig
from cogwork.core.clock import Clock

if TYPE_CHECKING:
    from cogwork.discovery.announcement import Announcement
    from cogwork.discovery.responder import Responder


class Discovery:
    def __init__(self, clock: Clock, *, webrtc: bool) -> None:
        """`webrtc`: whether clients can connect over WebRTC."""
        self._clock = clock
        self._transports = ("grpc", "webrtc") if webrtc else ("grpc",)
        self._process_id = secrets.token_hex(8)
        self._announced: tuple[Announcement, bool] | None = None
        self._responder: Responder | None = None

    def apply(self, config: MachineConfig, addresses: Sequence[tuple[str, int]]) -> None:
        """Announce the names in a configuration, and the addresses that the server listens on."""
        from cogwork.discovery.announcement import Announcement
        from cogwork.discovery.responder import Responder

        if not addresses:
            return
        host = socket.gethostname().partition(".")[0] or "cogwork"
        announcement = Announcement(
            _names_of(config) or (host,),
            addresses[0][1],
            host,
            self._transports,
            self._process_id,
        )
        loopback_only = all(ipaddress.ip_address(each).is_loopback for each, _ in addresses)
        if self._announced == (announcement, loopback_only):
            return
        self._announced = (announcement, loopback_only)
        if self._responder is None:
            self._responder = Responder(self._clock.monotonic)
            self._responder.start()
        self._responder.announce(announcement, loopback_only=loopback_only)

    async def aclose(self) -> None:
        if self._responder is not None:
            await asyncio.to_thread(self._responder.close)


def _names_of(config: MachineConfig) -> tuple[str, ...]:
    cloud = config.cloud
    names = (config.network.fqdn, *((cloud.fqdn, cloud.local_fqdn) if cloud is not None else ()))
    return tuple(dict.fromkeys(name for name in names if name))
