"""A client certificate as the login, with real clients."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import ssl
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
from tests.support.machine.running import run_server, with_free_port
from tests.support.machine.watched import FAKES
from viam.gen.robot.v1.robot_pb2 import ResourceNamesRequest, ResourceNamesResponse

from cogwork.cli.main import main

NAMES = "/viam.robot.v1.RobotService/ResourceNames"
CLIENT = "laptop.example"


def make_config(certs: Path, client: str = CLIENT) -> dict[str, Any]:
    network = {
        "tls_cert_file": str(certs / "cert.pem"),
        "tls_key_file": str(certs / "key.pem"),
        "tls_client_ca_file": str(certs / "ca.pem"),
    }
    return {
        **FAKES,
        "network": with_free_port({"network": network})["network"],
        "auth": {"tls_auth_entities": [client]},
    }


def connect(certs: Path, port: int, client: str | None) -> grpc.aio.Channel:
    own = (
        [(certs / f"{client}{end}.pem").read_bytes() for end in ("-key", "")]
        if client is not None
        else [None, None]
    )
    credentials = grpc.ssl_channel_credentials((certs / "ca.pem").read_bytes(), *own)
    options = [("grpc.use_local_subchannel_pool", 1)]
    return grpc.aio.secure_channel(f"localhost:{port}", credentials, options=options)


async def list_resources(channel: grpc.aio.Channel) -> ResourceNamesResponse:
    call: Any = channel.unary_unary(
        NAMES,
        request_serializer=ResourceNamesRequest.SerializeToString,
        response_deserializer=ResourceNamesResponse.FromString,
    )
    reply: ResourceNamesResponse = await call(ResourceNamesRequest(), timeout=60)
    return reply


async def refusal_of(channel: grpc.aio.Channel) -> str:
    try:
        await list_resources(channel)
    except grpc.aio.AioRpcError as error:
        return f"{error.code().name}: {error.details()}"
    return "OK"


def get_status(certs: Path, port: int, client: str) -> int:
    context = ssl.create_default_context(cafile=certs / "ca.pem")
    context.load_cert_chain(certs / f"{client}.pem", certs / f"{client}-key.pem")
    connection = http.client.HTTPSConnection("localhost", port, timeout=60, context=context)
    with contextlib.closing(connection):
        connection.request("GET", "/status.json")
        return connection.getresponse().status


async def test_certificate_logs_in_until_its_name_is_removed(tmp_path: Path) -> None:
    certs = tmp_path / "certs"
    directory = ["--directory", str(certs)]
    assert main(["certs", "local", "machine.example", *directory]) == 0
    assert main(["certs", "client", CLIENT, *directory]) == 0
    assert main(["certs", "client", "other.example", *directory]) == 0
    config = make_config(certs)
    async with run_server(config, tmp_path) as server:
        await server.out.wait_for("applied in")
        async with (
            connect(certs, server.port, CLIENT) as ours,
            connect(certs, server.port, "other.example") as other,
            connect(certs, server.port, None) as stranger,
        ):
            assert (await list_resources(ours)).resources
            for channel in (other, stranger):
                assert await refusal_of(channel) == "UNAUTHENTICATED: authentication required"
            assert await asyncio.to_thread(get_status, certs, server.port, CLIENT) == 200
            assert await asyncio.to_thread(get_status, certs, server.port, "other.example") == 401

            since = len(server.out.lines)
            config["auth"]["tls_auth_entities"] = ["other.example"]
            server.save(config)
            await server.out.wait_for("applied in", since=since)
            assert await refusal_of(ours) == "UNAUTHENTICATED: authentication required"
