"""The configuration of the cloud, joined with the machine's own file."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from cogwork.resource.messages.config_message import to_message  # noqa: E402
from cogwork.uplink.joined_config import join_config  # noqa: E402

CLOUD = {"id": "part", "secret": "s", "app_address": "https://fleet.test"}
OF_CLOUD = {"type": "api-key", "config": {"k1": "secret"}}


def join(config: dict[str, Any], local: dict[str, Any]) -> Any:
    return json.loads(join_config(to_message(config), {"cloud": CLOUD, **local}))


def test_own_handlers_are_added_unless_the_cloud_configures_their_type() -> None:
    own = {"type": "robot-location-secret", "config": {"secret": "own"}}
    local = {"auth": {"handlers": [own, {"type": "api-key", "config": {"k2": "own"}}]}}
    joined = join({"auth": {"handlers": [OF_CLOUD]}}, local)
    assert joined["auth"]["handlers"] == [OF_CLOUD, own]


@pytest.mark.parametrize("handler", [1, "text", None, [], {"type": []}, {"config": 1}])
def test_malformed_own_handler_is_left_to_the_check(handler: Any) -> None:
    joined = join({"auth": {"handlers": [OF_CLOUD]}}, {"auth": {"handlers": [handler]}})
    assert joined["auth"]["handlers"] == [OF_CLOUD, handler]


@pytest.mark.parametrize("section", [1, "text", None, [1]])
def test_malformed_own_sections_are_ignored(section: Any) -> None:
    joined = join({"auth": {"handlers": [OF_CLOUD]}}, {"auth": section, "network": section})
    assert joined["auth"]["handlers"] == [OF_CLOUD]


def test_handler_of_the_cloud_without_settings_is_joined() -> None:
    handler = {"type": "api-key"}
    assert join({"auth": {"handlers": [handler]}}, {})["auth"]["handlers"] == [handler]


@pytest.mark.parametrize(
    ("of_cloud", "own", "expected"),
    [
        ("0.0.0.0:1", "127.0.0.1:2", "0.0.0.0:1"),
        ("127.0.0.1:1", None, "127.0.0.1:1"),
        (None, "127.0.0.1:2", "127.0.0.1:2"),
        (None, None, "0.0.0.0:8080"),  # it has a login, and a certificate of the cloud
    ],
)
def test_address_of_the_cloud_comes_before_its_own(
    of_cloud: str | None, own: str | None, expected: str
) -> None:
    config: dict[str, Any] = {"auth": {"handlers": [OF_CLOUD]}}
    if of_cloud:
        config["network"] = {"bind_address": of_cloud}
    local = {"network": {"bind_address": own}} if own else {}
    assert join(config, local)["network"]["bind_address"] == expected


def test_machine_without_a_login_listens_where_the_default_is() -> None:
    assert "network" not in join({}, {})


def test_secrets_of_the_file_and_settings_of_the_cloud_are_joined() -> None:
    joined = join({"cloud": {"id": "other", "secret": "stolen"}}, {})
    assert joined["cloud"] == CLOUD


def test_own_file_is_not_changed() -> None:
    handler = {"type": "api-key", "config": {"k1": "own", "roles": {"k1": "viewer"}}}
    local = {"auth": {"handlers": [handler]}}
    joined = join({}, local)
    assert joined["auth"]["handlers"][0]["roles"] == {"k1": "viewer"}
    assert handler["config"] == {"k1": "own", "roles": {"k1": "viewer"}}
