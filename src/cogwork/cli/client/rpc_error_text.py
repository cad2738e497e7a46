"""Sentences for gRPC errors of a machine that replied, or broke off while it did."""

from __future__ import annotations

import grpc

from cogwork.cli.client.http_client import LOGIN_HINT
from cogwork.config.check.diagnostics import replace_unprintable

_CONNECTION_LOST = ("Socket closed", "Connection reset", "recvmsg:", "Broken pipe", "GOAWAY")
"""Parts of gRPC's own messages about a connection that broke during a call."""
_LIBRARY_DEADLINE = "Deadline Exceeded"


def describe_rpc_error(error: grpc.RpcError) -> str:
    """Return what happened, and what to do next if the machine does not say it."""
    details = "\n".join(map(replace_unprintable, (error.details() or "").split("\n")))
    match error.code():
        case grpc.StatusCode.UNAUTHENTICATED:
            return f"{details}; {LOGIN_HINT}"
        case grpc.StatusCode.PERMISSION_DENIED:
            return f"{details}; use a key that is allowed to do it"
        case grpc.StatusCode.DEADLINE_EXCEEDED if details in ("", _LIBRARY_DEADLINE):
            return "the machine did not answer in time; try again, or see `cogwork status`"
        case grpc.StatusCode.UNAVAILABLE if any(sign in details for sign in _CONNECTION_LOST):
            return (
                "the connection to the machine was lost during the call, so it may have been "
                "carried out; see `cogwork status`"
            )
        case grpc.StatusCode.UNKNOWN:
            return f"unexpected error: {details}; `cogwork logs` may say where it comes from"
    return f"{error.code().name}: {details}"


def ran_out_of_time(error: grpc.RpcError, path: str) -> bool:
    """Return whether the deadline of the call itself ended it, and not the resource."""
    details = error.details() or ""
    is_bare = details in ("", _LIBRARY_DEADLINE) or path in details
    return error.code() is grpc.StatusCode.DEADLINE_EXCEEDED and is_bare
