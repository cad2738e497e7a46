from __future__ import annotations

import pytest

from cogwork.front.trusted_proxies import TrustedProxies
from cogwork.net.peer import Peer

PROXIES = TrustedProxies(("127.0.0.1", "10.0.0.0/8", "2001:db8::/64"))
PROXY = Peer("ipv4:127.0.0.1:4000", is_local=True, certificate="digest")
STRANGER = Peer("ipv4:192.0.2.66:4000")


def find(headers: dict[str, str], peer: Peer = PROXY) -> Peer:
    return PROXIES.find_client(
        peer, [(name.replace("_", "-"), value) for name, value in headers.items()]
    )


def test_membership() -> None:
    for host in ("127.0.0.1", "10.1.2.3", "::ffff:10.1.2.3", "2001:db8::7", "2001:db8::7%eth0"):
        assert host in PROXIES
    for host in ("127.0.0.2", "192.0.2.7", "2001:db8:0:1::7", "", "unix:"):
        assert host not in PROXIES


def test_headers_of_others_are_ignored() -> None:
    spoofed = {"x_forwarded_for": "203.0.113.9", "forwarded": "for=203.0.113.9"}
    assert find(spoofed, STRANGER) == STRANGER
    assert TrustedProxies().find_client(PROXY, list(spoofed.items())) == PROXY


@pytest.mark.parametrize(
    ("headers", "address"),
    [
        ({"x_forwarded_for": "192.0.2.7"}, "ipv4:192.0.2.7:4000"),
        ({"x_forwarded_for": "192.0.2.7:5000"}, "ipv4:192.0.2.7:5000"),
        ({"x_forwarded_for": "2001:db8:1::7"}, "ipv6:[2001:db8:1::7]:4000"),
        ({"x_forwarded_for": "[2001:db8:1::7]:5000"}, "ipv6:[2001:db8:1::7]:5000"),
        ({"x_forwarded_for": "::ffff:192.0.2.7"}, "ipv4:192.0.2.7:4000"),
        # What the client itself has sent comes first.
        ({"x_forwarded_for": "203.0.113.9, 192.0.2.7"}, "ipv4:192.0.2.7:4000"),
        ({"x_forwarded_for": "203.0.113.9, 192.0.2.7, 10.0.0.5"}, "ipv4:192.0.2.7:4000"),
        ({"x_forwarded_for": "10.0.0.9, 10.0.0.5"}, "ipv4:10.0.0.9:4000"),
        ({"forwarded": "for=192.0.2.7;proto=https;by=10.0.0.1"}, "ipv4:192.0.2.7:4000"),
        ({"forwarded": 'proto=http;For="[2001:db8:1::7]:5000"'}, "ipv6:[2001:db8:1::7]:5000"),
        ({"forwarded": "for=203.0.113.9, for=192.0.2.7"}, "ipv4:192.0.2.7:4000"),
        ({"forwarded": 'for="203.0.113.9, for=192.0.2.7'}, "ipv4:192.0.2.7:4000"),
        ({"forwarded": "for=192.0.2.7", "x_forwarded_for": "192.0.2.7"}, "ipv4:192.0.2.7:4000"),
    ],
)
def test_client_is_the_last_hop_before_the_trusted_ones(
    headers: dict[str, str], address: str
) -> None:
    found = find(headers)
    assert found.address == address
    assert not found.is_local
    assert not found.certificate


@pytest.mark.parametrize(
    "headers",
    [
        {"x_forwarded_for": "unknown"},
        {"forwarded": "for=_hidden"},
        {"forwarded": "by=10.0.0.1"},
        {"x_forwarded_for": "203.0.113.9, nonsense"},
        {"x_forwarded_for": "192.0.2.7", "forwarded": "for=203.0.113.9"},
    ],
)
def test_client_that_is_not_named_is_at_the_proxy_but_not_on_this_computer(
    headers: dict[str, str],
) -> None:
    assert find(headers) == Peer(PROXY.address)


def test_requests_of_the_proxy_itself() -> None:
    assert find({}) == PROXY
    assert find({"x_forwarded_proto": "https"}) == PROXY


@pytest.mark.parametrize(
    ("proxy", "headers", "is_encrypted"),
    [
        (PROXY, {"x_forwarded_for": "192.0.2.7", "x_forwarded_proto": "https"}, True),
        (PROXY, {"x_forwarded_for": "192.0.2.7", "x_forwarded_proto": "https, http"}, False),
        (PROXY, {"x_forwarded_for": "192.0.2.7"}, False),
        (PROXY, {"forwarded": "for=192.0.2.7;proto=https"}, True),
        (PROXY, {"forwarded": "for=192.0.2.7;proto=https, for=10.0.0.5;proto=http"}, False),
        (PROXY, {"forwarded": "for=192.0.2.7;proto=https, for=10.0.0.5;proto=https"}, True),
        (PROXY, {"forwarded": "for=203.0.113.9, for=192.0.2.7;proto=https"}, True),
        (Peer("ipv4:10.0.0.5:1"), {"forwarded": "for=192.0.2.7;proto=https"}, False),
        (
            Peer("ipv4:10.0.0.5:1", is_encrypted=True),
            {"forwarded": "for=192.0.2.7;proto=https"},
            True,
        ),
        (Peer("ipv4:10.0.0.5:1", is_encrypted=True), {"forwarded": "for=192.0.2.7"}, False),
    ],
)
def test_connection_is_confidential_if_all_of_it_is(
    proxy: Peer, headers: dict[str, str], is_encrypted: bool
) -> None:
    assert find(headers, proxy).is_confidential == is_encrypted


def test_invalid_network_is_refused() -> None:
    with pytest.raises(ValueError, match="does not appear"):
        TrustedProxies(("proxy.example",))
