"""The notify socket of systemd, and the settings for it in the environment of a service.

This module imports only the standard library, because the agent's launcher contains it.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Mapping
from dataclasses import dataclass

from cogwork.core.os_error_text import os_reason

SOCKET_VARIABLE = "NOTIFY_SOCKET"
WATCHDOG_VARIABLE = "WATCHDOG_USEC"
WATCHDOG_PROCESS_VARIABLE = "WATCHDOG_PID"

_log = logging.getLogger("rdk")


@dataclass(frozen=True, slots=True)
class NotifySettings:
    address: str
    """The address of the socket; it starts with a null character if the socket is abstract."""
    watchdog_interval: float | None = None
    """Seconds between two watchdog messages; None if systemd expects none."""

    def send(self, text: str) -> bool:
        """Send a message. Return False if the service manager has no space for it at the moment."""
        kind = socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
        try:
            with socket.socket(socket.AF_UNIX, kind) as ours:
                ours.sendto(text.encode(), self.address)
        except BlockingIOError:
            return False
        except OSError as error:
            _log.warning("cannot send %s to systemd: %s", text.partition("\n")[0], os_reason(error))
        return True


def read_notify_settings(environment: Mapping[str, str], process_id: int) -> NotifySettings | None:
    """Return the notify settings of the process; None if systemd expects no messages."""
    address = environment.get(SOCKET_VARIABLE, "")
    if address.startswith("@"):
        address = f"\0{address[1:]}"
    elif not address.startswith("/"):
        return None
    return NotifySettings(address, _read_watchdog_interval(environment, process_id))


def _read_watchdog_interval(environment: Mapping[str, str], process_id: int) -> float | None:
    if environment.get(WATCHDOG_PROCESS_VARIABLE, str(process_id)) != str(process_id):
        return None
    text = environment.get(WATCHDOG_VARIABLE, "")
    if not (text.isascii() and text.isdecimal()) or int(text) == 0:
        return None
    # systemd recommends half of the interval, so that one late message does no harm.
    return int(text) / 1e6 / 2
