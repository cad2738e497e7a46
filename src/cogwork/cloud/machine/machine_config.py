"""The configuration for a machine: the owner's configuration, completed by the cloud."""

from __future__ import annotations

import hashlib
from typing import Any, Final

from viam.gen.app.v1 import robot_pb2 as pb

from cogwork.cloud.configuration.config_text import parse_config
from cogwork.cloud.configuration.fragment_lookup import merge_for_part
from cogwork.cloud.fleet.local_keys import list_local_keys
from cogwork.cloud.fleet.parts import LocatedPart
from cogwork.cloud.identity.public_name import PublicName, local_name
from cogwork.cloud.keys.key_records import list_part_token_keys
from cogwork.cloud.machine.machine_logins import carry_roles, join_logins
from cogwork.cloud.machine.message_fit import fit_message
from cogwork.cloud.operations.context import CloudContext
from cogwork.cloud.registry.resolution import resolve_registry
from cogwork.cloud.storage.records import Transaction

_DIGEST_LENGTH: Final = 12


def build_machine_config(
    tx: Transaction, part: LocatedPart, context: CloudContext, *, has_access_list: bool
) -> pb.RobotConfig:
    """Return the configuration of a part, as a message.

    A machine with an access list gets no logins of the cloud, because it would store copies of
    them. Other machines have no other way to check clients, so they get those logins that are valid
    for no other machine.
    """
    merged = merge_for_part(tx, part, parse_config(part.config))
    config = resolve_registry(tx, part, merged.config)
    config = _drop_disabled(config, _UNMARKED)
    auth, left_out = config.get("auth"), list[str]()
    if has_access_list:
        auth = carry_roles(auth)
    else:
        config = _drop_disabled(config, _MARKED)
        keys = list_local_keys(tx, context.keyring, part.machine_id)
        auth, left_out = join_logins(auth, keys, list_part_token_keys(tx))
    message, unfit = fit_message({**config, "auth": auth} if auth is not None else config)
    for mistake in (*merged.mistakes, *left_out, *unfit):
        message.overwrite_fragment_status.add(error=str(mistake))
    message.cloud.CopyFrom(_describe_cloud(part, context.name))
    if not has_access_list:
        secret = context.keyring.derive_secret(part.id)
        message.cloud.location_secret = secret
        message.cloud.location_secrets.add(id=part.id, secret=secret)
    message.revision = f"{part.revision}-{_digest(message)}"
    return message


_MARKED: Final = ("components", "services", "remotes")
"""Sections whose entries a message marks as disabled. Servers of other vendors would run them."""
_UNMARKED: Final = ("modules", "processes", "jobs", "packages")
"""Sections whose entries a message cannot mark as disabled."""


def _drop_disabled(config: dict[str, Any], sections: tuple[str, ...]) -> dict[str, Any]:
    """Remove disabled entries."""

    def is_enabled(resource: Any) -> bool:
        return not isinstance(resource, dict) or resource.get("disabled") is not True

    dropped = {
        section: [each for each in config[section] if is_enabled(each)]
        for section in sections
        if isinstance(config.get(section), list)
    }
    return {**config, **dropped}


def _digest(message: pb.RobotConfig) -> str:
    """Return a digest of the whole message, which can change without an edit of the
    configuration."""
    data = message.SerializeToString(deterministic=True)
    return hashlib.sha256(data).hexdigest()[:_DIGEST_LENGTH]


def _describe_cloud(part: LocatedPart, cloud: PublicName) -> pb.CloudConfig:
    return pb.CloudConfig(
        id=part.id,
        fqdn=cloud.full_name(part),
        local_fqdn=local_name(part),
        managed_by=cloud.domain,
        signaling_address=cloud.address,
        signaling_insecure=not cloud.is_encrypted,
        primary_org_id=part.organization_id,
        location_id=part.location_id,
        machine_id=part.machine_id,
    )
