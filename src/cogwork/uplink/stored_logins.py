"""Removes the logins of clients from the files of a machine.

Older versions stored these logins in plaintext with every configuration from the cloud, although a
login may open other machines, too. The machine now keeps an access list instead, so that clients
can log in without the cloud.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
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
    parse_access_list,
)
from cogwork.auth.roles import ROLE_NAMES, Role
from cogwork.auth.verifier import credential_digest, part_verifier
from cogwork.config.source.config_history import ConfigHistory
from cogwork.config.source.last_good import LastGood
from cogwork.core.errors import CogworkError
from cogwork.core.files import atomic
from cogwork.core.files.file_identity import identify
from cogwork.resource.messages.config_message import from_message

_FRESH_SECONDS: Final = 30 * 86_400
_NOT_KEYS: Final = ("key", "keys", "roles")

Json = dict[str, Any]


class StoredCopies(NamedTuple):
    """The stored copies of a machine's configurations."""

    texts: Sequence[LastGood]
    history: ConfigHistory
    message: LastGood
    """The last message of the cloud."""
    marker: Path
    """The file with the fingerprint of the purged copies. It no longer matches if an older version
    stores logins again."""


class PartAccess(NamedTuple):
    """The file with the access list of a part."""

    part: str
    file: Path


def purge_logins(copies: StoredCopies, own: Json, access: PartAccess | None, now: float) -> bool:
    """Remove logins of the cloud from all copies. Return False if the copies were already purged.

    `own` is the machine's own file, whose logins are kept. `access` is None if the machine has left
    its cloud.

    Raise OSError or CogworkError if a copy cannot be read or written. The other copies are purged
    nevertheless, and the next start tries again.
    """
    if _read_marker(copies.marker) == _fingerprint(copies):
        return False
    steps: list[Callable[[], None]] = [
        partial(_purge_message, copies.message, access, now),
        *(partial(_purge_text, copy, own) for copy in copies.texts),
        partial(copies.history.rewrite, partial(remove_logins, own=own)),
    ]
    errors = []
    for step in steps:
        try:
            step()
        except (OSError, CogworkError) as error:
            errors.append(error)
    if errors:
        raise errors[0]
    atomic.write(copies.marker, _fingerprint(copies), 0o600)
    return True


def remove_logins(text: str, own: Json) -> str:
    """Return the text of a configuration without the logins that the cloud has added.

    Logins that are also in `own`, the machine's own file, are kept.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text  # without logins: servers write them only into valid JSON
    cloud = found.get("cloud") if isinstance(found, dict) else None
    if not isinstance(cloud, dict) or not cloud.get("fqdn"):
        return text
    removed = [
        cloud.pop(name)
        for name in ("location_secret", "location_secrets")
        if cloud.get(name) and cloud[name] != _member(own, "cloud").get(name)
    ]
    kept = [each for each in _list_handlers(found) if each in _list_handlers(own)]
    handlers = _member(found, "auth").get("handlers", kept)
    if handlers != kept:
        removed.append(found["auth"].pop("handlers"))
        found["auth"] |= {"handlers": kept} if kept else {}
    return json.dumps(found, indent=2) if removed else text


def _list_handlers(document: Json) -> list[Any]:
    found = _member(document, "auth").get("handlers")
    return found if isinstance(found, list) else []


def _member(document: Json, name: str) -> Json:
    found = document.get(name)
    return found if isinstance(found, dict) else {}


def _purge_text(copy: LastGood, own: Json) -> None:
    text = copy.read()
    if text is not None and (purged := remove_logins(text, own)) != text:
        copy.save(purged)


def _purge_message(copy: LastGood, access: PartAccess | None, now: float) -> None:
    text = copy.read()
    if text is None:
        return
    try:
        document = json.loads(text)
        message = RobotConfig.FromString(bytes.fromhex(document["message"]))
    except (ValueError, KeyError, TypeError, RecursionError, DecodeError):
        # Delete the message: it cannot be used, and may contain logins.
        copy.path.unlink()
        return
    if access is not None and document.get("part") == access.part:
        _keep_access(message, access, now)
    del message.auth.handlers[:]
    message.cloud.location_secret = ""
    del message.cloud.location_secrets[:]
    document["message"] = message.SerializeToString(deterministic=True).hex()
    if (purged := json.dumps(document)) != text:
        copy.save(purged)


def _keep_access(message: RobotConfig, access: PartAccess, now: float) -> None:
    """Store an access list made from a message, if the cloud has not given a list."""
    if _has_list_of_cloud(access.file):
        return
    try:
        made = _make_access_list(from_message(message), access.part, now)
    except (LookupError, TypeError, ValueError, AttributeError, CogworkError):
        return  # the message is malformed, so the machine could not use it either
    if made.entries:
        atomic.make_directory(access.file.parent)
        atomic.write(access.file, encode_access_list(made).encode(), 0o600)


def _has_list_of_cloud(access_file: Path) -> bool:
    """Return whether the stored list came from the cloud, and not from an earlier purge."""
    try:
        return bool(parse_access_list(access_file.read_bytes()).revision)
    except (FileNotFoundError, ValueError):
        return False


def _make_access_list(config: Json, part: str, now: float) -> AccessList:
    jwks = config.get("auth", {}).get("external_auth_config", {}).get("jwks", {})
    entries = index_entries(_list_entries(config, part))
    return AccessList(part, entries, jwks, "", now, now + _FRESH_SECONDS)


def _list_entries(config: Json, part: str) -> Iterator[AccessEntry]:
    for handler in config.get("auth", {}).get("handlers", ()):
        settings = handler.get("config", {})
        if handler.get("type") != "api-key":
            continue
        roles = settings.get("roles", {})
        for key, secret in settings.items():
            if key not in _NOT_KEYS and isinstance(secret, str):
                role = _find_role(roles, key)
                yield _make_entry(Principal(PrincipalKind.KEY, key), role, secret, part)
    for each in config.get("cloud", {}).get("location_secrets", ()):
        principal = Principal(PrincipalKind.LOCATION, each.get("id", ""))
        yield _make_entry(principal, Role.OWNER, each.get("secret", ""), part)


def _find_role(roles: Any, key: str) -> Role:
    """Return the role of a key; viewer if the role is malformed."""
    name = roles.get(key, "owner") if isinstance(roles, dict) else None
    return ROLE_NAMES.get(name, Role.VIEWER) if isinstance(name, str) else Role.VIEWER


def _read_marker(marker: Path) -> bytes | None:
    try:
        return marker.read_bytes()
    except FileNotFoundError:
        return None


def _fingerprint(copies: StoredCopies) -> bytes:
    """Return a digest of the copies' file metadata, which changes when a copy changes."""
    paths = [copy.path for copy in (*copies.texts, copies.message)]
    with contextlib.suppress(FileNotFoundError):
        paths += sorted(copies.history.directory.iterdir())
    found = [(os.fspath(path), _identify(path)) for path in paths]
    return hashlib.sha256(repr(found).encode()).hexdigest().encode()


def _identify(path: Path) -> tuple[int, ...]:
    try:
        return identify(path.lstat())
    except FileNotFoundError:
        return ()


def _make_entry(principal: Principal, role: Role, secret: str, part: str) -> AccessEntry:
    digest = credential_digest(secret)
    return AccessEntry(principal, role, part_verifier(digest, part, principal.id, principal.epoch))
