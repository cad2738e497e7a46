"""Drivers quote the secrets that they are given, but no output of the server does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from tests.support.machine.running import plug_in, run_server

from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.gen.common.v1.common_pb2 import DoCommandRequest  # noqa: E402
from viam.gen.robot.v1 import robot_pb2 as robot  # noqa: E402

SECRETS = {
    "plain": "planted-plain-hunter2",
    "quoted": 'planted"quo\\ted-77',
    "umlaut": "planted-gehäim-密-88",
    "short": "pl4nt",
    "multiline": "planted-line1\nplanted-line2",
    "spaced": "planted  spaced\ttab-66",
    "variable": "planted-variable-99",
}
IN_URL = "planted-url-pw"
FOUND = {"planted", "pl4nt", "line1", "line2", "tab-66", "ted-77"}

PLUG_IN = """
import logging
from viam.components.generic import Generic
from cogwork.config.schema.fields import Attributes
from cogwork.graph.name import Api, ModelName
from cogwork.resource.model import Model

class Login(Attributes):
    password: str
    url: str
    fails: bool = True

class Chatty(Generic):
    def __init__(self, name, login):
        super().__init__(name)
        self.login = login
        self.fault = f"lost {login.url} with {login.password}"

    async def do_command(self, command, *, timeout=None, **kwargs):
        raise ValueError(f"cannot do it with {self.login.password!r} at {self.login.url}")

async def construct(name, attributes, dependencies):
    words = f"cannot log in with {attributes.password} at {attributes.url}"
    logging.getLogger("rdk.chatty").info(words, extra={"fields": {"a": [attributes.password]}})
    if attributes.fails:
        raise ValueError(words)
    return Chatty(name.short, attributes)

model = Model(Api.parse("rdk:component:generic"), ModelName.parse("chatty"), Login, construct)
"""


MODULE = """#!/bin/sh
echo "it has $API_TOKEN"
echo "cannot log in with $API_TOKEN" >&2
exit 3
"""


def config(module: Path) -> dict[str, Any]:
    url = f"rtsp://admin:{IN_URL}@127.0.0.1/x"
    passwords = {**SECRETS, "variable": "${PLANTED}"}
    return {
        "components": [
            {
                "name": name,
                "api": "rdk:component:generic",
                "model": "chatty",
                "attributes": {"password": password, "url": url, "fails": name != "plain"},
            }
            for name, password in passwords.items()
        ],
        "modules": [
            {
                "name": "loud",
                "executable_path": str(module),
                "env": {"API_TOKEN": "planted-module-token"},
            }
        ],
        "jobs": [
            {
                "name": "job",
                "schedule": "100ms",
                "resource": "plain",
                "method": "DoCommand",
                "command": {},
            }
        ],
    }


@pytest.mark.parametrize("form", ["text", "json"])
async def test_no_output_quotes_a_secret(tmp_path: Path, form: str) -> None:
    environment = {
        **plug_in(tmp_path / "plug-in", PLUG_IN, "chatty = {module}:model"),
        "PLANTED": SECRETS["variable"],
        "COGWORK_LOG_FORMAT": form,
    }
    module = tmp_path / "loud.sh"
    module.write_text(MODULE)
    module.chmod(0o700)
    async with run_server(config(module), tmp_path, environment=environment) as server:
        await server.wait_for_status(state="running")
        await server.out.wait_for("failed: ")
        await server.out.wait_for("module loud exited with code 3")
        outputs = {path: (await server.get(path))[1] for path in ("/status", "/status.json")}
        outputs["/history.json"] = (await server.get("/history.json"))[1]
        outputs["/logs.jsonl"] = (await server.get("/logs.jsonl"))[1]
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            status: Any = channel.unary_unary("/viam.robot.v1.RobotService/GetMachineStatus")
            outputs["status"] = str(robot.GetMachineStatusResponse.FromString(await status(b"")))
            do: Any = channel.unary_unary("/viam.component.generic.v1.GenericService/DoCommand")
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await do(DoCommandRequest(name="plain").SerializeToString())
            outputs["error"] = raised.value.details() or ""
        outputs["log"] = server.out.text
    journal = next((tmp_path / "home" / "journal").glob("*.jsonl"))
    outputs["journal"] = journal.read_text()
    for name, text in outputs.items():
        assert "***" in text, name
        assert not [word for word in FOUND if word in text], f"{name}: {text}"
    view = json.loads(outputs["/status.json"])
    assert all("***" in str(each["reason"]) for each in (*view["resources"], *view["modules"]))
    assert "***" in str(view["jobs"])
