"""Tokens of the cloud, which a machine checks without it."""

from __future__ import annotations

from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest
from grpclib import GRPCError
from grpclib.client import Channel
from grpclib.const import Status
from tests.interop.test_joined_machine import SENSOR, new_machine
from viam.app.app_client import APIKeyAuthorization
from viam.gen.proto.rpc.v1.auth_grpc import ExternalAuthServiceStub
from viam.gen.proto.rpc.v1.auth_pb2 import (
    AuthenticateToRequest,
)
from viam.gen.robot.v1.robot_grpc import RobotServiceStub
from viam.gen.robot.v1.robot_pb2 import ResourceNamesRequest, ShutdownRequest


async def refusal(call: Awaitable[Any]) -> Status:
    with pytest.raises(GRPCError) as refused:
        await call
    return refused.value.status


async def test_machine_accepts_tokens_of_its_cloud(tmp_path: Path) -> None:
    async with new_machine(tmp_path) as machine:
        await machine.save(SENSOR)
        app = machine.client
        part = await app.get_robot_part(machine.part)
        (organization,) = await app.list_organizations()
        neighbor = await app.new_robot("press", part.location_id)
        roles = [APIKeyAuthorization("operator", "robot", each) for each in (part.robot, neighbor)]
        key, key_id = await app.create_key(organization.id, roles, "operator")
        operator = await machine.cloud.connect(key_id, key)
        host, _, port = machine.cloud.address.partition(":")
        channel = Channel(host, int(port))
        request = AuthenticateToRequest(entity=part.fqdn)
        stub = ExternalAuthServiceStub(channel)
        reply = await stub.AuthenticateTo(request, metadata=operator._metadata)
        (its_part,) = await app.get_robot_parts(neighbor)
        request = AuthenticateToRequest(entity=its_part.fqdn)
        for_neighbor = await stub.AuthenticateTo(request, metadata=operator._metadata)
        # It is a token for the part, whatever its name is.
        await app.update_robot_part(machine.part, "saw")
        channel.close()
        operator.close()
        login = {"authorization": f"Bearer {reply.access_token}"}
        async with machine.run() as server:
            await server.out.wait_for("1 ready")
            direct = Channel("localhost", server.port)
            robot = RobotServiceStub(direct)
            names = await robot.ResourceNames(ResourceNamesRequest(), metadata=login)
            assert [each.name for each in names.resources] == ["scale", "builtin"]
            refused = robot.Shutdown(ShutdownRequest(), metadata=login)
            assert await refusal(refused) is Status.PERMISSION_DENIED
            for token in (f"{reply.access_token[:-8]}AAAAAAAA", for_neighbor.access_token):
                other = {"authorization": f"Bearer {token}"}
                refused = robot.ResourceNames(ResourceNamesRequest(), metadata=other)
                assert await refusal(refused) is Status.UNAUTHENTICATED
            direct.close()
