"""Read the credentials of a machine from its configuration."""

from __future__ import annotations

import logging
import socket
from dataclasses import replace
from functools import partial

from cogwork.auth.access_list import AccessList
from cogwork.auth.credentials import KnownCredentials, StoredSecret
from cogwork.auth.granted_access import GrantedAccess
from cogwork.auth.roles import ROLE_NAMES, Role
from cogwork.auth.signing_key import SigningKey
from cogwork.auth.tokens import ExternalKeys
from cogwork.config.schema.host_names import allowed_host_names
from cogwork.config.schema.machine import MachineConfig
from cogwork.config.schema.network import ExternalAuth
from cogwork.front.peer_name import digest_of
from cogwork.net.host_names import is_allowed_host

_ID_LENGTH = 16

_log = logging.getLogger("rdk.auth")


def read_credentials(config: MachineConfig, key: SigningKey) -> KnownCredentials:
    handlers, external = config.auth.handlers, config.auth.external_auth_config
    names = allowed_host_names(config, socket.gethostname())
    return KnownCredentials(
        {
            key_id: StoredSecret(
                key.digest(secret),
                _role_of(handler.roles.get(key_id)),
                handler.names.get(key_id, ""),
            )
            for handler in handlers
            for key_id, secret in handler.api_keys.items()
        },
        [StoredSecret(key.digest(secret)) for handler in handlers for secret in handler.secrets],
        partial(is_allowed_host, names=names),
        _read_external_keys(external, config, key) if external else None,
        {digest_of(name): name for name in config.auth.tls_auth_entities},
    )


def read_granted(config: MachineConfig, access: AccessList) -> GrantedAccess:
    """Return the access that the access list of the cloud grants."""
    names = allowed_host_names(config, socket.gethostname())
    try:
        return GrantedAccess(access, partial(is_allowed_host, names=names))
    except ValueError as error:
        _log.error("cannot use the public keys of the cloud: %s; refusing its tokens", error)
        return GrantedAccess(replace(access, jwks={}), partial(is_allowed_host, names=names))


def audience_of(config: MachineConfig, key: SigningKey) -> str:
    """Return the audience of this machine's tokens.

    The audience is the ID of the machine's part if it has joined a cloud: another machine may get
    the same name later, but not the same ID. Otherwise, it is the name in the configuration, or the
    start of the ID of the signing key. The audience is short, because every call sends it.
    """
    if config.cloud is not None:
        return config.cloud.id
    return config.network.fqdn or key.id[:_ID_LENGTH]


def _role_of(name: str | None) -> Role:
    return ROLE_NAMES[name] if name is not None else Role.OWNER


def _read_external_keys(
    external: ExternalAuth, config: MachineConfig, key: SigningKey
) -> ExternalKeys | None:
    cloud_name = config.cloud.fqdn if config.cloud is not None else ""
    try:
        return ExternalKeys(
            external.jwks, audience_of(config, key), config.network.fqdn or cloud_name
        )
    except ValueError as error:
        _log.error(
            "cannot use the public keys of the external issuer: %s; refusing its tokens", error
        )
        return None
