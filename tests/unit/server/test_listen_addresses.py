"""Listen addresses: only loopback unless the configuration says otherwise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.machine.running import SERVING

from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.loader import load
from cogwork.config.schema.machine import MachineConfig
from cogwork.drivers.builtin_models import builtin_models
from cogwork.net.address import Address
from cogwork.resource.registry import Registry
from cogwork.server.listen_addresses import resolve_listen_addresses
from cogwork.serving.listen_addresses import ListenAddresses, format_serving_line

OPEN_WARNING = "without login: anyone who reaches it can control this machine"
CLOUD_WARNING = (
    "login and TLS require the cloud connection, which this release does not support yet"
)
CLOUD = {"id": "part", "secret": "s3cret"}


def resolve_addresses(**sections: Any) -> ListenAddresses:
    context = LoadContext(Registry(builtin_models()), Path("/home"), {}, exists=lambda _: True)
    loaded = load(json.dumps(sections), context)
    assert not loaded.is_refused, loaded.diagnostics
    return resolve_listen_addresses(loaded.result.config)


class TestListenAddresses:
    def test_default_is_localhost(self) -> None:
        assert resolve_addresses() == ListenAddresses(Address("localhost", 8080), None, ())

    @pytest.mark.parametrize("address", ["localhost:0", "127.0.0.1:5", "[::1]:80"])
    def test_loopback_address_has_no_warning(self, address: str) -> None:
        listen = resolve_addresses(network={"bind_address": address, "grpc_address": address})
        assert listen == ListenAddresses(Address.parse(address), Address.parse(address), ())

    @pytest.mark.parametrize("address", [":8080", "0.0.0.0:8080", "[::]:1", "192.0.2.1:0"])
    def test_open_address_has_a_warning(self, address: str) -> None:
        network = {"bind_address": address, "insecure_without_auth": True}
        listen = resolve_addresses(network=network)
        parsed = Address.parse(address)
        assert listen == ListenAddresses(parsed, None, (f"listening on {parsed} {OPEN_WARNING}",))

    def test_each_open_address_has_a_warning(self) -> None:
        addresses = {"bind_address": ":1", "grpc_address": "192.0.2.1:2"}
        listen = resolve_addresses(network={**addresses, "insecure_without_auth": True})
        assert listen.warnings == (
            f"listening on :1 {OPEN_WARNING}",
            f"listening on 192.0.2.1:2 {OPEN_WARNING}",
        )

    def test_machine_without_login_listens_only_on_localhost(self) -> None:
        network = {"bind_address": "0.0.0.0:81", "grpc_address": ":82"}
        listen = resolve_addresses(network=network)
        assert (listen.public, listen.grpc) == (Address("localhost", 81), Address("localhost", 82))
        (warning,) = listen.warnings
        assert warning.startswith("listening on localhost:81 instead of 0.0.0.0:81 and :82: ")
        assert "network.insecure_without_auth" in warning

    def test_machine_with_login_listens_where_it_is_asked_to(self) -> None:
        handler = {"type": "api-key", "config": {"keys": ["a"], "a": "b"}}
        listen = resolve_addresses(network={"bind_address": ":81"}, auth={"handlers": [handler]})
        assert listen == ListenAddresses(Address("", 81), None, ())


class TestServingLine:
    @pytest.mark.parametrize(
        ("bound", "requested", "url", "alternative"),
        [
            (("127.0.0.1", 36103), Address("localhost", 0), "localhost:36103", "127.0.0.1:36103"),
            (("::1", 80), Address("::1", 80), "[::1]:80", "[::1]:80"),
            (("0.0.0.0", 8080), Address("", 8080), "localhost:8080", "0.0.0.0:8080"),
            (("::", 8080), Address("", 8080), "localhost:8080", "[::]:8080"),
            (("192.0.2.1", 1), Address("box.example", 1), "box.example:1", "192.0.2.1:1"),
        ],
    )
    def test_serving_line_has_both_addresses(
        self, bound: tuple[str, int], requested: Address, url: str, alternative: str
    ) -> None:
        line = format_serving_line([bound, ("::2", 9)], requested)
        found = SERVING.search(f"2024-01-01\tINFO\tx\n{line}\n")
        assert found is not None
        assert found.groups() == (f"http://{url}", f"http://{alternative}")

    @given(st.from_regex(r"[a-z0-9.-]{1,30}", fullmatch=True), st.integers(1, 65535))
    def test_serving_line_has_any_host(self, host: str, port: int) -> None:
        line = format_serving_line([("127.0.0.1", port)], Address(host, 0))
        assert SERVING.fullmatch(line)
        assert json.loads(line.removeprefix("serving\t")) == {
            "url": f"http://{host}:{port}",
            "alt_url": f"http://127.0.0.1:{port}",
        }


@pytest.mark.parametrize(
    ("bind_address", "address"),
    [("", "localhost:9"), ("localhost:1", "localhost:9"), ("0.0.0.0:1", "0.0.0.0:9")],
)
def test_port_of_the_command_line_replaces_that_of_the_configuration(
    bind_address: str, address: str
) -> None:
    network = {"bind_address": bind_address, "insecure_without_auth": True}
    config = MachineConfig.model_validate({"network": network})
    assert str(resolve_listen_addresses(config, 9).public) == address
