"""The implementation of `cogwork-cloud key`. The cloud may be running."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from cogwork.cloud.commands.create_cloud import command_call
from cogwork.cloud.control_plane.cloud_directory import CloudDirectory, CloudSettings, NoCloud
from cogwork.cloud.fleet.keys import add_key
from cogwork.cloud.identity.access import CloudRole, ResourceType
from cogwork.cloud.identity.cloud_record import read_cloud
from cogwork.cloud.keys.cloud_key import CloudKey, KeyPurpose, KeyState, state_of
from cogwork.cloud.keys.cloud_keys import CloudKeys
from cogwork.cloud.keys.key_records import list_cloud_keys, rotate_key
from cogwork.cloud.keys.keyring import Keyring
from cogwork.cloud.keys.sealer import Sealer
from cogwork.cloud.operations.names import require_name
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import select
from cogwork.cloud.storage.sqlite_records import read_records, write_records
from cogwork.cloud.storage.tables import OrganizationRow
from cogwork.core.clock import Clock
from cogwork.core.errors import InvalidRequest, NotFound
from cogwork.core.escape import escape_json

_OK: Final = 0
_ID_SHOWN: Final = 16
_AFTER_NOW: Final = {
    KeyPurpose.TOKEN: (
        "Every token ends: machines log in again by themselves, other programs must be restarted."
    ),
    KeyPurpose.PART_TOKEN: (
        "Tokens for machines end as soon as a machine has its new access list: at once if it is "
        "connected."
    ),
    KeyPurpose.AUTHORITY: (
        "Give clients the new ca.pem. A machine gets a new certificate when two thirds of its "
        "certificate's time are over; to replace it at once, delete certificate.pem of the machine "
        "and restart it."
    ),
    KeyPurpose.SEALING: "All secrets are sealed again while the cloud is served.",
}

T = TypeVar("T")


def create_owner_key(directory: CloudDirectory, organization: str, name: str, clock: Clock) -> int:
    """Create a key for an owner who has lost theirs."""
    settings = directory.require_current()

    def work(tx: Transaction, root: Sealer) -> tuple[str, str, str]:
        keyring = Keyring(CloudKeys(root, clock, list_cloud_keys(tx)))
        call = command_call(keyring, settings.domain, clock)
        found = _find_organization(tx, organization)
        owner = (ResourceType.ORGANIZATION, found.id), CloudRole.OWNER
        key_id, key = add_key(tx, call, found.id, require_name(name), [owner])
        return found.name, key_id, key

    owned, key_id, key = _transact(directory, work)
    print(f"""Created a key for an owner of {owned}, which is shown only once:
  key ID: {key_id}
  key:    {key}

Delete the lost one:
  cogwork fleet keys
  cogwork fleet key delete KEY""")
    return _OK


def list_keys(directory: CloudDirectory, clock: Clock, *, as_json: bool) -> int:
    settings = directory.require_current()

    def read(tx: Transaction) -> list[CloudKey]:
        _require_records_of(tx, settings)
        return list_cloud_keys(tx)

    found, now = read_records(directory.records, read), _now(clock)
    rows = [_describe(key, found, now) for key in found]
    if as_json:
        print(escape_json(json.dumps(rows, indent=2)))
    else:
        table = [("PURPOSE", "STATE", "ID", "CREATED", "USED FROM", "ENDS")]
        table += [
            (
                *(row["purpose"], row["state"], row["id"][:_ID_SHOWN], row["created"]),
                *(row["used_from"], row["ends"] or "-"),
            )
            for row in rows
        ]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for line in table:
            cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
            print("  ".join(cells).rstrip())
    return _OK


def rotate(directory: CloudDirectory, purpose: KeyPurpose, clock: Clock, *, at_once: bool) -> int:
    now = _now(clock)

    def work(tx: Transaction, root: Sealer) -> tuple[CloudKey, list[CloudKey], bytes]:
        # Check the root key first: with a wrong one, the next start of the cloud would fail.
        CloudKeys(root, clock, list_cloud_keys(tx))
        new = rotate_key(tx, root, purpose, now, at_once=at_once)
        keys = list_cloud_keys(tx)
        return new, keys, CloudKeys(root, clock, keys).authority_bundle

    new, keys, authorities = _transact(directory, work)
    directory.save_authorities(authorities)
    print(f"created the {purpose} key {new.id[:_ID_SHOWN]}")
    if at_once:
        print(f"It is used from now on. {_AFTER_NOW[purpose]}")
        return _OK
    print(f"It is used from {_format_time(new.active_from)} on.")
    for key in keys:
        if key.purpose is purpose and key.ends_at is not None:
            print(f"The key {key.id[:_ID_SHOWN]} is accepted until {_format_time(key.ends_at)}.")
    if purpose is KeyPurpose.AUTHORITY:
        before = _format_time(new.active_from)
        print(f"Give clients the new {directory.authorities}, which has both, before {before}.")
    return _OK


def _describe(key: CloudKey, keys: Sequence[CloudKey], now: int) -> dict[str, Any]:
    state: KeyState = state_of(key, keys, now)
    return {
        "id": key.id,
        "purpose": str(key.purpose),
        "state": str(state),
        "created": _format_time(key.created_at),
        "used_from": _format_time(key.active_from),
        "ends": _format_time(key.ends_at) if key.ends_at is not None else None,
    }


def _find_organization(tx: Transaction, wanted: str) -> OrganizationRow:
    organizations = select(tx, OrganizationRow, "ORDER BY name, id")
    found = [each for each in organizations if not wanted or wanted in (each.id, each.name)]
    if len(found) == 1:
        return found[0]
    known = ", ".join(f"{each.name} ({each.id})" for each in organizations[:20])
    if not found:
        raise NotFound(f'there is no organization "{wanted}"; choose one of: {known}')
    raise InvalidRequest(f"choose one of the organizations with --organization: {known}")


def _transact(directory: CloudDirectory, work: Callable[[Transaction, Sealer], T]) -> T:
    settings, root = directory.require_current(), directory.read_root_key()

    def check(tx: Transaction) -> T:
        _require_records_of(tx, settings)
        return work(tx, root)

    return write_records(directory.records, check, migrates=False)


def _require_records_of(tx: Transaction, settings: CloudSettings) -> None:
    cloud = read_cloud(tx)
    if cloud is None or cloud.id != settings.cloud_id:
        raise NoCloud("records.db belongs to another cloud; restore it from a backup")


def _format_time(microseconds: int) -> str:
    time = datetime.datetime.fromtimestamp(microseconds / 1e6, datetime.UTC)
    return f"{time:%Y-%m-%d %H:%M} UTC"


def _now(clock: Clock) -> int:
    return int(clock.time() * 1e6)
