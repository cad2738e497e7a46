"""The sections `network` and `auth`: addresses and authentication."""

from __future__ import annotations

import ipaddress
import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, JsonValue, model_validator

from cogwork.config.schema import codes
from cogwork.config.schema.fields import (
    Duration,
    FileField,
    Section,
    fault,
    require_certificate_pair,
)

MAX_KEY_NAME = 60

_PORT = re.compile(r"[0-9]{1,5}\Z")
_ORIGIN = re.compile(r"https?://[A-Za-z0-9._-]+(:[0-9]{1,5})?\Z")
_HOST_NAME = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\Z")


def _check_host_and_port(text: str) -> str:
    _, colon, port = text.rpartition(":")
    if text and not (colon and _PORT.match(port) and int(port) <= 65535):
        raise fault(codes.BAD_VALUE, 'expected host:port, such as "localhost:8080"')
    return text


def _check_host_name(text: str) -> str:
    if len(text) > 253 or _HOST_NAME.match(text) is None:
        raise fault(
            codes.BAD_VALUE,
            'expected a host name without a scheme or a port, such as "robot.example"',
        )
    return text


def _check_origin(text: str) -> str:
    if _ORIGIN.match(text) is None:
        raise fault(codes.BAD_VALUE, 'expected an origin, such as "https://app.example"')
    return text.lower()


def _check_network(text: str) -> str:
    try:
        return str(ipaddress.ip_network(text, strict=False))
    except ValueError:
        raise fault(
            codes.BAD_VALUE, 'expected an IP address or a network, such as "10.0.0.0/8"'
        ) from None


def _check_heartbeat_window(seconds: float) -> float:
    if not 0.03 <= seconds <= 60:
        raise fault(codes.BAD_VALUE, "expected a duration between 30ms and 1m")
    return seconds


class SessionsConfig(Section):
    """The timeout of client sessions."""

    heartbeat_window: Annotated[Duration, AfterValidator(_check_heartbeat_window)] = 2.0
    """Time after the last heartbeat of a client until the resources that it moves are stopped, from
    `30ms` to `1m`."""


def _check_ice_url(text: str) -> str:
    scheme, _, rest = text.partition(":")
    if scheme not in ("stun", "stuns", "turn", "turns") or not rest:
        raise fault(
            codes.BAD_VALUE,
            f'"{text}" is not the URL of a STUN or TURN server; write stun:host:port or '
            "turn:host:port?transport=udp",
        )
    return text


class TunnelEndpoint(Section):
    """A local port that clients may reach through the machine."""

    port: Annotated[int, Field(ge=1, le=65535)]
    """The port number, from 1 to 65535."""
    connection_timeout: Duration = 10.0
    """Timeout for connecting to the port."""


class IceServerConfig(Section):
    """A STUN or TURN server."""

    urls: Annotated[list[Annotated[str, AfterValidator(_check_ice_url)]], Field(min_length=1)]
    """The URLs of the server, such as `stun:stun.example:3478` or
    `turn:turn.example:3478?transport=tcp`."""
    username: str = ""
    """The name to log in to a TURN server with."""
    credential: str = ""
    """The password to log in to a TURN server with."""
    shared_secret: str = ""
    """A secret that is shared with the TURN server (`static-auth-secret` of coturn), used instead
    of `username` and `credential` to generate passwords that expire."""


class NetworkConfig(Section):
    """The addresses and connections of the server."""

    fqdn: str = ""
    """The fully qualified domain name of the machine."""
    bind_address: Annotated[str, AfterValidator(_check_host_and_port)] = ""
    """The address to listen on. Defaults to `localhost:8080`. An address without a host, such as
    `:8080`, means every interface."""
    grpc_address: Annotated[str, AfterValidator(_check_host_and_port)] = ""
    """A second address for gRPC only, which transfers large messages faster. None by default."""
    insecure_without_auth: bool = False
    """Whether to listen on addresses that other computers can reach although no login is required.
    Anyone who reaches them can then control the machine. Otherwise, a machine without login listens
    on localhost only."""
    front: Literal["process", "in_process"] = "process"
    """The process that accepts connections and relays their bytes: a separate `process`, which
    leaves the server more time for calls, or the server itself (`in_process`), which saves about
    15 MB on a small board."""
    allowed_hosts: list[Annotated[str, AfterValidator(_check_host_name)]] = []
    """Additional host names that browsers may use for the machine, such as `robot.example`.
    IP addresses, `localhost`, `fqdn`, the computer's own name and the host of `bind_address` are
    always allowed."""
    allowed_origins: list[Annotated[str, AfterValidator(_check_origin)]] = []
    """Origins of other web sites whose pages may call the machine from a browser, such as
    `https://app.example`. Pages of the machine itself are always allowed."""
    trusted_proxies: list[Annotated[str, AfterValidator(_check_network)]] = []
    """The addresses or networks of proxies in front of the machine, such as `127.0.0.1` or
    `10.0.0.0/8`. The server takes the address of a client from the headers of these proxies: of the
    PROXY protocol, `Forwarded` or `X-Forwarded-For`. Headers of other clients are ignored. None by
    default."""
    tls_cert_file: FileField = ""
    """A PEM file with the TLS certificate of the server. Requires `tls_key_file`."""
    tls_key_file: FileField = ""
    """A PEM file with the private key of `tls_cert_file`."""
    tls_client_ca_file: FileField = ""
    """A PEM file with the certificates of the authorities that sign client certificates. Requires
    `tls_cert_file`. Clients without a certificate can still log in with credentials."""
    no_tls: bool = False
    """Whether to disable TLS even if there is a certificate."""
    ice_servers: list[IceServerConfig] = []
    """STUN and TURN servers for WebRTC, with which this machine and its clients find a path through
    routers. Without them, clients connect directly."""
    sessions: Annotated[SessionsConfig, Field(default_factory=SessionsConfig.model_construct)]
    """The timeout of client sessions."""
    traffic_tunnel_endpoints: list[TunnelEndpoint] = []
    """Local ports that clients may reach through the machine."""

    @model_validator(mode="after")
    def _check_tls_pair(self) -> Self:
        require_certificate_pair(
            {"tls_cert_file": self.tls_cert_file, "tls_key_file": self.tls_key_file}
        )
        return self


def _check_no_roles(config: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Reject roles in the wrong place, because every key would be an owner otherwise."""
    listed = config.get("keys")
    ids = {each for each in listed if isinstance(each, str)} if isinstance(listed, list) else set()
    for name, value in config.items():
        if name not in ids and (name.lower() in ("role", "roles") or isinstance(value, dict)):
            raise fault(
                codes.UNKNOWN_KEY,
                f'"{name}" has no effect inside "config"; to limit what a key may do, write '
                '"roles": {"<ID of the key>": "viewer"} beside "config"',
            )
    return config


def is_key_name(text: str) -> bool:
    """Whether a text can be the name of an API key. Names are printed in logs and tables."""
    return bool(text.strip()) and len(text) <= MAX_KEY_NAME and text.isprintable()


def _check_key_name(text: str) -> str:
    if not is_key_name(text):
        raise fault(
            codes.BAD_VALUE,
            f"expected the name of a key: 1 to {MAX_KEY_NAME} printable characters",
        )
    return text


class AuthHandler(Section):
    """A type of credentials with which clients can log in."""

    type: Literal["api-key", "robot-location-secret"]
    """The type of the credentials."""
    config: Annotated[dict[str, JsonValue], AfterValidator(_check_no_roles)]
    """For `api-key`: `keys`, a list of key IDs, and for each of these IDs a field with the key
    itself, as in `{"keys": ["ID"], "ID": "KEY"}`. For `robot-location-secret`: `secret`, or a list
    of `secrets`."""
    roles: dict[str, Literal["owner", "operator", "viewer"]] = {}
    """The role of each API key, by the ID of the key. A key without a role is an `owner`, which may
    call everything. An `operator` may not use shells, file copies, tunnels or shutdown. A `viewer`
    may only call methods that neither move nor change anything."""
    names: dict[str, Annotated[str, AfterValidator(_check_key_name)]] = {}
    """Names of the API keys for people, by the ID of the key. The log shows them instead of IDs, so
    each name is used once, and none is the ID of another key."""

    @model_validator(mode="after")
    def _check_config(self) -> Self:
        if self.type == "api-key":
            self._check_keys()
        else:
            self._check_secrets()
        return self

    @property
    def api_keys(self) -> dict[str, str]:
        """The API keys by their IDs."""
        keys = self.config.get("keys") if self.type == "api-key" else None
        return {str(each): str(self.config[str(each)]) for each in keys or ()}  # type: ignore[union-attr]

    @property
    def secrets(self) -> list[str]:
        """The location secrets."""
        if self.type != "robot-location-secret":
            return []
        listed = self.config.get("secrets")
        return [
            str(each["secret"] if isinstance(each, dict) else each)
            for each in [self.config.get("secret"), *(listed if isinstance(listed, list) else ())]
            if each
        ]

    def _check_keys(self) -> None:
        keys = self.config.get("keys")
        if not isinstance(keys, list) or not keys:
            raise fault(
                codes.MISSING_FIELD, '"keys" is missing; list the IDs of the keys that may log in'
            )
        for number, key_id in enumerate(keys, 1):
            key = self.config.get(key_id) if isinstance(key_id, str) else None
            if not isinstance(key, str) or not key:
                # Do not quote the item, because it may be the key itself.
                raise fault(
                    codes.INCOMPLETE_PAIR, f'item {number} of "keys" has no field with its key'
                )
        if unknown := sorted(set(self.roles) - {str(each) for each in keys}):
            raise fault(
                codes.INCOMPLETE_PAIR,
                f'"roles" names {len(unknown)} IDs that "keys" does not list; add them to "keys"',
            )
        self._check_names({str(each) for each in keys})

    def _check_names(self, key_ids: set[str]) -> None:
        """Require names that identify the keys, because the log shows nothing else of them."""
        if len(set(self.names.values())) < len(self.names):
            raise fault(
                codes.DUPLICATE_NAME, '"names" gives two keys the same name; rename one of them'
            )
        if any(name in key_ids - {key_id} for key_id, name in self.names.items()):
            raise fault(
                codes.DUPLICATE_NAME, '"names" gives a key the ID of another key; rename it'
            )

    def _check_secrets(self) -> None:
        listed = self.config.get("secrets", [])
        is_valid = isinstance(listed, list) and all(map(_is_secret, listed))
        if not is_valid or not self.secrets or not isinstance(self.config.get("secret", ""), str):
            raise fault(
                codes.MISSING_FIELD,
                'set "secret" to a location secret, or "secrets" to a list of them',
            )
        if self.roles:
            raise fault(codes.BAD_VALUE, '"roles" applies to handlers of type "api-key" only')


def _is_secret(value: JsonValue) -> bool:
    secret = value.get("secret") if isinstance(value, dict) else value
    return isinstance(secret, str) and bool(secret)


class ExternalAuth(Section):
    """Authentication with tokens from an external issuer."""

    jwks: dict[str, JsonValue]
    """The public RSA keys that verify the tokens, as a JSON Web Key Set. Each key needs a `kid`."""

    @model_validator(mode="after")
    def _check_keys(self) -> Self:
        keys = self.jwks.get("keys")
        if not isinstance(keys, list) or not keys:
            raise fault(codes.MISSING_FIELD, '"jwks" has no "keys"; list the public keys')
        for number, key in enumerate(keys, 1):
            if not isinstance(key, dict) or not all(
                isinstance(key.get(name), str) for name in ("kid", "kty", "n", "e")
            ):
                raise fault(codes.MISSING_FIELD, f'key {number} needs "kid", "kty", "n" and "e"')
            if key["kty"] != "RSA" or "d" in key:
                raise fault(codes.BAD_VALUE, f"key {number} is not a public RSA key")
        return self


class AuthConfig(Section):
    """Client authentication."""

    handlers: list[AuthHandler] = []
    """The credentials with which clients can log in, at most one handler of each type. Without
    handlers, client certificates or an external issuer, no login is required."""
    tls_auth_entities: list[str] = []
    """DNS names in client certificates that are accepted as a login, as owners. Requires
    `network.tls_client_ca_file`."""
    external_auth_config: ExternalAuth | None = None
    """Tokens from an external issuer. None are accepted by default."""

    @property
    def is_configured(self) -> bool:
        """Whether clients must log in."""
        return bool(self.handlers or self.tls_auth_entities or self.external_auth_config)

    @model_validator(mode="after")
    def _check_unique_types(self) -> Self:
        if len({handler.type for handler in self.handlers}) < len(self.handlers):
            raise fault(codes.DUPLICATE_NAME, "two handlers have the same type; merge their keys")
        return self
