"""Invalid requests of `cogwork call` are refused with one sentence that says what to write."""

from __future__ import annotations

from typing import Any

import pytest

from cogwork.cli.client.grpc_client import CommandError
from cogwork.cli.machine.call_request import build_request
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # import `clean_import` before the SDK
from viam.gen.component.arm.v1 import arm_pb2  # noqa: E402
from viam.gen.component.camera.v1 import camera_pb2  # noqa: E402
from viam.gen.component.motor.v1 import motor_pb2  # noqa: E402
from viam.gen.component.movementsensor.v1 import movementsensor_pb2  # noqa: E402

SERVICES = {
    each.name: each
    for file in (arm_pb2, camera_pb2, motor_pb2, movementsensor_pb2)
    for each in file.DESCRIPTOR.services_by_name.values()
}


def find_method(path: str) -> Any:
    service, _, method = path.partition("/")
    return SERVICES[service].methods_by_name[method]


def explain(path: str, text: str) -> str:
    with pytest.raises(CommandError) as refused:
        build_request(find_method(path), "it", text)
    return str(refused.value)


def test_request_gets_the_name_of_its_resource() -> None:
    method = find_method("MotorService/DoCommand")
    assert build_request(method, "wheel", '{"command": {"a": 1}}').name == "wheel"
    assert build_request(method, "wheel", '{"name": "other"}').name == "other"
    assert build_request(method, "wheel", "{}").name == "wheel"


def test_both_spellings_of_a_field_are_accepted() -> None:
    method = find_method("MotorService/SetPower")
    for field in ("power_pct", "powerPct"):
        assert build_request(method, "wheel", f'{{"{field}": 0.5}}').power_pct == 0.5


@pytest.mark.parametrize(
    ("path", "text", "fault"),
    [
        (
            "MotorService/SetPower",
            '{"nope": 1}',
            'SetPower has no field "nope"; its fields: power_pct (a number), extra (a JSON object)',
        ),
        (
            "MotorService/SetPower",
            '{"powerPc": 1}',
            'SetPower has no field "powerPc"; did you mean "power_pct"?',
        ),
        ("MotorService/SetPower", '{"power_pct": "x"}', '"power_pct" must be a number, not "x"'),
        ("MotorService/SetPower", '{"extra": 3}', '"extra" must be a JSON object, not 3'),
        ("MotorService/SetPower", "[1]", "expected a JSON object, such as '{\"power_pct\": 1}'"),
        ("MotorService/Stop", "3", "expected a JSON object, such as '{}'"),
        (
            "CameraService/GetImages",
            '{"filter_source_names": "a"}',
            '"filter_source_names" must be a list, each a string, not "a"',
        ),
        (
            "CameraService/GetImages",
            '{"filter_source_names": ["a", 1]}',
            '"filter_source_names[1]" must be a string, not 1',
        ),
        (
            "ArmService/MoveToPosition",
            '{"to": {"z": 1, "theta": []}}',
            '"to.theta" must be a number, not []',
        ),
        (
            "ArmService/MoveToPosition",
            '{"to": {"tetha": 1}}',
            '"to" has no field "tetha"; did you mean "theta"?',
        ),
        (
            "ArmService/MoveToPosition",
            '{"to": 1}',
            '"to" must be an object with x, y, z, o_x, o_y, o_z, theta, not 1',
        ),
        (
            "ArmService/MoveThroughJointPositions",
            '{"positions": [{"values": [1]}, {"values": ["a"]}]}',
            '"positions[1].values[0]" must be a number, not "a"',
        ),
        (
            "MotorService/SetPower",
            "{power_pct: 1}",
            "expected a key in double quotes or }, but found power_pct (at character 2); put the "
            'key in double quotes: "power_pct"',
        ),
    ],
)
def test_fault_of_a_request_is_described(path: str, text: str, fault: str) -> None:
    assert explain(path, text) == f"invalid request: {fault}"


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "",
        '{"\\ud800": 1}',
        '{"name": "\\udfff"}',
        '{"a\udcff": 1}',
        '{"command": ' + "[" * 100_000,
        '{"command": {"a": ' + "[" * 900 + "]" * 900 + "}}",
        f'{{"name": {"9" * 5000}}}',
    ],
    ids=lambda text: ascii(text[:30]),
)
def test_hostile_request_is_refused_in_one_line(text: str) -> None:
    message = explain("MotorService/DoCommand", text)
    assert message.startswith("invalid request: ")
    assert len(message) < 400
    assert "\n" not in message
