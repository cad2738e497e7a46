"""The cloud that `cogwork fleet` uses, and the API key for its login."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cogwork.cli.client.grpc_client import CommandError
from cogwork.cli.client.http_client import ALLOW_PLAINTEXT_VARIABLE
from cogwork.core.files import atomic
from cogwork.core.os_error_text import os_reason, write_reason
from cogwork.core.paths import cogwork_home
from cogwork.net.address import TLS_PREFIX, is_loopback, is_loopback_address, parse_address

ADDRESS_VARIABLE = "COGWORK_FLEET_ADDRESS"
KEY_ID_VARIABLE = "COGWORK_FLEET_KEY_ID"
KEY_VARIABLE = "COGWORK_FLEET_KEY"
VARIABLES = (ADDRESS_VARIABLE, KEY_ID_VARIABLE, KEY_VARIABLE)

_PLAINTEXT_PREFIX = "http://"
_HTTP_PORT, _HTTPS_PORT = 80, 443
_LOCAL_PORT = 8090
"""The default port of `cogwork-cloud serve`."""
_PRIVATE = 0o600


@dataclass(frozen=True, slots=True)
class FleetLogin:
    address: str
    """The address: `https://HOST:PORT`, or `HOST:PORT` without TLS."""
    key_id: str
    key: str = field(repr=False)
    authority: Path | None = None
    """The certificates of the cloud's authority, as PEM; None for a public authority."""

    @property
    def is_encrypted(self) -> bool:
        return self.address.startswith(TLS_PREFIX)

    @property
    def url(self) -> str:
        return self.address if self.is_encrypted else _PLAINTEXT_PREFIX + self.address

    @property
    def host(self) -> str:
        return self.address.removeprefix(TLS_PREFIX).rpartition(":")[0]

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])


class LoginStore:
    """Stores the login of one user, in files that no other user can read."""

    def __init__(self, home: Path) -> None:
        self._login = home / "fleet" / "login.json"
        self._authority = home / "fleet" / "ca.pem"

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> LoginStore:
        return cls(cogwork_home(environment))

    @property
    def path(self) -> Path:
        return self._login

    def save(self, login: FleetLogin) -> FleetLogin:
        """Store a login with a copy of its authority. Raise CommandError."""
        content = {"address": login.address, "key_id": login.key_id, "key": login.key}
        try:
            if login.authority is None:
                self._authority.unlink(missing_ok=True)
            else:
                certificates = login.authority.read_bytes()
                atomic.write(self._authority, certificates, _PRIVATE)
            atomic.write(self._login, f"{json.dumps(content, indent=2)}\n".encode(), _PRIVATE)
        except OSError as error:
            raise CommandError(
                f"cannot store the login: {write_reason(error)} ({error.filename or self._login})"
            ) from None
        return self._make(content)

    def load(self) -> FleetLogin | None:
        """Return the stored login; None if the user is not logged in. Raise CommandError."""
        try:
            return self._make(json.loads(self._login.read_bytes()))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CommandError(f"cannot read {self._login}: {os_reason(error)}") from None
        except (ValueError, KeyError, TypeError):
            raise CommandError(
                f"{self._login} is damaged; log in again with: cogwork fleet login URL"
            ) from None

    def delete(self) -> bool:
        """Delete the stored login. Return whether there was one. Raise CommandError."""
        try:
            self._authority.unlink(missing_ok=True)
            self._login.unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise CommandError(
                f"cannot delete {error.filename or self._login}: {os_reason(error)}"
            ) from None
        return True

    def _make(self, content: Mapping[str, str]) -> FleetLogin:
        authority = self._authority if self._authority.exists() else None
        address, key_id, key = (str(content[name]) for name in ("address", "key_id", "key"))
        return FleetLogin(address, key_id, key, authority)


def find_login(environment: Mapping[str, str]) -> FleetLogin:
    """Return the login from the environment, or else the stored login. Raise CommandError."""
    login = read_variables(environment) or LoginStore.of(environment).load()
    if login is None:
        raise CommandError(
            "not logged in to a cloud; run `cogwork fleet login URL`, or set "
            + ", ".join(VARIABLES)
        )
    check_confidential(login, environment)
    return login


def read_variables(environment: Mapping[str, str]) -> FleetLogin | None:
    """Return the login from the environment variables; None if none is set. Raise CommandError."""
    values = [environment.get(name, "") for name in VARIABLES]
    if not any(values):
        return None
    missing = [name for name, value in zip(VARIABLES, values, strict=True) if not value]
    if missing:
        raise CommandError(
            f"set {' and '.join(missing)}, too; set either all variables of the login, or none"
        )
    address, key_id, key = values
    try:
        return FleetLogin(parse_cloud_address(address), key_id, key)
    except ValueError as error:
        raise CommandError(f"{ADDRESS_VARIABLE}: {error}") from None


def parse_cloud_address(text: str) -> str:
    """Return `https://HOST:PORT`, or `HOST:PORT` without TLS. Raise ValueError.

    If the address has no scheme, TLS is used unless the cloud is on this computer.
    """
    if text.startswith(TLS_PREFIX):
        return parse_address(text, _HTTPS_PORT)
    if text.startswith(_PLAINTEXT_PREFIX):
        return parse_address(text, _HTTP_PORT)
    local = parse_address(text, _LOCAL_PORT)
    if is_loopback_address(local):
        return local
    return parse_address(TLS_PREFIX + text, _HTTPS_PORT)


def check_confidential(login: FleetLogin, environment: Mapping[str, str]) -> None:
    """Raise CommandError if the key would be sent unencrypted over the network."""
    is_confidential = login.is_encrypted or is_loopback(login.host)
    if not is_confidential and not environment.get(ALLOW_PLAINTEXT_VARIABLE):
        raise CommandError(
            f"not sending the key to {login.address} without TLS; write https:// before the "
            f"address, or set {ALLOW_PLAINTEXT_VARIABLE}=1"
        )
