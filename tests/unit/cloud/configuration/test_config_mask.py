"""Secrets of configurations are masked for those who do not own them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cogwork.cloud.configuration.config_mask import format_masked, mask_config, require_unmasked
from cogwork.core.errors import InvalidRequest

SECRET = "hunter2-hunter2"
HANDLER = {"type": "api-key", "config": {"keys": ["admin"], "admin": SECRET}}


@pytest.mark.parametrize(
    "config",
    [
        {"auth": {"handlers": [HANDLER]}},
        {"auth": {"handlers": [{"type": "api-key", "config": {"keys": [SECRET]}}]}},
        {"auth": {"handlers": [{"type": "robot-location-secret", "config": {"secret": SECRET}}]}},
        {
            "auth": {"handlers": [{"config": {"keys": [SECRET], SECRET: "x"}}]},
            "remotes": [{"secret": SECRET}],
        },
        {"remotes": [{"name": "r", "address": "a:1", "secret": SECRET}]},
        {"remotes": [{"name": "r", "auth": {"credentials": {"payload": SECRET}}}]},
        {"components": [{"attributes": {"video_path": f"rtsp://u:{SECRET}@10.0.0.7/x"}}]},
        {"components": [{"attributes": {"wifi": {"password": [SECRET]}}}]},
        {"components": [{"attributes": {"password": 123456789}}]},
        {"processes": [{"id": "p", "env": {"ANYTHING": SECRET}}]},
        {"processes": [{"id": "p", "env": {"TOKEN": SECRET}, "args": [f"--token={SECRET}"]}]},
        {"fragments": [{"id": "f", "variables": {"x": SECRET, "y": {"z": [SECRET]}}}]},
        {"x": {"password": {"$variable": {"name": "p", "default_value": SECRET}}}},
        *(
            {"fragment_mods": [{"fragment_id": "f", "mods": [{"$set": mods}]}]}
            for mods in (
                {"components.c.attributes.password": SECRET},
                {"components.c.attributes": {"password": SECRET}},
                {"auth.handlers": [HANDLER]},
                {"auth.handlers.0.config.admin": SECRET},
                {"processes.p.env.ANYTHING": SECRET},
            )
        ),
    ],
    ids=json.dumps,
)
def test_secret_is_in_no_reply(config: dict[str, Any]) -> None:
    text = format_masked(config)
    assert SECRET not in text
    assert "123456789" not in text
    assert "***" in text
    assert json.loads(text) == mask_config(config)


def test_everything_else_stays() -> None:
    config = {
        "auth": {"handlers": [HANDLER], "roles": {"admin": "owner"}},
        "components": [{"name": "c", "attributes": {"max": 5, "x": None, "y": True, "key": ""}}],
        "fragments": ["f", {"id": "f", "prefix": "left", "version": "3"}],
        "cloud": {"id": "part"},
    }
    masked = mask_config(config)
    assert masked["components"] == config["components"]
    assert masked["fragments"] == config["fragments"]
    assert masked["cloud"] == config["cloud"]
    assert masked["auth"]["roles"] == {"admin": "owner"}
    assert masked["auth"]["handlers"] == [
        {"type": "api-key", "config": {"keys": ["admin"], "admin": "***"}}
    ]


@pytest.mark.parametrize(
    "config",
    [
        {"remotes": [{"secret": "***"}]},
        {"x": "rtsp://u:***@host/"},
        {"args": ["--token=***"]},
    ],
)
def test_masked_text_is_not_saved(config: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match='has "\\*\\*\\*", which stands for a secret'):
        require_unmasked(config, {"x": "something"})
    require_unmasked({**config, "debug": True}, config)


def test_place_of_the_mask_is_named() -> None:
    config = {"remotes": [{"secret": "fine"}, {"secret": "***"}]}
    with pytest.raises(InvalidRequest, match=r"^/remotes/1/secret has"):
        require_unmasked(config, {})
