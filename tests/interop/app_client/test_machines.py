"""Machines and their parts, field by field."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp
from grpclib import GRPCError
from grpclib.const import Status
from tests.interop.app_client.owner import Owner, at
from tests.interop.test_robot_service import PartClient
from tests.support.cloud.fleet import DOMAIN
from viam.app.app_client import APIKeyAuthorization
from viam.gen.app.v1 import app_pb2 as pb
from viam.gen.app.v1 import robot_pb2

ENABLED = pb.SharedSecret.State.STATE_ENABLED
NEVER_SEEN = pb.OnlineState.ONLINE_STATE_AWAITING_SETUP
ONLINE = pb.OnlineState.ONLINE_STATE_ONLINE
OFFLINE = pb.OnlineState.ONLINE_STATE_OFFLINE
TEXT = '{ "zeta": 1,\n\t"alpha": [1.50, 2e3],  "größe": "1 µm" }\n'


async def test_machines(owner: Owner) -> None:
    client, check = owner.client, owner.replies.check
    hall = (await client.create_location(owner.organization, "Hall")).id
    yard = (await client.create_location(owner.organization, "Yard")).id
    await owner.wait()
    press = pb.Robot(
        id=await client.new_robot("press", hall),
        name="press",
        location=hall,
        created_on=at(1),
        online_state=NEVER_SEEN,
    )
    check(pb.NewRobotResponse(id=press.id))
    await owner.wait()
    saw = pb.Robot(
        id=await client.new_robot("saw", yard),
        name="saw",
        location=yard,
        created_on=at(2),
        online_state=NEVER_SEEN,
    )
    assert await client.get_robot(press.id) == press
    check(pb.GetRobotResponse(robot=press))
    assert await client.list_robots(hall) == [press]
    check(pb.ListRobotsResponse(robots=[press]))
    assert await client.list_robots_for_locations([yard, hall]) == [saw, press]
    check(pb.ListRobotsForLocationsResponse(robots=[saw, press]))
    request = pb.ListRobotsForOrgRequest(org_id=owner.organization)
    await owner.app.ListRobotsForOrg(request, metadata=owner.metadata)
    check(pb.ListRobotsForOrgResponse(robots=[press, saw]))

    await client.update_robot(press.id, "stamp", yard)
    press.name, press.location = "stamp", yard
    check(pb.UpdateRobotResponse(robot=press))
    assert await client.list_robots(yard) == [saw, press]

    await client.delete_robot(saw.id)
    check(pb.DeleteRobotResponse())
    assert await client.list_robots(yard) == [press]
    with pytest.raises(GRPCError) as refused:
        await client.get_robot(saw.id)
    assert refused.value.status is Status.NOT_FOUND


async def test_parts(owner: Owner) -> None:
    client, check = owner.client, owner.replies.check
    hall, machine, main = await make_machine(owner)
    check(pb.GetRobotPartsResponse(parts=[main]))
    await owner.wait()
    arm_id = await client.new_robot_part(machine, "Linker Arm")
    check(pb.NewRobotPartResponse(part_id=arm_id))
    (_, found) = await client.get_robot_parts(machine)
    arm = describe_part(found.proto, "Linker Arm", "linker-arm", at(2))
    arm.main_part = False
    check(pb.GetRobotPartsResponse(parts=[main, arm]))
    request = pb.GetRobotPartByNameAndLocationRequest(name="Linker Arm", location_id=hall)
    await owner.app.GetRobotPartByNameAndLocation(request, metadata=owner.metadata)
    check(pb.GetRobotPartByNameAndLocationResponse(part=arm))

    await client.mark_part_as_main(arm.id)
    check(pb.MarkPartAsMainResponse())
    main.main_part, arm.main_part = False, True
    await client.get_robot_parts(machine)
    check(pb.GetRobotPartsResponse(parts=[arm, main]))
    await client.delete_robot_part(main.id)
    check(pb.DeleteRobotPartResponse())
    await client.get_robot_parts(machine)
    check(pb.GetRobotPartsResponse(parts=[arm]))


async def test_part_that_has_called(owner: Owner) -> None:
    client, check = owner.client, owner.replies.check
    _, machine, part = await make_machine(owner)
    caller = PartClient(owner.cloud, part.id)
    await caller.log_in(part.secret)
    info = {
        "host": "press.local",
        "os": "Debian 12",
        "ips": ["192.0.2.7", "2001:db8::7"],
        "version": "1.2.3",
        "git_revision": "45e86cc",
        "platform": "linux/arm64",
        "platform_tags": ["distro:debian"],
    }
    agent = robot_pb2.AgentInfo(**info)  # type: ignore[arg-type]
    await caller.call("Config", robot_pb2.ConfigRequest(id=part.id, agent_info=agent))
    part.user_supplied_info.update(info)
    part.online_state = ONLINE
    part.last_access.CopyFrom(at(1))
    await client.get_robot_part(part.id)
    check(pb.GetRobotPartResponse(part=part, config_json=owner_file(part)))

    await owner.wait(100)
    part.online_state, part.seconds_since_online = OFFLINE, 100
    await client.get_robot_part(part.id)
    check(pb.GetRobotPartResponse(part=part, config_json=owner_file(part)))
    machine_seen = pb.Robot(
        id=machine,
        name="press",
        location=part.location_id,
        created_on=at(1),
        last_access=at(1),
        online_state=OFFLINE,
        seconds_since_online=100,
    )
    assert await client.get_robot(machine) == machine_seen
    check(pb.GetRobotResponse(robot=machine_seen))

    await client.mark_part_for_restart(part.id)
    check(pb.MarkPartForRestartResponse())
    reply = await caller.call("NeedsRestart", robot_pb2.NeedsRestartRequest(id=part.id))
    assert reply.must_restart
    caller.channel.close()


async def test_secrets_of_a_part(owner: Owner) -> None:
    client, check = owner.client, owner.replies.check
    _, _, part = await make_machine(owner)
    (old,) = part.secrets
    await owner.wait()
    new, _ = (await client.create_robot_part_secret(part.id)).secrets or []
    part.secret = new.secret
    del part.secrets[:]
    second = pb.SharedSecret(id=new.id, secret=new.secret, created_on=at(2), state=ENABLED)
    part.secrets.extend([second, old])
    check(pb.CreateRobotPartSecretResponse(part=part))
    assert new.secret != old.secret
    await client.delete_robot_part_secret(part.id, old.id)
    check(pb.DeleteRobotPartSecretResponse())
    del part.secrets[1]
    await client.get_robot_part(part.id)
    check(pb.GetRobotPartResponse(part=part, config_json=owner_file(part)))
    # The only one is replaced, and a machine that has it is not told the next one.
    await client.delete_robot_part_secret(part.id, new.id)
    check(pb.DeleteRobotPartSecretResponse())
    (last,) = (await client.get_robot_part(part.id)).secrets or []
    assert last.secret not in ("", new.secret, old.secret)


def revision(number: int) -> Struct:
    found = Struct()
    found.update({"revision": number})
    return found


async def test_edits_and_their_history(owner: Owner) -> None:
    client, check = owner.client, owner.replies.check
    _, machine, part = await make_machine(owner)
    role = APIKeyAuthorization("owner", "robot", machine)
    key, key_id = await client.create_key(owner.organization, [role], "visitor")
    visitor = await owner.cloud.connect(key_id, key)

    await owner.wait()
    await visitor.app_client.update_robot_part(part.id, "Säge Süd", {"debug": True})
    visitor.close()
    await owner.wait()
    await client.update_robot_part(part.id, "Säge Süd", None, None, TEXT)
    part.name, part.dns_name = "Säge Süd", "sage-sud"
    part.fqdn = f"sage-sud.{part.location_id}.{DOMAIN}"
    part.local_fqdn = f"sage-sud-{part.location_id}.local"
    part.last_updated.CopyFrom(at(3))
    part.robot_config_json = TEXT
    part.robot_config.update(json.loads(TEXT))
    check(pb.UpdateRobotPartResponse(part=part))
    await client.get_robot_part(part.id)
    check(pb.GetRobotPartResponse(part=part, config_json=owner_file(part)))

    by_owner = pb.AuthenticatorInfo(
        type=pb.AuthenticationType.AUTHENTICATION_TYPE_API_KEY, value=owner.cloud.key_id
    )
    by_visitor = pb.AuthenticatorInfo(
        type=pb.AuthenticationType.AUTHENTICATION_TYPE_API_KEY, value=key_id
    )
    debug = Struct()
    debug.update({"debug": True})
    edits = [
        pb.RobotPartHistoryEntry(
            part=part.id,
            robot=machine,
            when=at(3),
            edited_by=by_owner,
            old=pb.RobotPart(
                id=part.id,
                name="Säge Süd",
                robot=machine,
                location_id=part.location_id,
                robot_config=debug,
                robot_config_json='{\n  "debug": true\n}',
                user_supplied_info=revision(1),
            ),
        ),
        pb.RobotPartHistoryEntry(
            part=part.id,
            robot=machine,
            when=at(2),
            edited_by=by_visitor,
            old=pb.RobotPart(
                id=part.id,
                name="press-main",
                robot=machine,
                location_id=part.location_id,
                robot_config=Struct(),
                robot_config_json="{}",
                user_supplied_info=revision(0),
            ),
        ),
    ]
    await client.get_robot_part_history(part.id)
    check(pb.GetRobotPartHistoryResponse(history=edits))
    await client.get_robot_part_history(part.id, page_limit=1)
    check(pb.GetRobotPartHistoryResponse(history=edits[:1], next_page_token="1"))
    await client.get_robot_part_history(part.id, end=at(3).ToDatetime())
    check(pb.GetRobotPartHistoryResponse(history=edits[1:]))
    await client.delete_key(key_id)
    edits[1].edited_by.is_deactivated = True
    await client.get_robot_part_history(part.id)
    check(pb.GetRobotPartHistoryResponse(history=edits))


async def test_configuration_with_fragments_and_login(owner: Owner) -> None:
    """`config_json` is what the client writes to a file: what the machine runs, and its login."""
    client = owner.client
    _, machine, part = await make_machine(owner)
    fragment = await client.create_fragment(
        owner.organization, "f", {"components": [{"name": "shared"}]}
    )
    config: Any = {"fragments": [fragment.id], "components": [{"name": "own"}]}
    await client.update_robot_part(part.id, "press-main", config)
    request = pb.GetRobotPartRequest(id=part.id)
    reply = await owner.app.GetRobotPart(request, metadata=owner.metadata)
    seen = json.loads(reply.config_json)
    assert {each["name"] for each in seen["components"]} == {"own", "shared"}
    assert "fragments" not in seen
    assert seen["cloud"] == cloud_section(part)

    role = APIKeyAuthorization("operator", "robot", machine)
    key, key_id = await client.create_key(owner.organization, [role], "viewer")
    viewer = await owner.cloud.connect(key_id, key)
    reply = await owner.app.GetRobotPart(request, metadata=dict(viewer._metadata))
    viewer.close()
    seen = json.loads(reply.config_json)
    assert {each["name"] for each in seen["components"]} == {"own", "shared"}
    assert seen["cloud"] == {"id": part.id, "app_address": f"https://{DOMAIN}:443"}


async def make_machine(owner: Owner) -> tuple[str, str, pb.RobotPart]:
    """Return a location, a machine in it, and the machine's only part, created at second 1."""
    location = (await owner.client.create_location(owner.organization, "Hall")).id
    await owner.wait()
    machine = await owner.client.new_robot("press", location)
    (found,) = await owner.client.get_robot_parts(machine)
    assert (found.robot, found.location_id) == (machine, location)
    return location, machine, describe_part(found.proto, "press-main", "press-main", at(1))


def describe_part(found: pb.RobotPart, name: str, host: str, created: Timestamp) -> pb.RobotPart:
    """Return a main part as it should be, with the IDs and the secret of what was found."""
    (secret,) = found.secrets
    return pb.RobotPart(
        id=found.id,
        name=name,
        dns_name=host,
        secret=secret.secret,
        robot=found.robot,
        location_id=found.location_id,
        robot_config=Struct(),
        main_part=True,
        fqdn=f"{host}.{found.location_id}.{DOMAIN}",
        local_fqdn=f"{host}-{found.location_id}.local",
        created_on=created,
        secrets=[
            pb.SharedSecret(id=secret.id, secret=secret.secret, created_on=created, state=ENABLED)
        ],
        last_updated=created,
        online_state=NEVER_SEEN,
        robot_config_json="{}",
    )


def owner_file(part: pb.RobotPart) -> str:
    """Return the configuration of a part without fragments and modules, as owners get it."""
    config = {**json.loads(part.robot_config_json), "cloud": cloud_section(part)}
    return json.dumps(config, ensure_ascii=False)


def cloud_section(part: pb.RobotPart) -> dict[str, str]:
    return {"id": part.id, "app_address": f"https://{DOMAIN}:443", "secret": part.secret}
