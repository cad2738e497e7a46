"""A connection to another machine, and why a call over it failed."""

from __future__ import annotations

from typing import Final, Protocol

import grpc
import grpc.aio

from cogwork.wire.channel import ForwardChannel
from cogwork.wire.metadata_channel import Pairs

CALL_TIMEOUT: Final = 5.0
"""Seconds for a call of this machine itself."""


class RemoteConnection(Protocol):
    """A connection that is open, and logged in."""

    @property
    def calls(self) -> ForwardChannel:
        """Where calls are made."""

    @property
    def login(self) -> Pairs:
        """The metadata of each call that identifies this machine."""

    async def wait_until_lost(self) -> None: ...

    async def aclose(self) -> None: ...


_ADVICE: Final = {
    "CERTIFICATE_VERIFY_FAILED": (
        "its certificate is not trusted here; name its authority in the variable SSL_CERT_FILE, "
        "and check that the certificate is for this address"
    ),
    "WRONG_VERSION_NUMBER": (
        'it does not use TLS; give it a certificate, or add "insecure": true in the section remotes'
    ),
}


def describe(error: grpc.aio.AioRpcError) -> str:
    """Return one sentence about why a call to another machine failed."""
    match error.code():
        case grpc.StatusCode.UNAUTHENTICATED | grpc.StatusCode.PERMISSION_DENIED:
            return f"it refused the login: {error.details()}; check auth in the section remotes"
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return f"it did not answer within {CALL_TIMEOUT:g} s"
        case grpc.StatusCode.UNAVAILABLE:
            return _describe_connection(error.details() or "")
        case _:
            return f"{error.code().name}: {error.details()}"


def _describe_connection(details: str) -> str:
    """Return the reason at the end of gRPC's message, or advice."""
    found = next((advice for mark, advice in _ADVICE.items() if mark in details), None)
    if found is not None:
        return found
    reason = details.rpartition(": ")[2]
    return f"it cannot be reached: {reason}; check that it runs and has this address"
