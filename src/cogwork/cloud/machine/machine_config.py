"""The configuration that a machine gets: what its owner wrote, and what only the cloud knows."""

from __future__ import annotations

import hashlib
from typing import Final

from viam.gen.app.v1 import robot_pb2 as pb

from cogwork.cloud.configuration.config_text import parse_config
from cogwork.cloud.configuration.fragment_lookup import merge_for_part
from cogwork.cloud.context import CloudContext
from cogwork.cloud.fleet.secrets import SecretOwner, list_secrets
from cogwork.cloud.identity.access import ResourceType, list_above
from cogwork.cloud.identity.keyring import Keyring
from cogwork.cloud.machine.machine_logins import MachineKey, join_logins
from cogwork.cloud.machine.message_fit import fit_message
from cogwork.cloud.public_name import PublicName, local_name
from cogwork.cloud.registry.resolution import resolve_registry
from cogwork.cloud.storage.records import Row, Transaction

_DIGEST_LENGTH: Final = 12


def build_machine_config(tx: Transaction, part: Row, context: CloudContext) -> pb.RobotConfig:
    """`part` is a row with the location of its machine."""
    merged = merge_for_part(tx, part, parse_config(part["config"]))
    config = resolve_registry(tx, part, merged.config)
    keys = _list_keys(tx, part, context.keyring)
    auth, left_out = join_logins(config.get("auth"), keys, context.machine_tokens)
    message, unfit = fit_message({**config, "auth": auth})
    for mistake in (*merged.mistakes, *left_out, *unfit):
        message.overwrite_fragment_status.add(error=str(mistake))
    message.cloud.CopyFrom(_describe_cloud(tx, part, context.name, context.keyring))
    message.revision = f"{part['revision']}-{_digest(message)}"
    return message


def _digest(message: pb.RobotConfig) -> str:
    """Identify everything that the machine gets, because not only edits change it."""
    data = message.SerializeToString(deterministic=True)
    return hashlib.sha256(data).hexdigest()[:_DIGEST_LENGTH]


def _describe_cloud(
    tx: Transaction, part: Row, cloud: PublicName, keyring: Keyring
) -> pb.CloudConfig:
    found = list_secrets(tx, keyring, SecretOwner.LOCATION, part["location_id"])
    secrets = [pb.LocationSecret(id=each.id, secret=each.secret) for each in found]
    return pb.CloudConfig(
        id=part["id"],
        fqdn=cloud.full_name(part),
        local_fqdn=local_name(part),
        managed_by=cloud.domain,
        signaling_address=cloud.address,
        signaling_insecure=not cloud.is_encrypted,
        location_secret=secrets[0].secret,
        location_secrets=secrets,
        primary_org_id=part["organization_id"],
        location_id=part["location_id"],
        machine_id=part["machine_id"],
    )


def _list_keys(tx: Transaction, part: Row, keyring: Keyring) -> dict[str, MachineKey]:
    """Return the keys that have a role on the machine, so that their holders can log in to it.

    Only keys of its own organization: the creator of the organization has a role here with a key
    of another, which must not be stored on these machines.
    """
    found: dict[str, MachineKey] = {}
    for kind, name in list_above(tx, (ResourceType.MACHINE, part["machine_id"])):
        rows = tx.query(
            "SELECT api_key.id, api_key.sealed, role_grant.role FROM api_key "
            "JOIN role_grant ON role_grant.key_id = api_key.id "
            "WHERE resource_type = ? AND resource_id = ? AND api_key.organization_id = ?",
            *(kind, name, part["organization_id"]),
        )
        for row in rows:
            if row["id"] not in found or row["role"] == "owner":
                found[row["id"]] = MachineKey(keyring.unseal(row["sealed"]), row["role"])
    return found
