"""gRPC errors become sentences; a sentence of the machine keeps its code."""

from __future__ import annotations

import grpc
import pytest

from cogwork.cli.client.rpc_error_text import describe_rpc_error, ran_out_of_time

Code = grpc.StatusCode
PATH = "/viam.component.motor.v1.MotorService/GoFor"


class Failure(grpc.RpcError):
    def __init__(self, code: grpc.StatusCode, details: str | None) -> None:
        self._code, self._details = code, details

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str | None:
        return self._details


@pytest.mark.parametrize(
    ("code", "details", "text"),
    [
        (
            Code.UNAUTHENTICATED,
            "authentication required",
            "authentication required; set COGWORK_API_KEY_ID and COGWORK_API_KEY to an API key",
        ),
        (
            Code.PERMISSION_DENIED,
            "motor/SetPower requires the role operator; me has the role reader",
            "motor/SetPower requires the role operator; me has the role reader; use a key that is "
            "allowed to do it",
        ),
        (
            Code.DEADLINE_EXCEEDED,
            "Deadline Exceeded",
            "the machine did not answer in time; try again, or see `cogwork status`",
        ),
        (
            Code.UNAVAILABLE,
            "Socket closed",
            "the connection to the machine was lost during the call, so it may have been carried "
            "out; see `cogwork status`",
        ),
        (
            Code.UNKNOWN,
            "ValueError: x\x1b[2J",
            "unexpected error: ValueError: x\ufffd[2J; `cogwork logs` may say where it comes from",
        ),
        (Code.UNAVAILABLE, "no frames yet; retrying", "UNAVAILABLE: no frames yet; retrying"),
        (Code.INTERNAL, None, "INTERNAL: "),
    ],
)
def test_description(code: grpc.StatusCode, details: str | None, text: str) -> None:
    assert describe_rpc_error(Failure(code, details)) == text


def test_deadline_of_the_call_differs_from_that_of_the_resource() -> None:
    assert ran_out_of_time(Failure(Code.DEADLINE_EXCEEDED, "Deadline Exceeded"), PATH)
    assert ran_out_of_time(Failure(Code.DEADLINE_EXCEEDED, f"{PATH} took too long"), PATH)
    slow = 'motor "wheel" did not reach its target within 10s: is it blocked?'
    assert not ran_out_of_time(Failure(Code.DEADLINE_EXCEEDED, slow), PATH)
    assert not ran_out_of_time(Failure(Code.UNAVAILABLE, "Deadline Exceeded"), PATH)
