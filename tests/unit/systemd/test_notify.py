"""The notify protocol of systemd, with real datagram sockets."""

from __future__ import annotations

import itertools
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from cogwork.core.clock import ManualClock
from cogwork.systemd.notify import SystemdNotifier
from cogwork.systemd.notify_socket import NotifySettings, read_notify_settings

PROCESS_ID = 7


class ServiceManager:
    """The other end of the socket."""

    def __init__(self, address: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.socket.bind(address)

    def read(self) -> list[str]:
        """Return the messages since the last call."""
        messages = []
        while True:
            try:
                messages.append(self.socket.recv(4096).decode())
            except BlockingIOError:
                return messages


@pytest.fixture(params=["file", "abstract"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the value of NOTIFY_SOCKET."""
    return f"@cogwork-test-{os.getpid()}" if request.param == "abstract" else f"{tmp_path}/notify"


@pytest.fixture
def manager(address: str) -> Iterator[ServiceManager]:
    there = ServiceManager(bind_address(address))
    yield there
    there.socket.close()


def bind_address(address: str) -> str:
    return address.replace("@", "\0")


def settings_for(address: str, **variables: str) -> NotifySettings | None:
    return read_notify_settings({"NOTIFY_SOCKET": address, **variables}, PROCESS_ID)


async def test_reports_ready_and_then_life_at_half_of_the_time(
    address: str, manager: ServiceManager
) -> None:
    clock = ManualClock()
    notifier = SystemdNotifier(settings_for(address, WATCHDOG_USEC="30000000"), clock)
    notifier.start()
    await clock.settle()
    assert manager.read() == ["READY=1"]
    await clock.advance(14.9)
    assert manager.read() == []
    await clock.advance(0.1)
    assert manager.read() == ["WATCHDOG=1"]
    await clock.advance(30)
    assert manager.read() == ["WATCHDOG=1", "WATCHDOG=1"]
    notifier.report_stop(restarts=False)
    await clock.advance(15)
    assert manager.read() == ["STOPPING=1", "WATCHDOG=1"]
    await notifier.aclose()
    await clock.advance(60)
    assert manager.read() == []


async def test_restart_is_reported_as_a_reload(address: str, manager: ServiceManager) -> None:
    clock = ManualClock(start=5.0)
    notifier = SystemdNotifier(settings_for(address), clock)
    notifier.start()
    await clock.settle()
    notifier.report_stop(restarts=True)
    await notifier.aclose()
    assert manager.read() == ["READY=1", "RELOADING=1\nMONOTONIC_USEC=5000000"]


async def test_message_is_sent_again_when_the_queue_is_full(
    address: str, manager: ServiceManager
) -> None:
    filled = fill(bind_address(address))
    clock = ManualClock()
    notifier = SystemdNotifier(settings_for(address), clock)
    notifier.start()
    await clock.advance(10)
    assert manager.read() == ["x"] * filled
    await clock.advance(1)
    assert manager.read() == ["READY=1"]
    await notifier.aclose()


def fill(address: str) -> int:
    """Send messages until there is no space for another, and return how many there are."""
    for count in itertools.count():
        # Each socket has a limit of its own, too.
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sender:
            try:
                sender.sendto(b"x", address)
            except BlockingIOError:
                return count
    raise AssertionError


async def test_service_manager_that_is_gone_does_not_stop_the_server(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ManualClock()
    notifier = SystemdNotifier(NotifySettings(str(tmp_path / "gone"), 1.0), clock)
    notifier.start()
    await clock.settle()
    assert "cannot send READY=1 to systemd: No such file or directory" in caplog.text
    await clock.advance(3)
    notifier.report_stop(restarts=False)
    await notifier.aclose()


async def test_without_systemd_nothing_is_sent() -> None:
    notifier = SystemdNotifier(read_notify_settings({}, PROCESS_ID), ManualClock())
    notifier.start()
    notifier.report_stop(restarts=False)
    await notifier.aclose()


@pytest.mark.parametrize("address", ["", "relative", "vsock:2:1234"])
def test_other_addresses_are_ignored(address: str) -> None:
    assert read_notify_settings({"NOTIFY_SOCKET": address}, PROCESS_ID) is None


@pytest.mark.parametrize(
    ("variables", "interval"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "3000000"}, 1.5),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "7"}, 1.5),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "8"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "-5"}, None),
        ({"WATCHDOG_USEC": "٣"}, None),
    ],
)
def test_watchdog_interval(variables: dict[str, str], interval: float | None) -> None:
    settings = read_notify_settings({"NOTIFY_SOCKET": "/run/notify", **variables}, PROCESS_ID)
    assert settings == NotifySettings("/run/notify", interval)
