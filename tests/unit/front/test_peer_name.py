from __future__ import annotations

from urllib.parse import quote

import pytest

from cogwork.front.peer_name import parse_socket_name, socket_name
from cogwork.net.peer import Peer


@pytest.mark.parametrize(
    ("client", "server", "expected"),
    [
        (("127.0.0.1", 5), ("127.0.0.1", 80), Peer("ipv4:127.0.0.1:5", is_local=True)),
        (("10.0.0.7", 5), ("10.0.0.7", 80), Peer("ipv4:10.0.0.7:5", is_local=True)),
        (("10.0.0.8", 65535), ("10.0.0.7", 80), Peer("ipv4:10.0.0.8:65535", is_local=False)),
        (("::1", 5), ("::1", 80), Peer("ipv6:[::1]:5", is_local=True)),
        (("fe80::1%eth0", 5), ("fe80::2%eth0", 80), Peer("ipv6:[fe80::1]:5", is_local=False)),
    ],
)
def test_name_of_a_connection_contains_its_client(
    client: tuple[str, int], server: tuple[str, int], expected: Peer
) -> None:
    peer = Peer.from_addresses(client, server)
    assert peer == expected
    assert peer.host_and_port == (client[0].partition("%")[0], client[1])
    path = f"/tmp/cogwork-1-x/{socket_name(123, peer)}"
    assert parse_socket_name(path) == peer
    assert parse_socket_name(f"unix:{quote(path)}") == peer  # as grpc reports it


def test_longest_name_fits_into_a_socket_address() -> None:
    peer = Peer.from_addresses((":".join(["ffff"] * 8), 65535), ("::1", 80))
    path = f"{'/' * 20}/cogwork-4194304-12345678/{socket_name(9_999_999, peer)}"
    assert len(path) <= 107


def test_clients_without_the_relay_are_kept_as_they_are() -> None:
    assert parse_socket_name("ipv4:10.0.0.8:5") == Peer("ipv4:10.0.0.8:5")
    assert parse_socket_name("ipv6:%5B::1%5D:5") == Peer("ipv6:[::1]:5", is_local=True)
    assert parse_socket_name("").host_and_port == ("", 0)
