from __future__ import annotations

from pathlib import Path

import pytest

from cogwork.cli.fleet.connection_snippet import (
    make_dial_address,
    render_requirements,
    render_snippet,
)
from cogwork.cli.fleet.stored_login import FleetLogin

PUBLIC = FleetLogin("https://fleet.example.org:443", "id", "canary")
LOCAL = FleetLogin("localhost:8090", "id", "canary")


@pytest.mark.parametrize(
    ("login", "address"),
    [
        (PUBLIC, "press.hall.example.org"),
        (FleetLogin("https://a:8443", "id", "key"), "press.hall.example.org:8443"),
        (LOCAL, "press.hall.example.org:8090"),
    ],
    ids=["443", "another port", "without TLS"],
)
def test_name_of_the_machine_is_dialed_at_the_port_of_the_cloud(
    login: FleetLogin, address: str
) -> None:
    assert make_dial_address("press.hall.example.org", login) == address
    assert f'at_address("{address}", options)' in render_snippet("press.hall.example.org", login)


@pytest.mark.parametrize("login", [PUBLIC, LOCAL], ids=["TLS", "plaintext"])
def test_snippet_is_a_program_without_the_key(login: FleetLogin) -> None:
    snippet = render_snippet("press.hall.example.org", login)
    compile(snippet, "snippet", "exec")
    assert "canary" not in snippet
    assert ("insecure = True" in snippet) is not login.is_encrypted


def test_requirements_name_the_authority_and_the_domain() -> None:
    own = FleetLogin("https://a:443", "id", "key", Path("/ca.pem"))
    assert "Set SSL_CERT_FILE to /ca.pem." in render_requirements("press.hall.lan", own)
    assert "cogwork-cloud init --domain" in render_requirements("press.hall.localhost", LOCAL)
    assert "localhost" not in render_requirements("press.hall.lan", LOCAL)
