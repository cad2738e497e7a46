"""The HTTP interface of the cloud: what installers, small machines and browsers request."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from tests.contract.test_grpcweb import BINARY, Reply, frame, parse_reply
from tests.interop.test_app_client import PROGRAM
from tests.interop.test_robot_service import PartClient
from tests.support.cloud.fleet import make_part, run_cloud
from tests.support.machine.running import Server, start_server
from viam.app.app_client import AppClient
from viam.app.viam_client import ViamClient
from viam.gen.app.v1 import app_pb2
from viam.gen.app.v1.robot_pb2 import ConfigRequest, ConfigResponse
from viam.rpc.dial import DialOptions

from cogwork.core.clock import ManualClock


@dataclass
class ServedCloud:
    server: Server
    key_id: str
    key: str
    app: AppClient

    async def request(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, bytes]:
        def send() -> tuple[int, bytes]:
            connection = http.client.HTTPConnection("localhost", self.server.port, timeout=60)
            try:
                connection.request(method, path, body, headers)
                response = connection.getresponse()
                return response.status, response.read()
            finally:
                connection.close()

        return await asyncio.to_thread(send)

    async def log_in(self, key: str, **headers: str) -> tuple[int, Any]:
        body = {"entity": self.key_id, "credentials": {"type": "api-key", "payload": key}}
        status, reply = await self.request(
            "POST", "/rpc/v1/authenticate", json.dumps(body).encode(), **headers
        )
        return status, json.loads(reply)

    async def call(self, method: str, request: bytes, **headers: str) -> Reply:
        headers["content-type"] = BINARY
        status, body = await self.request(
            "POST", f"/viam.app.v1.AppService/{method}", frame(request), **headers
        )
        assert status == 200
        return parse_reply(body, {})


@pytest.fixture
async def cloud(tmp_path: Path) -> AsyncIterator[ServedCloud]:
    data = ["--data", str(tmp_path / "cloud")]
    async with start_server(["init", *data, "--organization", "Acme"], program=PROGRAM) as init:
        assert await init.exit_code() == 0
    key_id = (await init.out.wait_for(r"key ID: (\S+)"))[1]
    key = (await init.out.wait_for(r"key: +(\S+)"))[1]
    serve = ["serve", *data, "--address", "localhost:0", "--public-address", "cloud.test:443"]
    async with start_server(serve, program=PROGRAM) as server:
        await server.wait_until_serving()
        options = DialOptions.with_api_key(key, key_id)
        options.insecure = True
        client = await ViamClient.create_from_dial_options(options, f"localhost:{server.port}")
        yield ServedCloud(server, key_id, key, client.app_client)
        client.close()


async def test_browser_logs_in_and_calls(cloud: ServedCloud) -> None:
    status, reply = await cloud.log_in(cloud.key)
    assert status == 200
    authorization = f"Bearer {reply['accessToken']}"
    found = await cloud.call("ListOrganizations", b"", authorization=authorization)
    assert found.status == 0
    organizations = app_pb2.ListOrganizationsResponse.FromString(found.messages[0]).organizations
    assert [each.name for each in organizations] == ["Acme"]
    request = app_pb2.GetRobotRequest(id="unknown").SerializeToString()
    assert (await cloud.call("GetRobot", request, authorization=authorization)).status == 5
    assert (await cloud.call("ListOrganizations", b"")).status == 16
    assert (await cloud.call("ListOrganizations", b"", authorization="Bearer x")).status == 16


async def test_config_tells_the_time(tmp_path: Path) -> None:
    """Micro servers set their clocks by it."""
    clock = ManualClock(1_800_000_000.0)
    async with run_cloud(tmp_path, clock) as cloud:
        owner = await cloud.connect()
        part = await owner.app_client.get_robot_part(await make_part(owner.app_client))
        machine = PartClient(cloud, part.id)
        await machine.log_in(part.secret)
        async with grpc.aio.insecure_channel(cloud.address) as channel:
            config: Any = channel.unary_unary(
                "/viam.app.v1.RobotService/Config",
                request_serializer=ConfigRequest.SerializeToString,
                response_deserializer=ConfigResponse.FromString,
            )
            call = config(ConfigRequest(id=part.id), metadata=[*machine._metadata.items()])
            date = dict(await call.initial_metadata())["date"]
            await call
        assert parsedate_to_datetime(date).timestamp() == clock.time()
        machine.channel.close()
        owner.close()
