"""Configurations as messages of a cloud, and back."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.config.workshop import load_config

from cogwork.core.errors import InvalidRequest
from cogwork.resource.messages.config_message import from_message, to_message
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # the SDK must be imported first
from viam.gen.app.v1.robot_pb2 import CredentialsType, RobotConfig  # noqa: E402

CONFIG: dict[str, Any] = {
    "components": [
        {
            "name": "arm",
            "api": "rdk:component:arm",
            "model": "rdk:builtin:fake",
            "attributes": {"speed_degs_per_sec": 5.0, "nested": {"list": [1.0, "two", None, True]}},
            "depends_on": ["board"],
            "log_configuration": {"level": "debug"},
            "frame": {
                "parent": "world",
                "translation": {"x": 1.0, "y": 2.0, "z": 3.0},
                "orientation": {
                    "type": "ov_degrees",
                    "value": {"x": 0.0, "y": 0.0, "z": 1.0, "th": 90.0},
                },
                "geometry": {
                    "type": "box",
                    "x": 10.0,
                    "y": 20.0,
                    "z": 30.0,
                    "translation": {"x": 0.0, "y": 0.0, "z": 15.0},
                    "orientation": {
                        "type": "ov_degrees",
                        "value": {"x": 0.0, "y": 0.0, "z": 1.0, "th": 0.0},
                    },
                },
            },
        },
        {"name": "board", "api": "rdk:component:board", "model": "rdk:builtin:fake"},
    ],
    "services": [
        {
            "name": "eyes",
            "api": "rdk:service:vision",
            "model": "rdk:builtin:mlmodel",
            "attributes": {"default_minimum_confidence": 0.5},
        }
    ],
    "modules": [
        {
            "name": "acme",
            "type": "local",
            "executable_path": "/opt/acme/run.sh",
            "log_level": "info",
            "env": {"MODE": "fast"},
            "first_run_timeout": "90s",
        }
    ],
    "remotes": [
        {
            "name": "other",
            "address": "other.local:8080",
            "prefix": "o",
            "insecure": True,
            "connection_check_interval": "10s",
            "auth": {"entity": "x", "credentials": {"type": "api-key", "payload": "secret"}},
        }
    ],
    "processes": [
        {
            "id": "p",
            "name": "/bin/true",
            "args": ["a", "b"],
            "one_shot": True,
            "stop_signal": 2,
            "stop_timeout": "0.500s",
            "env": {"A": "b"},
        }
    ],
    "packages": [
        {"name": "model", "package": "acme/model", "version": "1.2.0", "type": "ml_model"}
    ],
    "network": {
        "bind_address": "0.0.0.0:8080",
        "sessions": {"heartbeat_window": "0.500s"},
        "traffic_tunnel_endpoints": [{"port": 22, "connection_timeout": "5s"}],
    },
    "auth": {
        "handlers": [{"type": "api-key", "config": {"keys": ["id"], "id": "a-long-enough-key"}}],
        "tls_auth_entities": ["a"],
        "external_auth_config": {"jwks": {"keys": [{"kid": "1"}]}},
    },
    "log": [{"pattern": "rdk.*", "level": "debug"}],
    "maintenance": {
        "sensor_name": "rdk:component:sensor/guard",
        "maintenance_allowed_key": "idle",
    },
    "jobs": [
        {
            "name": "hourly",
            "schedule": "1h",
            "resource": "arm",
            "method": "Stop",
            "command": {"a": 1.0},
        }
    ],
    "debug": True,
    "disable_log_deduplication": True,
    "revision": "7",
}


def test_configuration_survives_the_message() -> None:
    message = RobotConfig.FromString(to_message(CONFIG).SerializeToString())
    assert from_message(message) == CONFIG


def test_disabled_resource_survives_the_message() -> None:
    sensor = {"name": "s", "api": "rdk:component:sensor", "model": "fake"}
    capture = {"type": "data_manager", "attributes": {"rate": 1.0}}
    components = [
        {**sensor, "disabled": True},
        {**sensor, "name": "t", "service_configs": [capture]},
        {**sensor, "name": "u", "service_configs": [capture], "disabled": True},
    ]
    found = from_message(to_message({"components": components}))["components"]
    assert [each.get("disabled", False) for each in found] == [True, False, True]
    assert [each.get("service_configs", []) for each in found] == [[], [capture], [capture]]


def test_message_has_what_older_servers_read() -> None:
    message = to_message(CONFIG)
    (arm, _), (module,) = message.components, message.modules
    assert (arm.namespace, arm.type, arm.api) == ("rdk", "arm", "rdk:component:arm")
    assert module.path == "/opt/acme/run.sh"
    assert message.auth.handlers[0].type == CredentialsType.CREDENTIALS_TYPE_API_KEY
    assert message.maintenance.sensor_name.subtype == "sensor"
    assert message.network.sessions.heartbeat_window.nanos == 500_000_000


@pytest.mark.parametrize(
    "orientation",
    [
        {"type": "ov_radians", "value": {"x": 0.5, "y": 0.0, "z": 1.0, "th": 1.0}},
        {"type": "euler_angles", "value": {"roll": 1.0, "pitch": 0.5, "yaw": 0.25}},
        {"type": "axis_angles", "value": {"x": 1.0, "y": 0.0, "z": 0.0, "th": 1.0}},
        {"type": "quaternion", "value": {"w": 1.0, "x": 0.0, "y": 0.0, "z": 0.0}},
    ],
)
def test_orientations_survive_the_message(orientation: dict[str, Any]) -> None:
    frame = {"parent": "world", "orientation": orientation}
    config = {"components": [{"name": "a", "api": "rdk:component:arm", "frame": frame}]}
    (found,) = from_message(to_message(config))["components"]
    assert found["frame"] == frame


def test_converted_configuration_is_valid() -> None:
    valid = {**CONFIG, "auth": {"handlers": CONFIG["auth"]["handlers"]}}
    assert not load_config(json.dumps(from_message(to_message(valid)))).is_refused


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"modules": [{"name": "m", "first_run_timeout": "soon"}]}, "not a duration"),
        ({"processes": [{"id": "p", "stop_signal": "SIGNONE"}]}, "not a signal"),
        ({"components": {"a": 1}}, "cannot convert the configuration to a message"),
        ({"debug": "yes"}, "cannot convert the configuration to a message"),
    ],
)
def test_what_does_not_fit_is_explained(config: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        to_message(config)


def test_unknown_settings_are_left_out() -> None:
    assert from_message(to_message({"network": {"front": "in_process"}, "other": 1})) == {
        "network": {}
    }


@given(
    st.dictionaries(
        st.sampled_from(["components", "remotes", "network", "auth", "maintenance", "tracing"]),
        st.recursive(
            st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
            lambda inner: (
                st.lists(inner, max_size=2)
                | st.dictionaries(
                    st.sampled_from(
                        [
                            *("frame", "orientation", "geometry", "type", "value", "auth"),
                            *("credentials", "handlers", "external_auth_config", "sensor_name"),
                            *("sessions", "heartbeat_window", "connection_check_interval", "jwks"),
                        ]
                    ),
                    inner,
                    max_size=3,
                )
            ),
            max_leaves=6,
        ),
        max_size=2,
    )
)
def test_any_json_fits_or_is_refused(config: dict[str, Any]) -> None:
    with contextlib.suppress(InvalidRequest):
        to_message(config)
