"""A thief has all files of one machine, and its secret. They open that machine and nothing else."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc.aio
from tests.support.cloud.joined_fleet import (
    Fleet,
    JoinedMachine,
    Login,
    Metadata,
    call_raw,
    log_in,
    log_in_to,
    run_fleet,
)
from tests.unit.robot.bench import Bench
from viam.app.app_client import APIKeyAuthorization
from viam.gen.app.v1.robot_pb2 import ConfigRequest

from cogwork.auth.exempt_paths import EXEMPT_METHODS

SENSOR = {"components": [{"name": "scale", "api": "rdk:component:sensor", "model": "fake"}]}
NAMES = "/viam.robot.v1.RobotService/ResourceNames"
LOCATION_SECRET = "robot-location-secret"


async def make_keys(fleet: Fleet, location: str, machine: str) -> dict[str, Login]:
    """Return keys of people, all of which may log in to the machine that is stolen."""
    found = {}
    for name, authorization in {
        "organization": APIKeyAuthorization("owner", "organization", fleet.organization),
        "location": APIKeyAuthorization("owner", "location", location),
        "machine": APIKeyAuthorization("operator", "robot", machine),
    }.items():
        key, key_id = await fleet.app.create_key(fleet.organization, [authorization], name)
        found[name] = Login(key_id, "api-key", key)
    return found


def list_stolen_texts(directory: Path) -> Iterator[tuple[Path, bytes]]:
    for file in directory.rglob("*"):
        if file.is_file() and not file.is_symlink():
            yield file, file.read_bytes()


def forms_of(secret: str) -> list[bytes]:
    """Return how a secret may be written."""
    raw = secret.encode()
    return [raw, raw.hex().encode(), base64.b64encode(raw)[:-4]]


async def status_of(call: Any) -> str:
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return str(error.code().name)
    return "OK"


async def test_one_stolen_machine_opens_itself_only(tmp_path: Path) -> None:
    async with run_fleet(tmp_path) as fleet:
        location = await fleet.app.create_location(fleet.organization, "Hall")
        auth = await fleet.app.create_location_secret(location.id)
        async with (
            fleet.run_machine("stolen", location.id, SENSOR) as stolen,
            fleet.run_machine("other", location.id, SENSOR) as other,
        ):
            keys = await make_keys(fleet, location.id, stolen.part.robot)
            secrets = {name: login.payload for name, login in keys.items()}
            secrets["location secret"] = auth.secrets[0].secret
            secrets["first owner"] = fleet.cloud.key
            secrets["secret of the other"] = other.part.secret
            at_stolen = await use_every_login(stolen, keys, auth.secrets[0].secret)
            files = dict(list_stolen_texts(stolen.directory))
            for name, secret in secrets.items():
                for form in forms_of(secret):
                    holding = [file for file, content in files.items() if form in content]
                    assert holding == [], f"{name} is in {holding}"
            assert any(stolen.part.secret.encode() in each for each in files.values())
            await try_at_the_cloud(fleet, stolen, other)
            await try_at_the_other(stolen, other, at_stolen)


async def use_every_login(
    machine: JoinedMachine, keys: dict[str, Login], location_secret: str
) -> list[Metadata]:
    """Log in as everyone does who uses the machine, so that it has seen all it ever sees."""
    location = Login(machine.part.fqdn, LOCATION_SECRET, location_secret)
    logins = [await log_in(machine.channel, each) for each in (*keys.values(), location)]
    for metadata in logins:
        await call_raw(machine.channel, NAMES, metadata, b"")
    return logins


async def try_at_the_cloud(fleet: Fleet, stolen: JoinedMachine, other: JoinedMachine) -> None:
    """What `test_cloud_tenancy.py` tries with every method, for the files of this machine."""
    own = await log_in(fleet.channel, Login(stolen.part.id, "robot-secret", stolen.part.secret))
    config = "/viam.app.v1.RobotService/Config"
    for part, expected in ((stolen.part.id, "OK"), (other.part.id, "NOT_FOUND")):
        request = ConfigRequest(id=part).SerializeToString()
        assert await status_of(call_raw(fleet.channel, config, own, request)) == expected
    assert await status_of(log_in_to(fleet.channel, other.part.fqdn, own)) == "NOT_FOUND"
    for secret in (*list_verifiers(stolen), stolen.part.secret):
        for entity, kind in (
            (other.part.id, "robot-secret"),
            (other.part.fqdn, LOCATION_SECRET),
            (fleet.cloud.key_id, "api-key"),
        ):
            refused = log_in(fleet.channel, Login(entity, kind, secret))
            assert await status_of(refused) in ("UNAUTHENTICATED", "RESOURCE_EXHAUSTED")


async def try_at_the_other(
    stolen: JoinedMachine, other: JoinedMachine, tokens: list[Metadata]
) -> None:
    """Nothing that the stolen machine has or has issued is accepted by the other one."""
    for secret in (*list_verifiers(stolen), stolen.part.secret):
        for entity, kind in (
            (stolen.part.id, "api-key"),
            *((key_id, "api-key") for key_id in list_principals(stolen)),
            (other.part.fqdn, LOCATION_SECRET),
        ):
            refused = log_in(other.channel, Login(entity, kind, secret))
            assert await status_of(refused) != "OK"
    answers: Counter[str] = Counter()
    for metadata in ([], *tokens):
        for path in list_machine_methods():
            answers[await status_of(call_raw(other.channel, path, metadata, b""))] += 1
    print(f"=> methods of the other machine, with what this one has: {dict(answers)}")
    assert set(answers) == {"UNAUTHENTICATED"}


def list_machine_methods() -> list[str]:
    """Return every method for which a machine requires a login."""
    table = Bench().table
    paths = {method.path for service in table.services() for method in table.methods(service)}
    return sorted(paths - EXEMPT_METHODS)


def list_verifiers(machine: JoinedMachine) -> list[str]:
    return [str(entry[5]) for entry in read_access_list(machine)["entries"]]


def list_principals(machine: JoinedMachine) -> list[str]:
    return [str(entry[0]) for entry in read_access_list(machine)["entries"]]


def read_access_list(machine: JoinedMachine) -> Any:
    (file,) = (machine.directory / "home" / "joined").rglob("access.json")
    return json.loads(file.read_bytes())
