"""Sentences about another machine that cannot be used."""

from __future__ import annotations

import grpc
import pytest
from tests.support.network.far_machine import failure

from cogwork.remotes.errors import describe, is_unknown_name

Code = grpc.StatusCode


@pytest.mark.parametrize(
    ("code", "details", "expected"),
    [
        (Code.UNAUTHENTICATED, "wrong key", "it refused the login: wrong key; check auth"),
        (Code.PERMISSION_DENIED, "a viewer", "it refused the login: a viewer; check auth"),
        (Code.DEADLINE_EXCEEDED, "", "it did not answer within 8 s"),
        (Code.UNAVAILABLE, "a: errors resolving line", "no computer of this name is known here"),
        (Code.UNAVAILABLE, "CERTIFICATE_VERIFY_FAILED: x", "its certificate is not trusted here"),
        (Code.UNAVAILABLE, "WRONG_VERSION_NUMBER", "it does not use TLS"),
        (Code.UNAVAILABLE, "x: y: Connection refused", "it cannot be reached: Connection refused;"),
        (Code.INTERNAL, "a fault", "INTERNAL: a fault"),
    ],
)
def test_failed_call_is_explained(code: Code, details: str, expected: str) -> None:
    error = failure(code, details)
    assert describe(error).startswith(expected)
    assert is_unknown_name(error) is ("resolving" in details)
