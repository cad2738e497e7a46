"""The configuration of a machine that has joined a cloud, merged with its local settings."""

from __future__ import annotations

import copy
import json
from typing import Any, Final

from viam.gen.app.v1.robot_pb2 import RobotConfig

from cogwork.resource.messages.config_message import from_message

_LOCAL_CLOUD: Final = ("id", "secret", "api_key", "app_address", "refresh_interval")
"""The settings that the machine never takes from the cloud."""
_ROLES: Final = "roles"
_ANYWHERE: Final = "0.0.0.0:8080"
"""The address to listen on for a machine that has a login and a certificate."""


def join_config(
    message: RobotConfig, local: dict[str, Any], *, has_access_list: bool = False
) -> str:
    """Return the text of the configuration to run.

    `local` is the machine's own file. Its section `cloud` has the login, its `network.bind_address`
    applies if the cloud sets none, and its `auth` has the keys that also work without the cloud.
    `has_access_list` is True if clients of the cloud can log in.
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
    """Add the local login handlers whose types the cloud does not configure.

    Keep malformed handlers: without a handler, the machine might be open to everyone. The check of
    the configuration reports them.
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
    """Move the roles to the handler itself. In a message, they are among the handler's settings."""
    config = handler.get("config") if isinstance(handler, dict) else None
    if isinstance(config, dict) and isinstance(roles := config.pop(_ROLES, None), dict):
        handler[_ROLES] = roles
