"""The logins of a machine: its own, and those of the cloud."""

from __future__ import annotations

from typing import Any

import pytest

from cogwork.resource import sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from cogwork.cloud.identity.machine_tokens import (  # noqa: E402
    MachineTokenIssuer,
    create_token_key,
    parse_token_key,
)
from cogwork.cloud.machine.machine_logins import MachineKey, join_logins  # noqa: E402

KEYS = {"k": MachineKey("secret", "owner")}


@pytest.fixture(scope="module")
def issuer() -> MachineTokenIssuer:
    return MachineTokenIssuer(parse_token_key(create_token_key()), "fleet.test")


def test_logins_of_the_cloud_join_the_configured_ones(issuer: MachineTokenIssuer) -> None:
    own = {"kty": "RSA", "kid": "own", "n": "x", "e": "AQAB"}
    location = {"type": "robot-location-secret", "config": {"secret": "s"}}
    configured = {
        "handlers": [location, {"type": "api-key", "config": {"keys": ["a"], "a": "b"}}],
        "external_auth_config": {"jwks": {"keys": [own]}},
    }
    found, mistakes = join_logins(configured, KEYS, issuer)
    assert mistakes == []
    assert found["handlers"] == [
        location,
        {
            "type": "api-key",
            "config": {"keys": ["a", "k"], "a": "b", "k": "secret", "roles": {"k": "owner"}},
        },
    ]
    assert found["external_auth_config"]["jwks"]["keys"] == [own, issuer.public_key]
    assert len(configured["external_auth_config"]["jwks"]["keys"]) == 1  # type: ignore[index]


@pytest.mark.parametrize("configured", [None, 5, [], {}, {"handlers": None}, {"handlers": "x"}])
def test_absent_logins_are_no_mistake(configured: Any, issuer: MachineTokenIssuer) -> None:
    found, mistakes = join_logins(configured, KEYS, issuer)
    assert mistakes == []
    assert [each["type"] for each in found["handlers"]] == ["api-key"]


@pytest.mark.parametrize(
    "configured",
    [{"handlers": [5]}, {"tls_auth_entities": 5}],
)
def test_unusable_logins_do_not_displace_those_of_the_cloud(
    configured: Any, issuer: MachineTokenIssuer
) -> None:
    found, mistakes = join_logins(configured, KEYS, issuer)
    assert len(mistakes) == 1
    assert found["handlers"][0]["config"]["k"] == "secret"
