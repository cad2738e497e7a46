"""The configuration of the cloud, joined with the machine's own file."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cogwork.resource import sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from cogwork.resource.config_message import to_message  # noqa: E402
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


def test_own_file_is_not_changed() -> None:
    handler = {"type": "api-key", "config": {"k1": "own", "roles": {"k1": "viewer"}}}
    local = {"auth": {"handlers": [handler]}}
    joined = join({}, local)
    assert joined["auth"]["handlers"][0]["roles"] == {"k1": "viewer"}
    assert handler["config"] == {"k1": "own", "roles": {"k1": "viewer"}}
