"""The secret values of a configuration, which no output may show."""

from __future__ import annotations

from typing import Any

import pytest

from cogwork.config.check.log_rules import find_secret_values
from cogwork.config.text.secrets import secret_variable_values


@pytest.mark.parametrize(
    ("config", "secrets"),
    [
        ({"attributes": {"password": "pw1"}}, {"pw1"}),
        ({"attributes": {"password": 12345}}, {"12345"}),
        ({"attributes": {"password": True, "tokens": ["abc"]}}, {"abc"}),
        # Short texts beside a secret are not secrets themselves.
        ({"credentials": {"type": "api", "user": "longer-name"}}, {"longer-name"}),
        ({"auth": {"keys": ["id1"], "id1": "the-key-itself"}}, {"the-key-itself"}),
        # The ID of an API key is not a secret.
        ({"api_key": {"id": "longer-id", "key": "the-key-itself"}}, {"the-key-itself"}),
        ({"api_key_id": "longer-id", "api_key": "abc"}, {"abc"}),
        ({"auth": {"keys": ["longer-id"], "longer-id": "the-key-itself"}}, {"the-key-itself"}),
        ({"auth": {"keys": ["the-key-itself"]}}, {"the-key-itself"}),
        ({"url": "rtsp://admin:p%40ss@host/x"}, {"p%40ss", "p@ss"}),
        ({"url": "http://host:8080/a@b", "other": "a:b@c"}, set()),
        ({"env": {"API_TOKEN": "tok", "EVIL": "everyday"}}, {"tok"}),
        ({"password": ""}, set()),
        ({"token": "${environment.NAME}"}, {"${environment.NAME}", "value"}),
    ],
)
def test_find_secret_values_returns_secret_values(config: Any, secrets: set[str]) -> None:
    assert find_secret_values(config, {"NAME": "value"}) == secrets


def test_variables_named_like_secrets_are_secret() -> None:
    text = (
        '{"url": "rtsp://${CAM_PASSWORD}@x", "b": "$API_KEY_ID", '
        '"a": "$API_TOKEN ${HOST} ${environment.MY_SECRET}"}'
    )
    environment = {
        "CAM_PASSWORD": "one",
        "API_TOKEN": "two",
        "HOST": "three",
        "MY_SECRET": "four",
        "API_KEY_ID": "five",
    }
    assert {*secret_variable_values(text, environment)} == {"one", "two", "four"}
