"""TURN servers: the options, and logins as coturn computes them."""

from __future__ import annotations

import base64
import hashlib
import hmac
from pathlib import Path

import pytest

from cogwork.cloud.signaling.relay_servers import (
    NO_RELAYS,
    InvalidRelay,
    RelayServers,
    read_relay_servers,
)

URLS = ["turn:turn.test:3478?transport=udp", "turns:turn.test:5349"]
SECRET = "shared with coturn"
NOW = 1_800_000_000


def test_login_is_what_coturn_computes_and_ends_after_a_day() -> None:
    (server,) = RelayServers(tuple(URLS), SECRET).list_with_credentials(NOW)
    assert list(server.urls) == URLS
    expires, _, _ = server.username.partition(":")
    assert int(expires) == NOW + 24 * 3600
    digest = hmac.digest(SECRET.encode(), server.username.encode(), hashlib.sha1)
    assert server.credential == base64.b64encode(digest).decode()


def test_there_are_none_by_default() -> None:
    assert read_relay_servers([], None) == NO_RELAYS
    assert NO_RELAYS.list_with_credentials(NOW) == []


def test_secret_is_read_without_the_end_of_its_line(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    found = read_relay_servers(URLS, tmp_path / "secret")
    assert found == RelayServers(tuple(URLS), SECRET)


@pytest.mark.parametrize(
    ("urls", "content", "message"),
    [
        (URLS, None, "belong together"),
        ([], b"secret", "belong together"),
        (["http://x"], b"secret", "is not a TURN server"),
        (["turn:"], b"secret", "is not a TURN server"),
        ([*URLS, "stun:x"], b"secret", "is not a TURN server"),
        (URLS, b" \n", "is empty"),
        (URLS, b"\xff", "cannot read"),
    ],
)
def test_unusable_options_are_explained(
    tmp_path: Path, urls: list[str], content: bytes | None, message: str
) -> None:
    file = tmp_path / "secret"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InvalidRelay, match=message):
        read_relay_servers(urls, file if content is not None else None)


def test_missing_file_is_explained(tmp_path: Path) -> None:
    with pytest.raises(InvalidRelay, match="cannot read"):
        read_relay_servers(URLS, tmp_path / "secret")
