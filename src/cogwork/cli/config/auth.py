"""`cogwork auth`: the API keys in a configuration file."""

from __future__ import annotations

import argparse
import os
import secrets
import textwrap
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cogwork.cli.client.grpc_client import CommandError
from cogwork.cli.client.http_client import KEY_ID_VARIABLE, KEY_VARIABLE
from cogwork.cli.client.sdk_program import direct_dial_settings, render_program
from cogwork.cli.config.check import build_registry
from cogwork.cli.config.key_file import OWNER, CannotEdit, KeyEntry, KeyFile
from cogwork.cli.confirmation import CannotAsk, confirm
from cogwork.cli.fleet.selection import SelectionChoice, select
from cogwork.cli.table import align_rows
from cogwork.cli.terminal import (
    EXIT_FAILURE,
    EXIT_OK,
    EXIT_USAGE,
    print_error,
    print_json,
    print_text,
)
from cogwork.config.check.load_context import LoadContext
from cogwork.config.schema.network import MAX_KEY_NAME, is_key_name
from cogwork.core.paths import cogwork_home

_KEY_BYTES = 24


def add_key(arguments: argparse.Namespace) -> int:
    """Write a new API key into the configuration, and print how to use it."""
    return _report_errors(lambda: _add(arguments))


def list_keys(arguments: argparse.Namespace) -> int:
    return _report_errors(lambda: _list(KeyFile(Path(arguments.file)), as_json=arguments.json))


def remove_key(arguments: argparse.Namespace) -> int:
    return _report_errors(
        lambda: _remove(KeyFile(Path(arguments.file)), arguments.key, yes=arguments.yes)
    )


def _report_errors(run: Callable[[], int]) -> int:
    try:
        return run()
    except (CannotAsk, CannotEdit, CommandError) as error:
        print_error(str(error))
        return EXIT_USAGE


def _add(arguments: argparse.Namespace) -> int:
    file = KeyFile(Path(arguments.file))
    if arguments.name is not None and not is_key_name(arguments.name):
        raise CannotEdit(f"a name has 1 to {MAX_KEY_NAME} printable characters")
    if any(each.name == arguments.name for each in file.keys if each.name):
        raise CannotEdit(f'{file.path} has a key named "{arguments.name}"; choose another name')
    entry = KeyEntry(str(uuid.uuid4()), arguments.name or "", arguments.role)
    key = secrets.token_urlsafe(_KEY_BYTES)
    file.add(entry, key, _load_context())
    config = file.substituted(os.environ)
    address = _address_of(config)
    if arguments.json:
        print_json({**asdict(entry), "key": key, "address": address})
    else:
        print_text(_describe(file.path, entry, key, address, is_encrypted=_uses_tls(config)))
    return EXIT_OK


def _load_context() -> LoadContext:
    # The files may exist only on the computer of the machine.
    return LoadContext(
        build_registry(), cogwork_home(os.environ), os.environ, exists=lambda _: True
    )


def _list(file: KeyFile, *, as_json: bool) -> int:
    found = file.keys
    if as_json:
        print_json([asdict(each) for each in found])
        return EXIT_OK
    if not found:
        print_text(f"{file.path} has no API keys; add one with: cogwork auth add-key {file.path}")
        return EXIT_OK
    rows = [("NAME", "ROLE", "ID"), *((each.name, each.role, each.id) for each in found)]
    for line in align_rows(rows):
        print_text(line)
    return EXIT_OK


def _remove(file: KeyFile, wanted: str, *, yes: bool) -> int:
    found = file.keys
    choices = [
        (SelectionChoice(each.id, (each.name,) if each.name else (), each.role), each)
        for each in found
    ]
    entry = select("key", wanted, choices, f"cogwork auth list {file.path}")
    rest = [each for each in found if each.id != entry.id]
    if not rest and not file.has_other_logins:
        raise CannotEdit(
            f"{entry} is the only key in {file.path}, and without it, no login would be required; "
            f"first add another key with: cogwork auth add-key {file.path}"
        )
    keeps_owner = entry.role != OWNER or any(each.role == OWNER for each in rest)
    if yes:
        if not keeps_owner:
            print_error("warning: no key of an owner is left")
    elif not confirm(
        f"Remove the key {entry}? Its clients are logged out."
        + " No key of an owner is left." * (not keeps_owner)
    ):
        print_error("nothing was removed")
        return EXIT_FAILURE
    file.remove(entry, _load_context())
    print_text(f"removed the key {entry} from {file.path}; a running machine reloads it")
    return EXIT_OK


def _uses_tls(config: Mapping[str, Any]) -> bool:
    network = config.get("network") or {}
    return bool(network.get("tls_cert_file")) and not network.get("no_tls")


def _address_of(config: Mapping[str, Any]) -> str:
    bound = str((config.get("network") or {}).get("bind_address") or "localhost:8080")
    host, _, port = bound.rpartition(":")
    return bound if host not in ("", "0.0.0.0", "[::]") else f"localhost:{port}"  # noqa: S104


def _describe(file: Path, entry: KeyEntry, key: str, address: str, *, is_encrypted: bool) -> str:
    settings = direct_dial_settings(address, is_encrypted=is_encrypted)
    program = render_program(address, KEY_ID_VARIABLE, KEY_VARIABLE, settings)
    named = f" named {entry.name}" if entry.name else ""
    return f"""\
Added an API key{named} with the role {entry.role} to {file}; a running machine reloads it.

The cogwork command and the program below read the key from the environment:
  export {KEY_ID_VARIABLE}={entry.id} {KEY_VARIABLE}={key}

{textwrap.indent(program, "  ").rstrip()}"""
