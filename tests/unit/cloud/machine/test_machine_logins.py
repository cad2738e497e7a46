"""The logins of a machine: its own, and those of the cloud."""

from __future__ import annotations

from typing import Any

import pytest

from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from cogwork.cloud.machine.machine_logins import carry_roles, join_logins  # noqa: E402

TOKEN_KEYS = [{"kty": "RSA", "kid": name, "n": "x", "e": "AQAB"} for name in ("active", "next")]
KEYS = {"k": "secret"}


def test_logins_of_the_cloud_join_the_configured_ones() -> None:
    own = {"kty": "RSA", "kid": "own", "n": "x", "e": "AQAB"}
    location = {"type": "robot-location-secret", "config": {"secret": "s"}}
    configured = {
        "handlers": [location, {"type": "api-key", "config": {"keys": ["a"], "a": "b"}}],
        "external_auth_config": {"jwks": {"keys": [own]}},
    }
    found, mistakes = join_logins(configured, KEYS, TOKEN_KEYS)
    assert mistakes == []
    assert found["handlers"] == [
        location,
        {
            "type": "api-key",
            "config": {"keys": ["a", "k"], "a": "b", "k": "secret"},
        },
    ]
    assert found["external_auth_config"]["jwks"]["keys"] == [own, *TOKEN_KEYS]
    assert len(configured["external_auth_config"]["jwks"]["keys"]) == 1  # type: ignore[index]


@pytest.mark.parametrize("configured", [None, 5, [], {}, {"handlers": None}, {"handlers": "x"}])
def test_absent_logins_are_no_mistake(configured: Any) -> None:
    found, mistakes = join_logins(configured, KEYS, TOKEN_KEYS)
    assert mistakes == []
    assert [each["type"] for each in found["handlers"]] == ["api-key"]


@pytest.mark.parametrize(
    "configured",
    [{"handlers": [5]}, {"tls_auth_entities": 5}],
)
def test_unusable_logins_do_not_displace_those_of_the_cloud(configured: Any) -> None:
    found, mistakes = join_logins(configured, KEYS, TOKEN_KEYS)
    assert len(mistakes) == 1
    assert found["handlers"][0]["config"]["k"] == "secret"


def test_a_key_that_is_no_owner_is_left_out_where_there_are_no_roles() -> None:
    """Another server would take the object for a key, or stop, and the viewer for an owner."""
    handler = {
        "type": "api-key",
        "config": {"keys": ["a", "b"], "a": "1", "b": "2", "roles": {"a": "viewer"}},
        "roles": {"a": "viewer", "b": "owner"},
    }
    found, mistakes = join_logins({"handlers": [handler]}, KEYS, TOKEN_KEYS)
    assert found["handlers"] == [
        {"type": "api-key", "config": {"keys": ["b", "k"], "b": "2", "k": "secret"}}
    ]
    assert len(mistakes) == 1
    assert 'key "a" is left out' in mistakes[0]


def test_roles_travel_to_machines_that_know_them() -> None:
    handler = {"type": "api-key", "config": {"keys": ["a"], "a": "1"}, "roles": {"a": "viewer"}}
    found = carry_roles({"handlers": [handler, {"type": "other"}]})
    assert found["handlers"][0]["config"]["roles"] == {"a": "viewer"}
    assert "roles" in handler
    assert carry_roles(None) is None
    assert carry_roles({"handlers": 5}) == {"handlers": 5}
