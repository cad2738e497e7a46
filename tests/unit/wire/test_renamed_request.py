"""Requests whose resource name is replaced without parsing them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from viam.gen.component.motor.v1.motor_pb2 import SetPowerRequest
from viam.gen.service.shell.v1.shell_pb2 import CopyFilesToMachineRequest

from cogwork.wire.messages.raw_request import (
    read_resource_name,
    rename_nested_resource,
    rename_resource,
)

NAMES = st.text(max_size=200)


@given(NAMES, NAMES, st.floats(allow_nan=False))
def test_only_the_name_changes(before: str, after: str, power: float) -> None:
    request = SetPowerRequest(name=before, power_pct=power)
    found = SetPowerRequest.FromString(rename_resource(request.SerializeToString(), after))
    assert found == SetPowerRequest(name=after if before else "", power_pct=power)


def test_name_in_a_nested_message() -> None:
    request = CopyFilesToMachineRequest()
    request.metadata.name, request.metadata.destination = "line:shell", "/tmp"
    data = rename_nested_resource(request.SerializeToString(), "shell")
    found = CopyFilesToMachineRequest.FromString(data)
    assert (found.metadata.name, found.metadata.destination) == ("shell", "/tmp")


@given(st.binary(max_size=100), NAMES)
def test_malformed_requests_are_left_alone_or_stay_readable(data: bytes, name: str) -> None:
    renamed = rename_resource(data, name)
    assert renamed == data or (read_resource_name(renamed) or "") == name
    rename_nested_resource(data, name)
