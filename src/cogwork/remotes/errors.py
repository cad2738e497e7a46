"""Errors of connections to other machines."""

from __future__ import annotations

from typing import Final

import grpc
import grpc.aio

from cogwork.core.errors import CogworkError

CALL_TIMEOUT: Final = 8.0
"""Seconds without a reply after which another machine is considered lost.

TCP often needs several seconds to deliver a packet when many packets are lost.
"""
NO_ANSWER: Final = (
    f"it did not answer within {CALL_TIMEOUT:g} s; check the network, and that the machine runs"
)


class RemoteUnavailable(CogworkError):
    """Another machine is unavailable now."""

    status = "UNAVAILABLE"


class NotReached(RemoteUnavailable):
    """No machine runs at the address, or the machine does not answer."""


_UNKNOWN_NAME: Final = "errors resolving"
_ADVICE: Final = {
    _UNKNOWN_NAME: "no computer of this name is known here; check the address, and the network",
    "CERTIFICATE_VERIFY_FAILED": (
        "its certificate is not trusted here; name its authority in the variable SSL_CERT_FILE, "
        "and check that the certificate is for this address"
    ),
    "WRONG_VERSION_NUMBER": (
        'it does not use TLS; give it a certificate, or add "insecure": true in the section remotes'
    ),
}


def describe(error: grpc.aio.AioRpcError) -> str:
    """Return a sentence that explains why a call to another machine failed."""
    match error.code():
        case grpc.StatusCode.UNAUTHENTICATED | grpc.StatusCode.PERMISSION_DENIED:
            return f"it refused the login: {error.details()}; check auth in the section remotes"
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return NO_ANSWER
        case grpc.StatusCode.UNAVAILABLE:
            return _describe_connection(error.details() or "")
        case _:
            return f"{error.code().name}: {error.details()}"


def is_unknown_name(error: grpc.aio.AioRpcError) -> bool:
    """Return whether a call failed because the host name is unknown."""
    return _UNKNOWN_NAME in (error.details() or "")


def _describe_connection(details: str) -> str:
    """Return advice for a known problem, or else the reason at the end of gRPC's message."""
    found = next((advice for mark, advice in _ADVICE.items() if mark in details), None)
    if found is not None:
        return found
    reason = details.rpartition(": ")[2]
    return f"it cannot be reached: {reason}; check that it runs and has this address"
