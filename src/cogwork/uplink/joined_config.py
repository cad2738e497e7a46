"""The configuration of a machine that has joined a cloud: the cloud's, with what is local."""

from __future__ import annotations

import json
from typing import Any, Final

from viam.gen.app.v1.robot_pb2 import RobotConfig

from cogwork.resource.config_message import from_message

_LOCAL_CLOUD: Final = ("id", "secret", "api_key", "app_address", "refresh_interval")
"""What the machine never takes from the cloud."""
_ROLES: Final = "roles"
_ANYWHERE: Final = "0.0.0.0:8080"
"""Where a machine listens that has a login of the cloud."""


def join_config(message: RobotConfig, local: dict[str, Any]) -> str:
    """Return the text of the configuration to run.

    `local` is the file of the machine: its section `cloud` says how to log in, and its
    `network.bind_address` where to listen if the cloud does not say it.
    """
    found = from_message(message)
    cloud = local["cloud"]
    found["cloud"] = {
        **{key: value for key, value in found.get("cloud", {}).items() if key not in _LOCAL_CLOUD},
        **{key: cloud[key] for key in _LOCAL_CLOUD if key in cloud},
    }
    address = local.get("network", {}).get("bind_address")
    if not address and found.get("auth", {}).get("handlers"):
        address = _ANYWHERE
    if address:
        found.setdefault("network", {}).setdefault("bind_address", address)
    for handler in found.get("auth", {}).get("handlers", ()):
        if isinstance(roles := handler["config"].pop(_ROLES, None), dict):
            handler[_ROLES] = roles
    return json.dumps(found, indent=2)
