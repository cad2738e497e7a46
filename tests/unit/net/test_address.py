"""Addresses and ports as people write them."""

from __future__ import annotations

import pytest

from cogwork.net.address import (
    Address,
    is_ip_address,
    is_loopback_address,
    parse_address,
    parse_port,
)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost:8081", "localhost:8081"),
        ("robot.local", "robot.local:8080"),
        (":8081", "localhost:8081"),
        ("192.0.2.7:1", "192.0.2.7:1"),
        ("[::1]:8081", "[::1]:8081"),
        ("[::1]", "[::1]:8080"),
        ("http://localhost:8081/", "localhost:8081"),
        ("http://robot.local", "robot.local:8080"),
        ("https://robot.local", "https://robot.local:8080"),
        ("https://robot.local:8443/", "https://robot.local:8443"),
    ],
)
def test_address_is_completed(text: str, address: str) -> None:
    assert parse_address(text, 8080) == address


@pytest.mark.parametrize(
    "text", ["", ":", "a b:1", "::1", "host/path:1", "https://", "https://host/path", "[x]:1"]
)
def test_invalid_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not (an address|a port)"):
        parse_address(text, 8080)


@pytest.mark.parametrize("text", ["", "0", "-1", "65536", "99999", "http", "1.5", "9" * 5000, "١"])
def test_invalid_port_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="ports range from 1 to 65535"):
        parse_port(text)


def test_valid_ports() -> None:
    assert [parse_port("1"), parse_port("65535"), parse_port("0", least=0)] == [1, 65535, 0]


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost:8080", Address("localhost", 8080)),
        ("127.0.0.1:0", Address("127.0.0.1", 0)),
        ("[::1]:80", Address("::1", 80)),
        ("::1:80", Address("::1", 80)),
        ("[fe80::1%eth0]:80", Address("fe80::1%eth0", 80)),
        (":8080", Address("", 8080)),
        ("0.0.0.0:8080", Address("0.0.0.0", 8080)),
    ],
)
def test_listen_address_is_parsed(text: str, address: Address) -> None:
    assert Address.parse(text) == address


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "127.255.1.2", "::1", "0:0:0:0:0:0:0:1"]
)
def test_loopback_hosts(host: str) -> None:
    assert Address(host, 1).is_loopback


@pytest.mark.parametrize(
    "host",
    ["", "0.0.0.0", "::", "192.0.2.1", "fe80::1%lo", "localhost.example", "127.1", "machine"],
)
def test_hosts_that_are_not_loopback(host: str) -> None:
    assert not Address(host, 1).is_loopback


@pytest.mark.parametrize("text", ["localhost:1", "[::1]:80", "0.0.0.0:0", ":5"])
def test_address_survives_a_round_trip(text: str) -> None:
    assert str(Address.parse(text)) == text


@pytest.mark.parametrize(
    ("address", "is_here"),
    [
        ("localhost:8080", True),
        ("https://127.0.0.1:8443", True),
        ("[::1]:80", True),
        ("robot.local:8080", False),
        ("https://192.0.2.7:443", False),
        (":8080", False),
    ],
)
def test_loopback_addresses(address: str, *, is_here: bool) -> None:
    assert is_loopback_address(address) == is_here


def test_names_are_not_ip_addresses() -> None:
    assert all(map(is_ip_address, ("127.0.0.1", "::1", "fe80::1%eth0")))
    assert not any(map(is_ip_address, ("", "localhost", "[::1]", "127.1")))
