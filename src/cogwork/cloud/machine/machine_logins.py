"""The logins in the configuration of a machine without an access list.

Servers of other vendors treat every member of a handler's `config`, except `key` and `keys`, as a
key, and fail at a member that is not a text. So the `config` of a handler has no other members.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Final

from cogwork.core.errors import InvalidRequest
from cogwork.resource.messages.config_message import to_message

_API_KEY: Final = "api-key"
_KEYS: Final = "keys"
_ROLES: Final = "roles"

Json = dict[str, Any]


def join_logins(
    configured: Any, keys: Mapping[str, str], token_keys: Sequence[Json]
) -> tuple[Json, list[str]]:
    """Return the section `auth` with the logins of the cloud, and the mistakes in `configured`.

    `keys` has secrets by ID. If the message cannot carry the configured section, leave it out,
    because the logins of the cloud must be included.
    """
    found = copy.deepcopy(configured) if isinstance(configured, dict) else {}
    try:
        mistakes = _drop_roles(found)
        _add_logins(found, keys, token_keys)
        to_message({"auth": found})
    except (InvalidRequest, AttributeError, TypeError) as error:
        mistakes = [f"the configured logins are left out: {error}"]
        found = {}
        _add_logins(found, keys, token_keys)
    return found, mistakes


def carry_roles(configured: Any) -> Any:
    """Move the roles in a section `auth` into `config`, where the message can carry them.

    Only machines with an access list read roles from `config`.
    """
    if not isinstance(configured, dict) or not isinstance(configured.get("handlers"), list):
        return configured
    found = copy.deepcopy(configured)
    for handler in found["handlers"]:
        if isinstance(handler, dict) and _ROLES in handler:
            _get_object(handler, "config")[_ROLES] = handler.pop(_ROLES)
    return found


def _drop_roles(auth: Json) -> list[str]:
    """Remove keys with a role below owner: the machine would treat their clients as owners."""
    lower: list[str] = []
    for handler in _get_list(auth, "handlers"):
        if handler.get("type") != _API_KEY:
            continue
        roles, config = handler.pop(_ROLES, None) or {}, _get_object(handler, "config")
        lower += (key for key, role in roles.items() if role != "owner")
        handler["config"] = {
            name: value
            for name, value in config.items()
            if name not in lower and isinstance(value, str)
        }
        handler["config"][_KEYS] = [key for key in _get_list(config, _KEYS) if key not in lower]
    auth["handlers"] = [
        each
        for each in auth["handlers"]
        if each.get("type") != _API_KEY or each["config"] != {_KEYS: []}
    ]
    return [
        f'key "{key}" is left out: this machine knows no roles, so that it would be an owner; '
        "update the machine, or let it connect through the cloud"
        for key in lower
    ]


def _add_logins(auth: Json, keys: Mapping[str, str], token_keys: Sequence[Json]) -> None:
    jwks = _get_object(_get_object(auth, "external_auth_config"), "jwks")
    _get_list(jwks, "keys").extend(token_keys)
    if not keys:
        return
    handlers = _get_list(auth, "handlers")
    # Add to an existing handler, because a machine accepts only one handler of each type.
    handler = next((each for each in handlers if each.get("type") == _API_KEY), None)
    if handler is None:
        handler = {"type": _API_KEY}
        handlers.append(handler)
    config = _get_object(handler, "config")
    listed = _get_list(config, _KEYS)
    listed += [key for key in sorted(keys) if key not in listed]
    config |= keys


def _get_object(found: Json, key: str) -> Json:
    """Return the object at a key, and create it if necessary."""
    if not isinstance(found.get(key), dict):
        found[key] = {}
    inner: Json = found[key]
    return inner


def _get_list(found: Json, key: str) -> list[Any]:
    if not isinstance(found.get(key), list):
        found[key] = []
    inner: list[Any] = found[key]
    return inner
