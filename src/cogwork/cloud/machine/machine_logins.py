"""The logins that a machine accepts: those of its owner's configuration, and those of the cloud."""

from __future__ import annotations

import copy
from typing import Any, Final, NamedTuple

from cogwork.cloud.identity.machine_tokens import MachineTokenIssuer
from cogwork.core.errors import InvalidRequest
from cogwork.resource.config_message import to_message

_KEYS: Final = "keys"
_ROLES: Final = "roles"

Json = dict[str, Any]


class MachineKey(NamedTuple):
    secret: str
    role: str


def join_logins(
    configured: Any, keys: dict[str, MachineKey], issuer: MachineTokenIssuer
) -> tuple[Json, list[str]]:
    """Return the section `auth` with the logins of the cloud, and what is left out.

    A configured section that machines cannot get is left out: the logins of the cloud must not be
    missing because of it.
    """
    mistakes: list[str] = []
    found = copy.deepcopy(configured) if isinstance(configured, dict) else {}
    try:
        _add_logins(found, keys, issuer)
        to_message({"auth": found})
    except (InvalidRequest, AttributeError) as error:
        mistakes.append(f"the configured logins are left out: {error}")
        found = {}
        _add_logins(found, keys, issuer)
    return found, mistakes


def _add_logins(auth: Json, keys: dict[str, MachineKey], issuer: MachineTokenIssuer) -> None:
    jwks = _get_object(_get_object(auth, "external_auth_config"), "jwks")
    _get_list(jwks, "keys").append(issuer.public_key)
    if not keys:
        return
    handlers = _get_list(auth, "handlers")
    # A machine accepts only one handler of each type.
    handler = next((each for each in handlers if each.get("type") == "api-key"), None)
    if handler is None:
        handler = {"type": "api-key"}
        handlers.append(handler)
    config, roles = _get_object(handler, "config"), _get_object(handler, _ROLES)
    listed = _get_list(config, _KEYS)
    listed += [key for key in sorted(keys) if key not in listed]
    config |= {key: each.secret for key, each in keys.items()}
    roles |= {key: each.role for key, each in keys.items()}
    # The message has no other place for roles.
    config[_ROLES] = handler.pop(_ROLES)


def _get_object(found: Json, key: str) -> Json:
    """Return an object, which is put there if there is none."""
    if not isinstance(found.get(key), dict):
        found[key] = {}
    inner: Json = found[key]
    return inner


def _get_list(found: Json, key: str) -> list[Any]:
    if not isinstance(found.get(key), list):
        found[key] = []
    inner: list[Any] = found[key]
    return inner
