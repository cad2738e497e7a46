"""A multicast DNS responder for this machine on the local network.

The responder runs in its own thread, so that packets from the network take no time of the server's
event loop. Clients repeat a query within a second and give up soon, so every query is answered at
once.
"""

from __future__ import annotations

import contextlib
import logging
import selectors
import socket
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from cogwork.core.os_error_text import os_reason
from cogwork.discovery.announcement import Announcement, goodbye
from cogwork.discovery.dns_message import (
    MAX_SIZE,
    InvalidMessage,
    decode,
    encode_response,
    is_query,
)
from cogwork.discovery.interfaces import (
    PORT,
    Endpoint,
    Interface,
    list_interfaces,
    open_endpoints,
)
from cogwork.discovery.query_limiter import QueryLimiter

_CHECK_INTERVAL = 5.0
"""Seconds between two checks for new and removed interfaces."""
_BATCH = 64
"""Maximum packets to read from a socket at once."""
_PAUSE = 0.01
"""Minimum seconds between two reads of a socket. During a flood, the kernel drops the packets for
which the socket has no room."""
_CLOSE_TIMEOUT = 5.0

_log = logging.getLogger("rdk.networking")


class _Desired(NamedTuple):
    announcement: Announcement
    loopback_only: bool

    def is_wanted(self, interface: Interface) -> bool:
        return interface.is_loopback or not self.loopback_only


class Responder:
    def __init__(self, now: Callable[[], float]) -> None:
        """`now` returns monotonic seconds."""
        self._now = now
        self._desired: _Desired | None = None
        self._is_closing = False
        self._changed = threading.Event()
        self._wake_receiver, self._wake_sender = socket.socketpair()
        self._wake_sender.setblocking(False)
        self._wake_receiver.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._open: dict[Interface, list[_Link]] = {}
        self._failed: set[str] = set()
        """Names of the interfaces whose failure was logged."""
        self._thread = threading.Thread(target=self._run, name="mDNS", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def announce(self, announcement: Announcement, *, loopback_only: bool) -> None:
        """Announce the machine, and withdraw the previous announcement.

        Set `loopback_only` if the machine can only be reached from this computer.
        """
        self._desired = _Desired(announcement, loopback_only)
        self._wake()

    def close(self) -> None:
        """Withdraw the announcement, and wait until the thread has ended."""
        self._is_closing = True
        self._wake()
        self._thread.join(_CLOSE_TIMEOUT)

    def _wake(self) -> None:
        self._changed.set()
        with contextlib.suppress(OSError):
            self._wake_sender.send(b"\0")

    def _run(self) -> None:
        self._selector.register(self._wake_receiver, selectors.EVENT_READ)
        try:
            while not self._is_closing:
                self._changed.clear()
                if self._desired is not None:
                    self._serve(self._desired)
                else:
                    self._read_packets(_CHECK_INTERVAL)
        finally:
            self._selector.close()
            self._wake_receiver.close()
            self._wake_sender.close()

    def _serve(self, desired: _Desired) -> None:
        """Serve an announcement until it is replaced or the responder closes; then withdraw it."""
        check_at = self._now()
        try:
            while desired is self._desired and not self._is_closing:
                if self._now() >= check_at:
                    with contextlib.suppress(OSError):  # an interface disappeared meanwhile
                        wanted = {each for each in list_interfaces() if desired.is_wanted(each)}
                        self._follow(wanted, desired.announcement)
                    check_at = self._now() + _CHECK_INTERVAL
                self._read_packets(max(0.0, check_at - self._now()))
        finally:
            self._follow(set(), desired.announcement)

    def _read_packets(self, timeout: float) -> None:
        for key, _ in self._selector.select(timeout):
            if isinstance(key.data, _Link):
                key.data.read()
            else:
                with contextlib.suppress(OSError):
                    self._wake_receiver.recv(64)
        self._changed.wait(_PAUSE)

    def _follow(self, wanted: set[Interface], announcement: Announcement) -> None:
        for interface in self._open.keys() - wanted:
            for link in self._open.pop(interface):
                self._selector.unregister(link.socket)
                link.close()
        for interface in wanted - self._open.keys():
            try:
                endpoints = open_endpoints(interface)
            except OSError as error:
                self._report(interface, error)
                continue
            self._failed.discard(interface.name)
            links = [
                _Link(endpoint, interface.addresses, announcement, QueryLimiter(self._now))
                for endpoint in endpoints
            ]
            self._open[interface] = links
            for link in links:
                self._selector.register(link.socket, selectors.EVENT_READ, link)
                link.announce()

    def _report(self, interface: Interface, error: OSError) -> None:
        if interface.name not in self._failed:
            self._failed.add(interface.name)
            _log.warning(
                "clients cannot find this machine by name on interface %s: %s",
                *(interface.name, os_reason(error)),
            )


class _Link:
    """One socket, and the addresses of this machine on its network."""

    def __init__(
        self,
        endpoint: Endpoint,
        addresses: tuple[str, ...],
        announcement: Announcement,
        limiter: QueryLimiter,
    ) -> None:
        self.socket = endpoint.socket
        self._group = endpoint.group
        self._addresses = addresses
        self._announcement = announcement
        self._limiter = limiter

    def announce(self) -> None:
        for records in self._announcement.listings(self._addresses):
            self._send(encode_response(records), self._group)

    def close(self) -> None:
        for records in self._announcement.listings(self._addresses):
            self._send(encode_response(goodbye(records)), self._group)
        self.socket.close()

    def read(self) -> None:
        for _ in range(_BATCH):
            try:
                data, asker = self.socket.recvfrom(MAX_SIZE)
            except OSError:
                return
            # The cheap checks come first: most packets of a network are for other machines.
            if is_query(data) and self._announcement.concerns(data):
                self._answer(data, asker)

    def _answer(self, data: bytes, asker: Any) -> None:
        if not self._limiter.admit(asker[0]):
            return
        try:
            query = decode(data)
        except InvalidMessage:
            return
        # Answer a client that queries from another port directly: it receives no packets to the
        # group.
        is_simple = asker[1] != PORT
        wants_unicast = is_simple or all(each.wants_unicast for each in query.questions)
        to = asker if wants_unicast else self._group
        for packet in self._announcement.answer(query.questions, self._addresses):
            self._send(encode_response(*packet, query.id if is_simple else 0), to)

    def _send(self, data: bytes, to: Any) -> None:
        # Clients repeat queries, so a lost packet does no harm.
        with contextlib.suppress(OSError):
            self.socket.sendto(data, socket.MSG_DONTWAIT, to)
