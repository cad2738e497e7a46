"""Host headers that name this machine, and others."""

from __future__ import annotations

import pytest

from cogwork.net.host_names import is_allowed_host

NAMES = frozenset({"localhost", "robot", "robot.local"})


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:8080",
        "localhost.",
        "robot:9000",
        "robot.local",
        "127.0.0.1:8080",
        "[::1]:8080",
        "[::1]",
        "192.168.1.7",
        "[fe80::1%25eth0]:80",
    ],
)
def test_names_and_addresses_of_the_machine_are_allowed(host: str) -> None:
    assert is_allowed_host(host, NAMES)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "evil.example:8080",
        "localhost.evil.example",
        "evil.example#localhost",
        "localhost/..",
        "localhost?x",
        "localhost@evil.example",
        "evil.example@localhost",
        "localhost:x",
        "localhost:99999",
        "127.0.0.1.evil.example",
        "127.1",
        "[::1",
        "[localhost]",
        "\xff",
    ],
)
def test_other_host_names_are_refused(host: str) -> None:
    assert not is_allowed_host(host, NAMES)
