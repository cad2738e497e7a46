"""`cogwork fleet login` and `cogwork fleet logout`."""

from __future__ import annotations

import argparse
import getpass
import os
import sys
from pathlib import Path

from cogwork.cli.client.grpc_client import CommandError
from cogwork.cli.fleet.fleet_client import FleetClient, report_errors
from cogwork.cli.fleet.inventory import list_organizations
from cogwork.cli.fleet.stored_login import (
    VARIABLES,
    FleetLogin,
    LoginStore,
    check_confidential,
    parse_cloud_address,
)
from cogwork.cli.terminal import EXIT_OK, print_error, print_json, print_text
from cogwork.core.os_error_text import os_reason

_MAX_KEY_SIZE = 4096


def login(arguments: argparse.Namespace) -> int:
    return report_errors(lambda: _log_in(arguments))


def logout(arguments: argparse.Namespace) -> int:
    del arguments
    return report_errors(_log_out)


def _log_in(arguments: argparse.Namespace) -> int:
    try:
        address = parse_cloud_address(arguments.url)
    except ValueError as error:
        raise CommandError(str(error)) from None
    authority = Path(arguments.ca) if arguments.ca is not None else None
    # Refuse an address without TLS before the user types a secret.
    check_confidential(FleetLogin(address, "", "", authority), os.environ)
    key_id = arguments.key_id or _ask_key_id()
    key = _read_key(arguments.key_file) if arguments.key_file is not None else _ask_key()
    entered = FleetLogin(address, key_id, key, authority)
    with FleetClient(entered) as client:
        organizations = list_organizations(client)
    store = LoginStore.of(os.environ)
    saved = store.save(entered)
    if arguments.json:
        listed = [{"id": each.id, "name": each.name} for each in organizations]
        print_json({"url": saved.url, "key_id": key_id, "organizations": listed})
    else:
        names = ", ".join(each.name for each in organizations) or "no organization"
        print_text(f"logged in to {saved.url} ({names}); the key is stored in {store.path}")
    _warn_of_variables()
    return EXIT_OK


def _log_out() -> int:
    store = LoginStore.of(os.environ)
    stored = store.load()
    if stored is None or not store.delete():
        print_text("not logged in")
        return EXIT_OK
    print_text(
        f"logged out of {stored.url}; the key {stored.key_id} is still valid until an owner "
        "deletes it"
    )
    _warn_of_variables()
    return EXIT_OK


def _warn_of_variables() -> None:
    found = [name for name in VARIABLES if os.environ.get(name)]
    if found:
        print_error(f"commands use {', '.join(found)} instead while it is set")


def _ask_key_id() -> str:
    _require_terminal()
    print("Key ID: ", end="", file=sys.stderr, flush=True)
    return _require_text(sys.stdin.readline(), "the ID of the key")


def _ask_key() -> str:
    _require_terminal()
    return _require_text(getpass.getpass("Key: "), "the key")


def _require_terminal() -> None:
    if not sys.stdin.isatty():
        raise CommandError(
            "cannot ask without a terminal; give --key-id ID and --key-file FILE, where - is "
            "standard input"
        )


def _read_key(file: str) -> str:
    """Return the first line of a file, or of standard input."""
    try:
        if file == "-":
            return _require_text(sys.stdin.readline(_MAX_KEY_SIZE), "the key")
        with Path(file).open(encoding="utf-8") as opened:
            return _require_text(opened.readline(_MAX_KEY_SIZE), f"the key in {file}")
    except OSError as error:
        raise CommandError(f"cannot read {file}: {os_reason(error)}") from None
    except ValueError:
        raise CommandError(f"{file} is not text; give a file that has only the key") from None


def _require_text(text: str, what: str) -> str:
    if not text.strip():
        raise CommandError(f"{what} is empty; nothing was stored")
    return text.strip()
