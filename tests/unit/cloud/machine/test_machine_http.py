"""HTTP requests of machines and installers: logins, the file of a machine, and claim codes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from google.protobuf.wrappers_pb2 import StringValue
from tests.support.cloud.in_process_cloud import HttpReply, TwoTenantCloud
from tests.support.waiting import count_sleepers, wait_until
from viam.gen.app.v1 import app_pb2 as pb

from cogwork.auth.errors import RoleTooLow
from cogwork.auth.refusal_delay import DELAY
from cogwork.cloud.identity.access import CloudRole, ResourceType
from cogwork.cloud.storage.records import Transaction
from cogwork.wire.messages.claim_method import CLAIM_LIFETIME, CLAIM_PATH

LOGIN = "/rpc/v1/authenticate"


async def log_in(
    cloud: TwoTenantCloud, entity: str, secret: str, kind: str = "api-key", **headers: str
) -> HttpReply:
    body = {"entity": entity, "credentials": {"type": kind, "payload": secret}}
    return await cloud.request("POST", LOGIN, json.dumps(body).encode(), headers)


async def get_file(cloud: TwoTenantCloud, part: str, key_id: str, key: str) -> HttpReply:
    headers = {"key_id": key_id, "key": key}
    return await cloud.request("GET", f"/api/json1/config?id={part}", headers=headers)


async def claim(cloud: TwoTenantCloud, body: Any) -> HttpReply:
    return await cloud.request("POST", CLAIM_PATH, json.dumps(body).encode())


async def create_code(cloud: TwoTenantCloud) -> str:
    token = await cloud.log_in_as(CloudRole.OWNER)
    reply = await cloud.call("CreateClaim", token, StringValue(value=cloud.mine.part))
    return str(reply.value)


async def test_login_returns_a_token_for_calls(cloud: TwoTenantCloud) -> None:
    reply = await log_in(cloud, *cloud.owner)
    assert reply.status == 200
    assert reply.headers["cache-control"] == "no-store"
    token = json.loads(reply.body)["accessToken"]
    found = await cloud.call("ListOrganizations", token, pb.ListOrganizationsRequest())
    assert len(found.organizations) == 3


async def test_wrong_login_is_refused(cloud: TwoTenantCloud) -> None:
    refused = await log_in(cloud, cloud.owner[0], "wrong")
    assert (refused.status, json.loads(refused.body)["code"]) == (401, 16)
    # The secret of a part is not a key.
    secret = await cloud.read_secret(cloud.mine.part)
    assert (await log_in(cloud, cloud.mine.part, secret)).status == 401
    assert (await log_in(cloud, cloud.mine.part, secret, "robot-secret")).status == 200


async def test_login_within_a_login_is_refused(cloud: TwoTenantCloud) -> None:
    reply = await log_in(cloud, *cloud.owner, authorization="Bearer x")
    assert reply.status == 400
    assert "already authenticated" in json.loads(reply.body)["message"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"entity": 7}', b"\xff", b"[" * 60_000])
async def test_body_that_is_not_a_login_is_refused(cloud: TwoTenantCloud, body: bytes) -> None:
    assert (await cloud.request("POST", LOGIN, body)).status == 400


async def test_body_that_is_too_large_is_refused(cloud: TwoTenantCloud) -> None:
    assert (await cloud.request("POST", LOGIN, bytes(1 << 17))).status == 429


async def test_paths_and_methods(cloud: TwoTenantCloud) -> None:
    assert (await cloud.request("GET", LOGIN)).status == 405
    assert (await cloud.request("GET", "/")).status == 200
    assert (await cloud.request("GET", "/other")).status == 404


async def test_owner_gets_the_file_of_a_machine(cloud: TwoTenantCloud) -> None:
    reply = await get_file(cloud, cloud.mine.part, *cloud.owner)
    secret = await cloud.read_secret(cloud.mine.part)
    found = {"id": cloud.mine.part, "secret": secret, "app_address": "https://fleet.test:443"}
    assert (reply.status, json.loads(reply.body)) == (200, {"cloud": found})
    assert reply.headers["cache-control"] == "no-store"


async def test_file_is_for_owners_of_the_machine_only(cloud: TwoTenantCloud) -> None:
    part = cloud.mine.part
    for kind in ResourceType:
        operator = await cloud.create_key(CloudRole.OPERATOR, kind)
        assert (await get_file(cloud, part, *operator)).status == 403
        owner = await cloud.create_key(CloudRole.OWNER, kind)
        assert (await get_file(cloud, part, *owner)).status == 200
    stranger = await cloud.create_key(
        CloudRole.OWNER, ResourceType.ORGANIZATION, tenant=cloud.other
    )
    assert (await get_file(cloud, part, *stranger)).status == 404
    assert (await get_file(cloud, "unknown", *cloud.owner)).status == 404
    assert (await get_file(cloud, part, cloud.owner[0], "wrong")).status == 401


async def test_file_needs_a_key_and_a_part(cloud: TwoTenantCloud) -> None:
    key_id, key = cloud.owner
    for arguments in (("", key_id, key), (cloud.mine.part, "", key), (cloud.mine.part, key_id, "")):
        assert (await get_file(cloud, *arguments)).status == 400


async def test_secret_that_is_not_kept_cannot_be_shown(cloud: TwoTenantCloud) -> None:
    """A lost root key leaves only the digests of secrets."""

    def forget(tx: Transaction) -> None:
        tx.execute("UPDATE secret SET sealed = ''")

    await cloud.context.records.write(forget)
    reply = await get_file(cloud, cloud.mine.part, *cloud.owner)
    assert reply.status == 400
    assert "cogwork fleet part rotate" in json.loads(reply.body)["message"]


async def test_code_gets_the_file_once(cloud: TwoTenantCloud) -> None:
    code = await create_code(cloud)
    reply = await claim(cloud, {"code": code.lower()})
    assert reply.status == 200
    secret = await cloud.read_secret(cloud.mine.part)
    assert json.loads(reply.body)["cloud"]["secret"] == secret
    assert (await claim(cloud, {"code": code})).status == 401


async def test_code_expires(cloud: TwoTenantCloud) -> None:
    code = await create_code(cloud)
    await cloud.clock.advance(CLAIM_LIFETIME)
    assert (await claim(cloud, {"code": code})).status == 401


@pytest.mark.parametrize("body", [{}, [], {"code": 5}, {"code": None}, 7])
async def test_body_without_a_code_is_refused(cloud: TwoTenantCloud, body: Any) -> None:
    assert (await claim(cloud, body)).status == 400


async def test_guessed_codes_are_limited_but_a_correct_one_is_accepted(
    cloud: TwoTenantCloud,
) -> None:
    code = await create_code(cloud)
    guesses = [
        asyncio.ensure_future(claim(cloud, {"code": f"AAAA{number:04}"})) for number in range(40)
    ]
    await wait_until(lambda: sum(each.done() for each in guesses) == 30)
    # The other answers are delayed.
    await wait_until(lambda: count_sleepers(cloud.clock, DELAY) == 10)
    await cloud.clock.advance(DELAY)
    statuses = [each.status for each in await asyncio.gather(*guesses)]
    assert (statuses.count(401), statuses.count(429)) == (30, 10)
    assert (await claim(cloud, {"code": code})).status == 200


@pytest.mark.parametrize("role", CloudRole)
async def test_only_owners_create_codes(cloud: TwoTenantCloud, role: CloudRole) -> None:
    token = await cloud.log_in_as(role, ResourceType.MACHINE)
    call = cloud.call("CreateClaim", token, StringValue(value=cloud.mine.part))
    if role is CloudRole.OWNER:
        assert (await call).value
    else:
        with pytest.raises(RoleTooLow):
            await call
