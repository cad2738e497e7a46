"""TURN servers, which relay connections between clients and machines."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from viam.gen.proto.rpc.webrtc.v1.signaling_pb2 import ICEServer

from cogwork.core.errors import CogworkError
from cogwork.wire.transports.ice_servers import with_temporary_credential


class InvalidRelay(CogworkError):
    """The options for TURN servers are not valid."""


class RelayServers(NamedTuple):
    urls: tuple[str, ...] = ()
    """The URLs of the servers; empty by default, so that no external servers are used."""
    secret: str = ""
    """The secret that the servers share with the cloud (`static-auth-secret` of coturn)."""

    def list_with_credentials(self, now: float) -> list[ICEServer]:
        """Return the servers with temporary credentials."""
        if not self.urls:
            return []
        made = with_temporary_credential(self.urls, self.secret, now)
        return [ICEServer(urls=made.urls, username=made.username, credential=made.credential)]


NO_RELAYS: Final = RelayServers()


def read_relay_servers(urls: list[str], secret_file: Path | None) -> RelayServers:
    """Return the servers from the options. Raise InvalidRelay."""
    if not urls and secret_file is None:
        return NO_RELAYS
    if not urls or secret_file is None:
        raise InvalidRelay("--turn-url and --turn-secret-file belong together; give both")
    try:
        secret = secret_file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRelay(f"cannot read {secret_file}: {error}") from None
    if not secret:
        raise InvalidRelay(f"{secret_file} is empty; write the static-auth-secret of coturn there")
    for url in urls:
        scheme, _, rest = url.partition(":")
        if scheme not in ("turn", "turns") or not rest:
            raise InvalidRelay(f'"{url}" is not a TURN server; write turn:host:port?transport=udp')
    return RelayServers(tuple(urls), secret)
