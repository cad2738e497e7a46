from __future__ import annotations

import json
from pathlib import Path

import pytest
from viam.gen.app.v1 import app_pb2 as pb

from cogwork.cli.fleet.machine_file import MachineFile, render_instructions
from cogwork.cli.fleet.stored_login import FleetLogin
from cogwork.config.schema.cloud import CloudConfig

LOCAL = FleetLogin("localhost:8090", "id", "key")
PUBLIC = FleetLogin("https://fleet.example.org:443", "id", "key")
PRIVATE = FleetLogin("https://fleet.lan:443", "id", "key", Path("/home/me/.cogwork/fleet/ca.pem"))


@pytest.mark.parametrize(
    ("login", "url"),
    [(LOCAL, "http://localhost:8090"), (PUBLIC, "https://fleet.example.org:443")],
    ids=["local", "public"],
)
def test_file_is_what_a_machine_reads(login: FleetLogin, url: str) -> None:
    part = pb.RobotPart(id="part", secret="secret")
    document = json.loads(MachineFile(part, login, None).text)
    cloud = CloudConfig.model_validate(document["cloud"])
    assert (cloud.id, cloud.secret, cloud.app_address) == ("part", "secret", url)
    assert "key" not in json.dumps(document)


@pytest.mark.parametrize(
    ("login", "file", "text"),
    [
        (
            PUBLIC,
            "files/press 4.json",
            "Copy files/press 4.json to the machine, and run there:\n"
            "  cogwork-server -config 'press 4.json'",
        ),
        (
            PRIVATE,
            "press.json",
            "Copy press.json and /home/me/.cogwork/fleet/ca.pem to the machine, and run there:\n"
            "  SSL_CERT_FILE=ca.pem cogwork-server -config press.json",
        ),
        (
            FleetLogin("192.0.2.7:80", "id", "key"),
            "press.json",
            "Copy press.json to the machine, and run there:\n"
            "  cogwork-server -config press.json -allow-insecure-creds",
        ),
    ],
    ids=["public", "own authority", "without TLS"],
)
def test_instructions_are_one_command(login: FleetLogin, file: str, text: str) -> None:
    assert render_instructions(file, login) == text
