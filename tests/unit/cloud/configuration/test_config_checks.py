"""The cloud refuses configurations that a machine would refuse, and says where the mistakes are."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from grpclib import GRPCError
from tests.support.cloud.fleet import make_part
from tests.support.cloud.in_process_cloud import InProcessCloud
from viam.app.app_client import AppClient
from viam.gen.app.v1 import app_pb2 as pb
from viam.gen.app.v1.app_grpc import AppServiceStub

MOTOR = {"name": "m", "api": "rdk:component:motor", "model": "rdk:builtin:fake"}


@dataclass
class Editor:
    app: AppClient
    part: str
    stub: AppServiceStub
    metadata: Any

    async def save(self, text: str) -> str:
        """Save a text and return why it is refused; nothing if it is accepted."""
        request = pb.UpdateRobotPartRequest(id=self.part, name="press", robot_config_json=text)
        try:
            await self.stub.UpdateRobotPart(request, metadata=self.metadata)
        except GRPCError as error:
            return f"{error.status.name}: {error.message}"
        return ""


@pytest.fixture
async def editor(empty_cloud: InProcessCloud) -> Editor:
    connected = await empty_cloud.connect()
    app = connected.app_client
    part = await make_part(app)
    return Editor(app, part, AppServiceStub(app._channel), app._metadata)


async def test_mistake_is_located(editor: Editor) -> None:
    text = '{\n  "network": {\n    "bind_address": 7\n  }\n}'
    message = await editor.save(text)
    assert message.splitlines() == [
        "INVALID_ARGUMENT: the machine would refuse this configuration:",
        "line 3, column 21 (/network/bind_address): expected a string, got the number 7",
    ]
    assert await editor.app.get_robot_part_history(editor.part) == []


async def test_first_mistakes_are_shown_and_the_others_counted(editor: Editor) -> None:
    handlers = [{"type": "api-key", "config": {"keys": ["a"]}}] * 8
    lines = (await editor.save(json.dumps({"auth": {"handlers": handlers}}))).splitlines()
    assert len(lines) == 7
    assert lines[-1] == "and 3 more"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"components": [}', "line 1, column 17"),
        ("[]", "line 1, column 1: expected an object at the top level"),
        ('{"debug": NaN}', "line 1, column 11"),
        ('{"debug": true, // on\n}', "not JSON"),
        ('{"components": 5}', "line 1, column 16 (/components)"),
        ('{"components": [{"name": "m", "frame": 7}]}', "line 1"),
        ('{"services": [{"name": "s", "attributes": "x"}]}', "line 1"),
        (f'{{"debug": "{"x" * (2 << 20)}"}}', "larger than 2 MiB"),
        ("[" * 200_000, "line 1"),
    ],
    ids=lambda each: each[:30],
)
async def test_unusable_text_is_refused(editor: Editor, text: str, expected: str) -> None:
    message = await editor.save(text)
    assert message.startswith("INVALID_ARGUMENT: ")
    assert expected in message


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"components": [MOTOR | {"model": "acme:motors:fast"}]},
        {"components": [MOTOR | {"attributes": {"unknown": 1}}]},
        {"components": [MOTOR, MOTOR]},
        {"unknown_section": 1},
        {"cloud": {"unknown": "x"}},
        {"modules": [{"name": "x", "type": "local", "executable_path": "/not/here"}]},
        {"network": {"bind_address": "${ADDRESS}"}},
        {"auth": {"handlers": [{"type": "api-key", "config": {"keys": ["a"], "a": "${KEY}"}}]}},
    ],
    ids=json.dumps,
)
async def test_machine_decides_about_the_rest(editor: Editor, config: dict[str, Any]) -> None:
    assert await editor.save(json.dumps(config)) == ""
    assert (await editor.app.get_robot_part(editor.part)).robot_config == config


async def test_first_of_duplicate_keys_counts(editor: Editor) -> None:
    """As it does for machines: otherwise the check would not be of what the machine gets."""
    assert await editor.save('{"debug": true, "debug": 7}') == ""
    assert (await editor.app.get_robot_part(editor.part)).robot_config == {"debug": True}


async def test_struct_of_the_sdk_is_checked_and_keeps_its_integers(editor: Editor) -> None:
    with pytest.raises(GRPCError, match="line 3, column 21"):
        await editor.app.update_robot_part(editor.part, "press", {"network": {"bind_address": 7}})
    config: dict[str, Any] = {
        "components": [MOTOR | {"attributes": {"ticks": 200, "gain": 0.5, "big": 1e300}}]
    }
    await editor.app.update_robot_part(editor.part, "press", config)
    request = pb.GetRobotPartRequest(id=editor.part)
    reply = await editor.stub.GetRobotPart(request, metadata=editor.metadata)
    found = json.loads(reply.config_json)["components"]
    assert isinstance(found[0]["attributes"]["ticks"], int)
    assert found == config["components"]


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"fragments": ["x"] * 100_000}, "fragments has 100000 entries; use at most 200"),
        ({"modules": [{}] * 1001}, "modules has 1001 entries; use at most 1000"),
        ({"packages": [{}] * 1001}, "packages has 1001 entries; use at most 1000"),
    ],
    ids=["fragments", "modules", "packages"],
)
async def test_more_than_is_followed_is_refused(
    editor: Editor, config: dict[str, Any], expected: str
) -> None:
    assert expected in await editor.save(json.dumps(config))
