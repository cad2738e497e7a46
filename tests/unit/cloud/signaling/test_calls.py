"""Calls of clients to machines through the cloud: who may call, and what passes between them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.cloud.in_process_cloud import (
    START,
    CloudTemplate,
    OpenCall,
    TwoTenantCloud,
    open_two_tenants,
)
from viam.gen.app.v1 import app_pb2
from viam.gen.proto.rpc.webrtc.v1 import signaling_pb2 as pb

from cogwork.auth.errors import RoleTooLow, Unauthenticated
from cogwork.cloud.identity.access import CloudRole, ResourceType
from cogwork.cloud.signaling.relay_servers import RelayServers
from cogwork.cloud.signaling.rendezvous import CALL_TIMEOUT, HostOffline
from cogwork.core.errors import Interrupted, InvalidRequest, NotFound

OPERATOR, OWNER = CloudRole
MACHINE = ResourceType.MACHINE
WAITS = {"heartbeats-allowed": "true"}


async def wait_for_calls(cloud: TwoTenantCloud, waiting: OpenCall) -> None:
    assert (await waiting.receive()).HasField("heartbeat")
    # The first heartbeat is sent when the machine waits.


def answer(waiting: OpenCall, request: Any, **stages: Any) -> None:
    waiting.send(pb.AnswerResponse(uuid=request.uuid, **stages))


async def test_messages_pass_between_client_and_machine(cloud: TwoTenantCloud) -> None:
    hosts = (cloud.mine.host,)
    part, client = await cloud.log_in_part(), await cloud.log_in_as(OPERATOR, MACHINE)
    async with cloud.open("Answer", part, hosts=hosts, metadata=WAITS) as waiting:
        await wait_for_calls(cloud, waiting)
        offer = pb.CallRequest(sdp="offer", disable_trickle=True)
        async with cloud.open("Call", client, offer, hosts=hosts) as calling:
            request = await waiting.receive()
            assert (request.init.sdp, request.init.optional_config.disable_trickle) == (
                "offer",
                True,
            )
            assert request.init.caller_auth_metadata["role"] == "operator"
            assert request.init.deadline.seconds == START + CALL_TIMEOUT
            answer(waiting, request, init=pb.AnswerResponseInitStage(sdp="answer"))
            reply = await calling.receive()
            assert (reply.uuid, reply.init.sdp) == (request.uuid, "answer")
            candidate = pb.ICECandidate(candidate="a path")
            answer(waiting, request, update=pb.AnswerResponseUpdateStage(candidate=candidate))
            assert (await calling.receive()).update.candidate == candidate

            update = pb.CallUpdateRequest(uuid=reply.uuid, candidate=candidate)
            await cloud.call("CallUpdate", client, update)
            assert (await waiting.receive()).update.candidate == candidate
            await cloud.call("CallUpdate", client, pb.CallUpdateRequest(uuid=reply.uuid, done=True))
            assert (await waiting.receive()).HasField("done")

            answer(waiting, request, done=pb.AnswerResponseDoneStage())
            assert await calling.receive() is None


async def test_client_of_another_call_sends_no_updates(cloud: TwoTenantCloud) -> None:
    hosts = (cloud.mine.host,)
    part, client = await cloud.log_in_part(), await cloud.log_in_as(OWNER, MACHINE)
    async with cloud.open("Answer", part, hosts=hosts, metadata=WAITS) as waiting:
        await wait_for_calls(cloud, waiting)
        async with cloud.open("Call", client, pb.CallRequest(sdp="x"), hosts=hosts):
            request = await waiting.receive()
            update = pb.CallUpdateRequest(uuid=request.uuid, done=True)
            other = await cloud.log_in_as(OWNER, MACHINE)
            for token in (other, part):
                with pytest.raises(NotFound, match="there is no call"):
                    await cloud.call("CallUpdate", token, update)
            with pytest.raises(NotFound):
                await cloud.call("CallUpdate", client, pb.CallUpdateRequest(uuid="unknown"))
            await cloud.call("CallUpdate", client, update)


@pytest.mark.parametrize("role", CloudRole)
@pytest.mark.parametrize("kind", ResourceType)
async def test_every_role_on_the_machine_may_call(
    cloud: TwoTenantCloud, role: CloudRole, kind: ResourceType
) -> None:
    hosts = (cloud.mine.host,)
    part = await cloud.log_in_part()
    async with cloud.open("Answer", part, hosts=hosts, metadata=WAITS) as waiting:
        await wait_for_calls(cloud, waiting)
        # Operators leave the last stream to owners.
        async with cloud.open("Answer", part, hosts=hosts, metadata=WAITS) as second:
            await wait_for_calls(cloud, second)
            client = await cloud.log_in_as(role, kind)
            async with cloud.open("Call", client, pb.CallRequest(sdp="x"), hosts=hosts):
                request = await waiting.receive()
                assert request.init.caller_auth_metadata["role"] == role.name.lower()


async def test_strangers_and_other_parts_do_not_learn_that_a_machine_is_online(
    cloud: TwoTenantCloud,
) -> None:
    hosts, offer = (cloud.mine.host,), pb.CallRequest(sdp="x")
    owner = await cloud.log_in_as(OWNER)
    with pytest.raises(HostOffline) as offline:
        await cloud.call("Call", owner, offer, hosts=hosts)
    part = await cloud.log_in_part()
    async with cloud.open("Answer", part, hosts=hosts, metadata=WAITS) as waiting:
        await wait_for_calls(cloud, waiting)
        for token in (
            await cloud.log_in_as(OWNER, tenant=cloud.other),
            await cloud.log_in_part(cloud.other),
            part,
        ):
            with pytest.raises(HostOffline) as refused:
                await cloud.call("Call", token, offer, hosts=hosts)
            assert str(refused.value) == str(offline.value)


async def test_refusal_of_the_machine_reaches_the_client(cloud: TwoTenantCloud) -> None:
    hosts = (cloud.mine.host,)
    part, client = await cloud.log_in_part(), await cloud.log_in_as(OWNER)
    async with cloud.open("Answer", part, hosts=hosts, metadata=WAITS) as waiting:
        await wait_for_calls(cloud, waiting)
        async with cloud.open("Call", client, pb.CallRequest(sdp="x"), hosts=hosts) as calling:
            request = await waiting.receive()
            error = pb.AnswerResponseErrorStage()
            error.status.message = "too many connections"
            answer(waiting, request, error=error)
            with pytest.raises(Interrupted, match="refused: too many connections"):
                await calling.receive()


async def test_call_that_is_not_answered_ends(
    cloud: TwoTenantCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cogwork.cloud.signaling.signaling_service.CALL_TIMEOUT", 0.01)
    hosts = (cloud.mine.host,)
    part, client = await cloud.log_in_part(), await cloud.log_in_as(OWNER)
    async with cloud.open("Answer", part, hosts=hosts, metadata=WAITS) as waiting:
        await wait_for_calls(cloud, waiting)
        with pytest.raises(Interrupted, match="did not answer within"):
            await cloud.call("Call", client, pb.CallRequest(sdp="x"), hosts=hosts)
        assert (await waiting.receive()).HasField("init")
        with pytest.raises(Interrupted, match="wait for the next one"):
            await waiting.receive()


async def test_waiting_ends_with_the_access(cloud: TwoTenantCloud) -> None:
    key_id, key = await cloud.create_key(OWNER, MACHINE)
    token = await cloud.log_in(key_id, key)
    hosts = (cloud.mine.host,)
    async with cloud.open("Answer", token, hosts=hosts, metadata=WAITS) as waiting:
        await wait_for_calls(cloud, waiting)
        owner = await cloud.log_in_as(OWNER)
        await cloud.call("DeleteKey", owner, app_pb2.DeleteKeyRequest(id=key_id))
        with pytest.raises(Unauthenticated):
            await waiting.receive()


async def test_waiting_machine_is_online(cloud: TwoTenantCloud) -> None:
    part, hosts = await cloud.log_in_part(), (cloud.mine.host,)
    presence = cloud.context.presence
    assert presence.list_connected() == []
    async with cloud.open("Answer", part, hosts=hosts, metadata=WAITS) as waiting:
        await wait_for_calls(cloud, waiting)
        assert cloud.mine.part in presence.list_connected()
    assert presence.list_connected() == []


async def test_name_may_have_a_port_and_capitals(cloud: TwoTenantCloud) -> None:
    part = await cloud.log_in_part()
    hosts = (f"{cloud.mine.host.upper()}:443", "unknown.example")
    async with cloud.open("Answer", part, hosts=hosts, metadata=WAITS) as waiting:
        await wait_for_calls(cloud, waiting)


@pytest.mark.parametrize("count", [0, 5, 6])
async def test_number_of_names_is_limited(cloud: TwoTenantCloud, count: int) -> None:
    part = await cloud.log_in_part()
    hosts = (cloud.mine.host,) * count
    async with cloud.open("Answer", part, hosts=hosts, metadata=WAITS) as waiting:
        if count == 5:
            await wait_for_calls(cloud, waiting)
        else:
            with pytest.raises(InvalidRequest, match="expected 1 to 5 rpc-host"):
                await waiting.receive()


async def test_client_calls_one_machine(cloud: TwoTenantCloud) -> None:
    owner = await cloud.log_in_as(OWNER)
    with pytest.raises(InvalidRequest, match="expected 1 to 1 rpc-host"):
        await cloud.call("Call", owner, pb.CallRequest(), hosts=(cloud.mine.host,) * 2)


async def test_names_of_two_parts_are_ambiguous(cloud: TwoTenantCloud) -> None:
    owner = await cloud.log_in_as(OWNER)
    new = app_pb2.NewRobotPartRequest(robot_id=cloud.mine.machine, part_name="arm")
    made = (await cloud.call("NewRobotPart", owner, new)).part_id
    found = (await cloud.call("GetRobotPart", owner, app_pb2.GetRobotPartRequest(id=made))).part
    local = await cloud.log_in_as(OWNER, MACHINE)
    with pytest.raises(NotFound, match="does not have the name"):
        await cloud.call("Answer", local, hosts=(cloud.mine.host, found.fqdn))
    async with cloud.open("Answer", local, hosts=(found.fqdn,), metadata=WAITS) as waiting:
        await wait_for_calls(cloud, waiting)


@pytest.mark.parametrize("urls", [(), ("turn:turn.test:3478",)])
async def test_relays_are_for_those_who_use_the_machine(
    in_process_template: CloudTemplate, tmp_path: Any, urls: tuple[str, ...]
) -> None:
    relays, asks = RelayServers(urls, "secret"), pb.OptionalWebRTCConfigRequest()
    async with open_two_tenants(in_process_template, tmp_path / "cloud", relays) as cloud:
        hosts = (cloud.mine.host,)
        for token in (await cloud.log_in_as(OPERATOR, MACHINE), await cloud.log_in_part()):
            reply = await cloud.call("OptionalWebRTCConfig", token, asks, hosts=hosts)
            servers = reply.config.additional_ice_servers
            assert [tuple(each.urls) for each in servers] == ([urls] if urls else [])
            for each in servers:
                assert each.username.startswith(f"{int(START) + 24 * 3600}:")
        for token in (
            await cloud.log_in_as(OWNER, tenant=cloud.other),
            await cloud.log_in_part(cloud.other),
        ):
            with pytest.raises((NotFound, HostOffline)):
                await cloud.call("OptionalWebRTCConfig", token, asks, hosts=hosts)


async def test_report_of_a_connection_needs_a_login(cloud: TwoTenantCloud) -> None:
    report = pb.ReportConnectionMetadataRequest()
    part = await cloud.log_in_part()
    assert await cloud.call("ReportConnectionMetadata", part, report) is not None
    with pytest.raises(Unauthenticated):
        await cloud.call("ReportConnectionMetadata", "", report)


async def test_operators_do_not_answer(cloud: TwoTenantCloud) -> None:
    token = await cloud.log_in_as(OPERATOR, MACHINE)
    with pytest.raises(RoleTooLow):
        await cloud.call("Answer", token, hosts=(cloud.mine.host,))
