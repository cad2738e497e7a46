"""Removes logins of a cloud from what a machine has stored.

Older versions stored them in plaintext with every configuration, and they work on other machines,
too. What a machine needs of them without its cloud is kept as an access list.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from google.protobuf.message import DecodeError
from viam.gen.app.v1.robot_pb2 import RobotConfig

from cogwork.auth.access_list import (
    AccessEntry,
    AccessList,
    Principal,
    PrincipalKind,
    encode_access_list,
    index_entries,
)
from cogwork.auth.roles import ROLE_NAMES, Role
from cogwork.auth.verifier import credential_digest, part_verifier
from cogwork.config.config_history import ConfigHistory
from cogwork.config.last_good import LastGood
from cogwork.core import atomic
from cogwork.resource.config_message import from_message

_FRESH_SECONDS: Final = 30 * 86_400
_NOT_KEYS: Final = ("key", "keys", "roles")

Json = dict[str, Any]


class StoredCopies(NamedTuple):
    """What a machine keeps of its configurations."""

    texts: Sequence[LastGood]
    history: ConfigHistory
    message: LastGood
    """The last message of the cloud."""
    marker: Path
    """Exists when everything was purged."""


def purge_logins(copies: StoredCopies, part: str, access_file: Path, now: float) -> bool:
    """Remove logins of the cloud, and return whether there were any copies to look at.

    Raise OSError or CogworkError if a copy cannot be read or written; the next start tries again.
    """
    if copies.marker.exists():
        return False
    _purge_message(copies.message, part, access_file, now)
    for copy in copies.texts:
        text = copy.read()
        if text is not None and (purged := remove_logins(text)) != text:
            copy.save(purged)
    copies.history.rewrite(remove_logins)
    atomic.write(copies.marker, b"", 0o600)
    return True


def remove_logins(text: str) -> str:
    """Return the text of a configuration that came from a cloud without its logins."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text  # not what this server writes
    cloud = found.get("cloud") if isinstance(found, dict) else None
    if not isinstance(cloud, dict) or not cloud.get("fqdn"):
        return text
    removed = [cloud.pop(name, None) for name in ("location_secret", "location_secrets")]
    if isinstance(found.get("auth"), dict):
        removed.append(found["auth"].pop("handlers", None))
    return json.dumps(found, indent=2) if any(removed) else text


def _purge_message(copy: LastGood, part: str, access_file: Path, now: float) -> None:
    text = copy.read()
    try:
        document = json.loads(text) if text is not None else {}
        message = RobotConfig.FromString(bytes.fromhex(document["message"]))
    except (ValueError, KeyError, TypeError, DecodeError):
        return
    if document.get("part") == part and not access_file.exists():
        access = index_entries(_list_entries(from_message(message), part))
        if access:
            jwks = from_message(message)["auth"].get("external_auth_config", {}).get("jwks", {})
            found = AccessList(part, access, jwks, "", now, now + _FRESH_SECONDS)
            atomic.make_directory(access_file.parent)
            atomic.write(access_file, encode_access_list(found).encode(), 0o600)
    del message.auth.handlers[:]
    message.cloud.location_secret = ""
    del message.cloud.location_secrets[:]
    document["message"] = message.SerializeToString(deterministic=True).hex()
    copy.save(json.dumps(document))


def _list_entries(config: Json, part: str) -> Iterator[AccessEntry]:
    for handler in config.get("auth", {}).get("handlers", ()):
        settings = handler.get("config", {})
        if handler.get("type") != "api-key":
            continue
        roles = settings.get("roles", {})
        for key, secret in settings.items():
            if key not in _NOT_KEYS and isinstance(secret, str):
                role = ROLE_NAMES.get(roles.get(key, "owner"), Role.VIEWER)
                yield _make_entry(Principal(PrincipalKind.KEY, key), role, secret, part)
    for each in config.get("cloud", {}).get("location_secrets", ()):
        principal = Principal(PrincipalKind.LOCATION, each.get("id", ""))
        yield _make_entry(principal, Role.OWNER, each.get("secret", ""), part)


def _make_entry(principal: Principal, role: Role, secret: str, part: str) -> AccessEntry:
    digest = credential_digest(secret)
    return AccessEntry(principal, role, part_verifier(digest, part, principal.id, principal.epoch))
