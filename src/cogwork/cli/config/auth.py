"""`cogwork auth`: the API keys in a configuration file."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import stat
import uuid
from pathlib import Path
from typing import Any

from cogwork.cli.terminal import EXIT_OK, EXIT_USAGE, print_error, print_json
from cogwork.core.errors import CogworkError
from cogwork.core.files import atomic

_KEY_BYTES = 24


class CannotEdit(CogworkError):
    """The file cannot be edited; the message explains why and what to do."""


def add_key(arguments: argparse.Namespace) -> int:
    """Write a new API key into the configuration, and print how to use it."""
    file = Path(arguments.file)
    key_id, key = str(uuid.uuid4()), secrets.token_urlsafe(_KEY_BYTES)
    try:
        config = _read(file)
        _insert(config, key_id, key, arguments.role)
        _write(file, config)
    except CannotEdit as error:
        print_error(str(error))
        return EXIT_USAGE
    address = _address_of(config)
    if arguments.json:
        print_json({"id": key_id, "key": key, "role": arguments.role, "address": address})
    else:
        print(_describe(file, key_id, key, arguments.role, address, is_encrypted=_uses_tls(config)))
    return EXIT_OK


def _read(file: Path) -> dict[str, Any]:
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise CannotEdit(f"cannot read {file}: {error.strerror}") from None
    except ValueError as error:
        raise CannotEdit(
            f"cannot edit {file}: {error}; only plain JSON can be edited, without comments or "
            "variables outside of strings"
        ) from None
    if not isinstance(config, dict):
        raise CannotEdit(f"cannot edit {file}: expected an object at the top level")
    return config


def _insert(config: dict[str, Any], key_id: str, key: str, role: str) -> None:
    try:
        handlers = config.setdefault("auth", {}).setdefault("handlers", [])
        handler = next((each for each in handlers if each["type"] == "api-key"), None)
        if handler is None:
            handler = {"type": "api-key", "config": {"keys": []}}
            handlers.append(handler)
        handler["config"].setdefault("keys", []).append(key_id)
        handler["config"][key_id] = key
        if role != "owner":
            handler.setdefault("roles", {})[key_id] = role
    except (AttributeError, KeyError, TypeError):
        raise CannotEdit(
            'the "auth" section has an unexpected form; check it with `cogwork config check`'
        ) from None


def _write(file: Path, config: dict[str, Any]) -> None:
    text = json.dumps(config, indent=2, ensure_ascii=False) + "\n"
    try:
        before = file.stat()
        # The file contains a secret now, so restrict access to it.
        atomic.write(file.resolve(), text.encode(), stat.S_IMODE(before.st_mode) & ~0o007)
        if (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
            os.chown(file, before.st_uid, before.st_gid)
    except OSError as error:
        raise CannotEdit(f"cannot write {file}: {error.strerror}") from None


def _uses_tls(config: dict[str, Any]) -> bool:
    network = config.get("network") or {}
    return bool(network.get("tls_cert_file")) and not network.get("no_tls")


def _address_of(config: dict[str, Any]) -> str:
    bound = str((config.get("network") or {}).get("bind_address") or "localhost:8080")
    host, _, port = bound.rpartition(":")
    return bound if host not in ("", "0.0.0.0", "[::]") else f"localhost:{port}"  # noqa: S104


def _describe(
    file: Path, key_id: str, key: str, role: str, address: str, *, is_encrypted: bool
) -> str:
    insecure = "" if is_encrypted else "\n  options.dial_options.insecure = True  # without TLS"
    return f"""Added an API key with the role {role} to {file}; a running machine reloads it.

  from viam.robot.client import RobotClient
  options = RobotClient.Options.with_api_key("{key}", "{key_id}"){insecure}
  machine = await RobotClient.at_address("{address}", options)

For the cogwork command:
  export COGWORK_API_KEY_ID={key_id} COGWORK_API_KEY={key}"""
