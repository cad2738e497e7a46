"""Answers questions for this machine on the local network, with multicast DNS.

Clients ask several times within a second and give up soon, so every question is answered at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from typing import Any

from cogwork.core.clock import Clock
from cogwork.discovery.announcement import Announcement, goodbye
from cogwork.discovery.dns_message import InvalidMessage, decode, encode_response
from cogwork.discovery.interfaces import (
    PORT,
    Endpoint,
    Interface,
    list_interfaces,
    open_endpoints,
)

_CHECK_INTERVAL = 5.0
"""Seconds between two checks for interfaces that came or went."""
_MAX_ANSWERS = 50
"""Answers per second on an interface. Others on the network must not use it to amplify traffic."""
_MAX_PACKET = 9000

_log = logging.getLogger("rdk.networking")


class Responder:
    def __init__(self, announcement: Announcement, clock: Clock, *, loopback_only: bool) -> None:
        """`loopback_only`: the machine can be reached on this computer only."""
        self._announcement = announcement
        self._clock = clock
        self._loopback_only = loopback_only
        self._open: dict[Interface, list[_Link]] = {}
        self._failed: set[str] = set()
        """Interfaces whose failure was reported."""

    async def run(self) -> None:
        """Answer until cancelled, and take leave then."""
        try:
            while True:
                interfaces = await asyncio.to_thread(list_interfaces)
                self._follow({each for each in interfaces if self._is_wanted(each)})
                await self._clock.sleep(_CHECK_INTERVAL)
        finally:
            self._follow(set())

    def _is_wanted(self, interface: Interface) -> bool:
        return interface.is_loopback or not self._loopback_only

    def _follow(self, wanted: set[Interface]) -> None:
        for interface in self._open.keys() - wanted:
            for link in self._open.pop(interface):
                link.close()
        for interface in wanted - self._open.keys():
            try:
                endpoints = open_endpoints(interface)
            except OSError as error:
                self._report(interface, error)
                continue
            self._failed.discard(interface.name)
            self._open[interface] = [
                _Link(endpoint, interface.addresses, self._announcement, self._clock)
                for endpoint in endpoints
            ]

    def _report(self, interface: Interface, error: OSError) -> None:
        if interface.name not in self._failed:
            self._failed.add(interface.name)
            _log.warning(
                "clients cannot find this machine by name on %s: %s",
                *(interface.name, error.strerror),
            )


class _Link:
    """One socket, and the addresses that are true on its network."""

    def __init__(
        self,
        endpoint: Endpoint,
        addresses: tuple[str, ...],
        announcement: Announcement,
        clock: Clock,
    ) -> None:
        self._endpoint = endpoint
        self._addresses = addresses
        self._announcement = announcement
        self._clock = clock
        self._second = 0
        self._answers = 0
        loop = asyncio.get_running_loop()
        loop.add_reader(endpoint.socket.fileno(), self._read)
        for records in announcement.listings(addresses):
            self._send(encode_response(records), endpoint.group)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._endpoint.socket.fileno())
        for records in self._announcement.listings(self._addresses):
            self._send(encode_response(goodbye(records)), self._endpoint.group)
        self._endpoint.socket.close()

    def _read(self) -> None:
        try:
            data, asker = self._endpoint.socket.recvfrom(_MAX_PACKET)
            message = decode(data)
        except (OSError, InvalidMessage):
            return
        if message.is_response or not message.questions or not self._may_answer():
            return
        # A client that asks from another port does not receive what is sent to the group.
        is_simple = asker[1] != PORT
        wants_unicast = is_simple or all(each.wants_unicast for each in message.questions)
        to = asker if wants_unicast else self._endpoint.group
        for packet in self._announcement.answer(message.questions, self._addresses):
            self._send(encode_response(*packet, message.id if is_simple else 0), to)

    def _may_answer(self) -> bool:
        second = int(self._clock.monotonic())
        if second != self._second:
            self._second, self._answers = second, 0
        self._answers += 1
        return self._answers <= _MAX_ANSWERS

    def _send(self, data: bytes, to: Any) -> None:
        # A packet that is lost is asked for again.
        with contextlib.suppress(OSError):
            self._endpoint.socket.sendto(data, socket.MSG_DONTWAIT, to)
