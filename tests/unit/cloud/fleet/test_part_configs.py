"""Edits of configurations, and their history."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from tests.support.cloud.organization import OwnedOrganization
from viam.gen.app.v1 import app_pb2 as pb

from cogwork.cloud.fleet.part_configs import StaleConfig
from cogwork.core.errors import InvalidRequest


def edit(acme: OwnedOrganization, config: dict[str, Any] | str, **fields: Any) -> pb.RobotPart:
    text = config if isinstance(config, str) else json.dumps(config)
    request = pb.UpdateRobotPartRequest(id=acme.tenant.part, robot_config_json=text, **fields)
    part: pb.RobotPart = acme.run(request).part
    return part


def read_history(acme: OwnedOrganization, key: str = "", **fields: Any) -> Any:
    request = pb.GetRobotPartHistoryRequest(id=acme.tenant.part, **fields)
    return acme.cloud.run(key or acme.tenant.key, request)


def texts(reply: Any) -> list[str]:
    return [each.old.robot_config_json for each in reply.history]


def test_edit_is_told_to_the_machine_and_its_text_is_kept(acme: OwnedOrganization) -> None:
    text = '{ "components": [],\n  "debug": 1.0 }'
    assert edit(acme, text).robot_config_json == text
    assert (acme.changed, acme.ended) == ({acme.tenant.part}, [])


def test_edit_that_changes_nothing_is_none(acme: OwnedOrganization) -> None:
    edit(acme, {"debug": True})
    edit(acme, {"debug": True})
    assert acme.changed == set()
    assert len(read_history(acme).history) == 1


def test_history_has_the_state_before_each_edit(acme: OwnedOrganization) -> None:
    for number in range(3):
        edit(acme, {"n": number})
    reply = read_history(acme)
    assert texts(reply) == ['{"n": 1}', '{"n": 0}', "{}"]
    assert {each.edited_by.value for each in reply.history} == {acme.tenant.key}


def test_history_comes_in_pages(acme: OwnedOrganization) -> None:
    for number in range(5):
        edit(acme, {"n": number})
    found: list[str] = []
    token = ""
    for _ in range(3):
        reply = read_history(acme, page_limit=2, page_token=token)
        found += texts(reply)
        token = reply.next_page_token
    assert token == ""
    assert found == ['{"n": 3}', '{"n": 2}', '{"n": 1}', '{"n": 0}', "{}"]


def test_page_is_bounded_by_bytes(acme: OwnedOrganization) -> None:
    for number in range(4):
        edit(acme, {"n": number, "text": "x" * 600_000})
    reply = read_history(acme)
    assert len(reply.history) == 1
    assert len(read_history(acme, page_token=reply.next_page_token).history) == 1


def test_history_is_bounded_by_times(acme: OwnedOrganization) -> None:
    edit(acme, {"n": 0})
    acme.cloud.advance(10)
    now = int(acme.cloud.clock.time())
    edit(acme, {"n": 1})
    assert texts(read_history(acme, start=Timestamp(seconds=now))) == ['{"n": 0}']
    assert texts(read_history(acme, end=Timestamp(seconds=now))) == ["{}"]


def test_of_two_edits_of_the_same_state_the_second_is_refused(acme: OwnedOrganization) -> None:
    read_at = edit(acme, {"n": 0}).last_updated
    edit(acme, {"n": 1}, last_known_update=read_at)
    with pytest.raises(StaleConfig, match="read it again"):
        edit(acme, {"n": 2}, last_known_update=read_at)


def test_renamed_part_has_a_name_that_is_its_own(acme: OwnedOrganization) -> None:
    machine = acme.run(pb.NewRobotRequest(name="saw", location=acme.tenant.location)).id
    (saw,) = acme.run(pb.GetRobotPartsRequest(robot_id=machine)).parts
    renamed = acme.run(pb.UpdateRobotPartRequest(id=saw.id, name="press-main")).part
    assert renamed.name == "press-main"
    assert renamed.fqdn not in (acme.tenant.host, saw.fqdn)


def test_operators_see_no_secrets_in_a_history(acme: OwnedOrganization) -> None:
    remote = {"name": "far", "address": "far", "secret": "open sesame"}
    edit(acme, {"remotes": [remote]})
    edit(acme, {})
    guest = acme.create(acme.grant("robot", "operator")).id
    (newest, _) = texts(read_history(acme, guest))
    assert "far" in newest
    assert "open sesame" not in newest
    assert "open sesame" in texts(read_history(acme))[0]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "not a JSON object"),
        ('{"n": 1e999}', "too large, or NaN"),
        ('{"n": NaN}', "too large, or NaN"),
        ('{"n": ' + "[" * 200 + "]" * 200 + "}", "levels deep"),
        (json.dumps({"text": "x" * (3 << 20)}), "is larger than"),
    ],
    ids=["cut off", "list", "infinite", "NaN", "deep", "large"],
)
def test_configuration_that_cannot_be_stored(
    acme: OwnedOrganization, config: str, message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message):
        edit(acme, config)
