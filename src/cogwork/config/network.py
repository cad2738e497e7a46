"""The sections `network` and `auth`: where a machine listens, and whom it lets in."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, JsonValue, model_validator

from cogwork.config import codes
from cogwork.config.fields import Duration, FileField, Section, fault

_PORT = re.compile(r"[0-9]{1,5}\Z")


def _host_and_port(text: str) -> str:
    _, colon, port = text.rpartition(":")
    if text and not (colon and _PORT.match(port) and int(port) <= 65535):
        raise fault(codes.BAD_VALUE, 'an address is host:port, such as "localhost:8080"')
    return text


def _heartbeat(seconds: float) -> float:
    if not 0.03 <= seconds <= 60:
        raise fault(codes.BAD_VALUE, "the window lies between 30ms and 1m")
    return seconds


class Sessions(Section):
    """What happens when a client that moves something falls silent."""

    heartbeat_window: Annotated[Duration, AfterValidator(_heartbeat)] = 2.0
    """How long it may be silent before the motion is stopped, from `30ms` to `1m`."""


class TunnelEndpoint(Section):
    """A port of this computer that clients may reach through the machine."""

    port: Annotated[int, Field(ge=1, le=65535)]
    """Its number, from 1 to 65535."""
    connection_timeout: Duration = 10.0
    """How long it may take to connect to it."""


class NetworkConfig(Section):
    """Where and how the machine is reached."""

    fqdn: str = ""
    """The name that clients know the machine by."""
    bind_address: Annotated[str, AfterValidator(_host_and_port)] = ""
    """Where to listen. Empty is `localhost:8080`; without a host it is every interface."""
    grpc_address: Annotated[str, AfterValidator(_host_and_port)] = ""
    """A second address for gRPC alone, which moves large messages faster. Empty is none."""
    tls_cert_file: FileField = ""
    """A PEM file with the certificate to serve with. It goes with `tls_key_file`."""
    tls_key_file: FileField = ""
    """A PEM file with the private key of `tls_cert_file`."""
    no_tls: bool = False
    """Whether to serve without TLS, even with a certificate."""
    sessions: Annotated[Sessions, Field(default_factory=Sessions.model_construct)]
    """What happens when a client that moves something falls silent."""
    traffic_tunnel_endpoints: list[TunnelEndpoint] = []
    """Ports of this computer that clients may reach through the machine."""

    @model_validator(mode="after")
    def _sound(self) -> Self:
        if bool(self.tls_cert_file) != bool(self.tls_key_file):
            missing = "tls_key_file" if self.tls_cert_file else "tls_cert_file"
            raise fault(codes.HALF_SET, f'"{missing}" is missing: certificate and key go together')
        return self


class AuthHandler(Section):
    """A way to log in."""

    type: Literal["api-key"]
    """Which way it is: with an API key."""
    config: dict[str, JsonValue]
    """Each key under its id, and in `keys` the ids that may log in."""

    @model_validator(mode="after")
    def _has_keys(self) -> Self:
        keys = self.config.get("keys")
        if not isinstance(keys, list) or not keys:
            raise fault(
                codes.MISSING_FIELD, '"keys" is missing: the list of key ids that may log in'
            )
        for number, key_id in enumerate(keys, 1):
            if not isinstance(key_id, str) or not isinstance(self.config.get(key_id), str):
                # Not by its name: somebody may have listed the key itself.
                raise fault(codes.HALF_SET, f'number {number} of "keys" has no key beside it')
        return self


class ExternalAuth(Section):
    """Tokens that somebody else issues."""

    jwks: dict[str, JsonValue]
    """The public keys that prove a token, as a JSON Web Key Set."""


class AuthConfig(Section):
    """Who may use the machine."""

    handlers: list[AuthHandler] = []
    """The ways to log in, at most one of each type. Without one, nobody has to."""
    tls_auth_entities: list[str] = []
    """Names in a client's certificate that need no other login."""
    external_auth_config: ExternalAuth | None = None
    """Tokens that somebody else issues. By default none are accepted."""

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        if len({handler.type for handler in self.handlers}) < len(self.handlers):
            raise fault(codes.DUPLICATE_NAME, "two handlers of the same type; join their keys")
        return self
