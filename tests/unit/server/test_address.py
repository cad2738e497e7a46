"""Where to listen: only on this computer, unless the configuration says otherwise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.running import SERVING

from cogwork.config.load_context import LoadContext
from cogwork.config.loader import load
from cogwork.drivers.builtin_models import builtin_models
from cogwork.resource.registry import Registry
from cogwork.server.address import (
    Address,
    ListenAddresses,
    format_serving_line,
    resolve_listen_addresses,
)

OPEN = "without login: anyone who reaches it can control this machine"
LOCKED = "login and TLS require the cloud connection, which this release does not support yet"
CLOUD = {"id": "part", "secret": "s3cret"}


def listening(**sections: Any) -> ListenAddresses:
    around = LoadContext(Registry(builtin_models()), Path("/home"), {}, exists=lambda _: True)
    loaded = load(json.dumps(sections), around)
    assert not loaded.is_refused, loaded.diagnostics
    return resolve_listen_addresses(loaded.result.config)


class TestAddress:
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
    def test_what_is_written(self, text: str, address: Address) -> None:
        assert Address.parse(text) == address

    @pytest.mark.parametrize(
        "host", ["localhost", "127.0.0.1", "127.255.1.2", "::1", "0:0:0:0:0:0:0:1"]
    )
    def test_this_computer_only(self, host: str) -> None:
        assert Address(host, 1).is_loopback

    @pytest.mark.parametrize(
        "host",
        ["", "0.0.0.0", "::", "192.0.2.1", "fe80::1%lo", "localhost.example", "127.1", "machine"],
    )
    def test_others_too_or_who_knows(self, host: str) -> None:
        assert not Address(host, 1).is_loopback

    @pytest.mark.parametrize("text", ["localhost:1", "[::1]:80", "0.0.0.0:0", ":5"])
    def test_it_is_written_as_it_is_read(self, text: str) -> None:
        assert str(Address.parse(text)) == text


class TestWhere:
    def test_here_when_nothing_is_said(self) -> None:
        assert listening() == ListenAddresses(Address("localhost", 8080), None, ())

    @pytest.mark.parametrize("address", ["localhost:0", "127.0.0.1:5", "[::1]:80"])
    def test_here_is_nothing_to_warn_of(self, address: str) -> None:
        listen = listening(network={"bind_address": address, "grpc_address": address})
        assert listen == ListenAddresses(Address.parse(address), Address.parse(address), ())

    @pytest.mark.parametrize("address", [":8080", "0.0.0.0:8080", "[::]:1", "192.0.2.1:0"])
    def test_elsewhere_when_it_is_said_with_a_warning(self, address: str) -> None:
        listen = listening(network={"bind_address": address})
        there = Address.parse(address)
        assert listen == ListenAddresses(there, None, (f"listening on {there} {OPEN}",))

    def test_each_open_address_is_warned_of(self) -> None:
        listen = listening(network={"bind_address": ":1", "grpc_address": "192.0.2.1:2"})
        assert listen.warnings == (
            f"listening on :1 {OPEN}",
            f"listening on 192.0.2.1:2 {OPEN}",
        )

    def test_a_machine_of_a_cloud_listens_here_only(self) -> None:
        network = {"bind_address": "0.0.0.0:81", "grpc_address": ":82"}
        assert listening(cloud=CLOUD, network=network) == ListenAddresses(
            Address("localhost", 81),
            Address("localhost", 82),
            (f"listening on localhost:81 only: {LOCKED}",),
        )
        here = {"bind_address": "[::1]:81"}
        assert listening(cloud=CLOUD, network=here) == ListenAddresses(Address("::1", 81), None, ())


class TestServingLine:
    @pytest.mark.parametrize(
        ("bound", "asked", "url", "alternative"),
        [
            (("127.0.0.1", 36103), Address("localhost", 0), "localhost:36103", "127.0.0.1:36103"),
            (("::1", 80), Address("::1", 80), "[::1]:80", "[::1]:80"),
            (("0.0.0.0", 8080), Address("", 8080), "localhost:8080", "0.0.0.0:8080"),
            (("::", 8080), Address("", 8080), "localhost:8080", "[::]:8080"),
            (("192.0.2.1", 1), Address("box.example", 1), "box.example:1", "192.0.2.1:1"),
        ],
    )
    def test_supervisors_find_both_addresses(
        self, bound: tuple[str, int], asked: Address, url: str, alternative: str
    ) -> None:
        line = format_serving_line([bound, ("::2", 9)], asked)
        found = SERVING.search(f"2024-01-01\tINFO\tx\n{line}\n")
        assert found is not None
        assert found.groups() == (f"http://{url}", f"http://{alternative}")

    @given(st.from_regex(r"[a-z0-9.-]{1,30}", fullmatch=True), st.integers(1, 65535))
    def test_whatever_the_host(self, host: str, port: int) -> None:
        line = format_serving_line([("127.0.0.1", port)], Address(host, 0))
        assert SERVING.fullmatch(line)
        assert json.loads(line.removeprefix("serving\t")) == {
            "url": f"http://{host}:{port}",
            "alt_url": f"http://127.0.0.1:{port}",
        }
