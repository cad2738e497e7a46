"""Addresses and ports as people write them."""

from __future__ import annotations

import pytest

from cogwork.core.address import parse_address, parse_port


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
