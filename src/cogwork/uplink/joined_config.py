"""The configuration of a machine that has joined a cloud: the cloud's, with what is local."""

from __future__ import annotations

import copy
import json
from typing import Any, Final

from viam.gen.app.v1.robot_pb2 import RobotConfig

from cogwork.resource.messages.config_message import from_message

_LOCAL_CLOUD: Final = ("id", "secret", "api_key", "app_address", "refresh_interval")
"""What the machine never takes from the cloud."""
_ROLES: Final = "roles"
_ANYWHERE: Final = "0.0.0.0:8080"
"""Where a machine listens that has a login and a certificate of the cloud."""


def join_config(
    message: RobotConfig, local: dict[str, Any], *, has_access_list: bool = False
) -> str:
    """Return the text of the configuration to run.

    `local` is the file of the machine: its section `cloud` says how to log in, its
    `network.bind_address` where to listen if the cloud does not say it, and its `auth` which keys
    work without the cloud. `has_access_list`: whether clients of the cloud can log in.
    """
    found = from_message(message)
    cloud = local["cloud"]
    found["cloud"] = {
        **{key: value for key, value in found.get("cloud", {}).items() if key not in _LOCAL_CLOUD},
        **{key: cloud[key] for key in _LOCAL_CLOUD if key in cloud},
    }
    network = local.get("network")
    address = network.get("bind_address") if isinstance(network, dict) else None
    has_certificate = not message.cloud.signaling_insecure
    _add_local_logins(found, local.get("auth"))
    has_login = has_access_list or bool(found.get("auth", {}).get("handlers"))
    if not address and has_certificate and has_login:
        address = _ANYWHERE
    if address:
        found.setdefault("network", {}).setdefault("bind_address", address)
    for handler in found.get("auth", {}).get("handlers", ()):
        _move_roles(handler)
    return json.dumps(found, indent=2)


def _add_local_logins(found: dict[str, Any], local: Any) -> None:
    """Add the handlers of the machine's own file whose types the cloud does not configure.

    Malformed ones stay: the check of the configuration explains them, and without them the machine
    might be open to everyone.
    """
    handlers = local.get("handlers") if isinstance(local, dict) else None
    if not isinstance(handlers, list) or not handlers:
        return
    configured = found.setdefault("auth", {}).setdefault("handlers", [])
    types = [each.get("type") for each in configured]
    configured += copy.deepcopy(
        [each for each in handlers if not isinstance(each, dict) or each.get("type") not in types]
    )


def _move_roles(handler: Any) -> None:
    """Move the roles of keys to where a configuration has them: the message has no place there."""
    config = handler.get("config") if isinstance(handler, dict) else None
    if isinstance(config, dict) and isinstance(roles := config.pop(_ROLES, None), dict):
        handler[_ROLES] = roles
