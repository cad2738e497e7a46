"""`cogwork call` refuses invalid requests with one sentence."""

from __future__ import annotations

from typing import Any

import pytest

from cogwork.cli.call import _build_request
from cogwork.cli.grpc_client import CommandError
from cogwork.resource import sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.gen.component.motor.v1 import motor_pb2  # noqa: E402


@pytest.fixture
def method() -> Any:
    return motor_pb2.DESCRIPTOR.services_by_name["MotorService"].methods_by_name["DoCommand"]


def test_request_gets_the_name_of_its_resource(method: Any) -> None:
    assert _build_request(method, "wheel", '{"command": {"a": 1}}').name == "wheel"
    assert _build_request(method, "wheel", '{"name": "other"}').name == "other"


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"nope": 1}',
        '{"\\ud800": 1}',
        '{"name": "\\udfff"}',
        '{"a\udcff": 1}',
        '{"command": ' + "[" * 100_000,
        '{"command": {"a": ' + "[" * 900 + "]" * 900 + "}}",
        f'{{"name": {"9" * 5000}}}',
    ],
    ids=lambda text: ascii(text[:30]),
)
def test_invalid_request_is_refused(method: Any, text: str) -> None:
    with pytest.raises(CommandError, match="invalid request"):
        _build_request(method, "wheel", text)
