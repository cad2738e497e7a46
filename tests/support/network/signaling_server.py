"""A signaling server for tests: machines wait at it, and clients call them by name.

Run as `python -m tests.support.network.signaling_server ADDRESS ICE_SERVERS`, it serves gRPC on
port 9090 and gRPC-web on port 9091. ICE_SERVERS is a list of [URL, user name, credential] as JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import sys
from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio
from tests.support.network import grpcweb_proxy
from viam.gen.proto.rpc.v1.auth_pb2 import AuthenticateRequest, AuthenticateResponse
from viam.gen.proto.rpc.webrtc.v1 import signaling_pb2 as pb

SERVICE = "proto.rpc.webrtc.v1.SignalingService"
TOKEN = "token-of-the-signaling-server"


@dataclass
class SignalingServer:
    entity: str = "alice@example.com"
    """Who calls, as machines are told."""
    role: str = ""
    key: str = "key-of-the-machine"
    """The key with which machines log in."""
    ice_servers: list[pb.ICEServer] = field(default_factory=list)
    port: int = 0
    waiting: dict[str, asyncio.Queue[Any]] = field(
        default_factory=lambda: defaultdict(asyncio.Queue)
    )
    """Answer streams that wait for a call, by host."""
    calls: dict[str, asyncio.Queue[Any]] = field(default_factory=dict)
    """Updates of the caller, by call."""
    streams: int = 0
    """Answer streams that are open."""
    _server: Any = None
    _numbers: Any = field(default_factory=lambda: itertools.count(1))

    async def authenticate(self, request: AuthenticateRequest, context: Any) -> Any:
        if request.credentials.payload != self.key:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "invalid credentials")
        return AuthenticateResponse(access_token=TOKEN)

    async def optional_config(self, _: Any, __: Any) -> Any:
        config = pb.WebRTCConfig(additional_ice_servers=self.ice_servers)
        return pb.OptionalWebRTCConfigResponse(config=config)

    async def answer(self, _: Any, context: Any) -> None:
        metadata = list(context.invocation_metadata())
        if ("authorization", f"Bearer {TOKEN}") not in metadata:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "log in first")
        hosts = [value for name, value in metadata if name == "rpc-host"]
        taken = asyncio.Event()
        offer: asyncio.Queue[Any] = asyncio.Queue()
        self.streams += 1
        try:
            await context.write(pb.AnswerRequest(heartbeat=pb.AnswerRequestHeartbeatStage()))
            for host in hosts:
                self.waiting[host].put_nowait((offer, taken))
            request, answers, updates = await offer.get()
            await context.write(request)
            forwarding = asyncio.ensure_future(self._forward(context, request.uuid, updates))
            try:
                while (message := await context.read()) is not grpc.aio.EOF:
                    answers.put_nowait(message)
            finally:
                forwarding.cancel()
        finally:
            self.streams -= 1
            taken.set()

    async def _forward(self, context: Any, call_id: str, updates: asyncio.Queue[Any]) -> None:
        while True:
            request: pb.CallUpdateRequest = await updates.get()
            message = pb.AnswerRequest(uuid=call_id)
            if request.WhichOneof("update") == "candidate":
                message.update.candidate.CopyFrom(request.candidate)
            else:
                message.done.SetInParent()
            await context.write(message)

    async def call(self, request: pb.CallRequest, context: Any) -> AsyncIterator[Any]:
        (host,) = [value for name, value in context.invocation_metadata() if name == "rpc-host"]
        host = host.partition(":")[0]  # clients may add the port at which they dialed
        call_id = str(next(self._numbers))
        offer = pb.AnswerRequestInitStage(sdp=request.sdp, caller_auth_entity=self.entity)
        if self.role:
            offer.caller_auth_metadata["role"] = self.role
        offer.optional_config.additional_ice_servers.extend(self.ice_servers)
        answers: asyncio.Queue[Any] = asyncio.Queue()
        updates = self.calls[call_id] = asyncio.Queue()
        while True:
            waiting, taken = await asyncio.wait_for(self.waiting[host].get(), 10)
            if not taken.is_set():
                break
        taken.set()
        waiting.put_nowait((pb.AnswerRequest(uuid=call_id, init=offer), answers, updates))
        while True:
            answer = await asyncio.wait_for(answers.get(), 10)
            match answer.WhichOneof("stage"):
                case "init":
                    yield pb.CallResponse(
                        uuid=call_id, init=pb.CallResponseInitStage(sdp=answer.init.sdp)
                    )
                case "update":
                    update = pb.CallResponseUpdateStage(candidate=answer.update.candidate)
                    yield pb.CallResponse(uuid=call_id, update=update)
                case "error":
                    await context.abort(grpc.StatusCode.UNKNOWN, answer.error.status.message)
                case "done":
                    return

    async def call_update(self, request: pb.CallUpdateRequest, _: Any) -> Any:
        self.calls[request.uuid].put_nowait(request)
        return pb.CallUpdateResponse()

    async def start(self, address: str) -> None:
        server = grpc.aio.server()
        methods: dict[str, Any] = {
            "OptionalWebRTCConfig": grpc.unary_unary_rpc_method_handler(
                self.optional_config,
                pb.OptionalWebRTCConfigRequest.FromString,
                pb.OptionalWebRTCConfigResponse.SerializeToString,
            ),
            "Call": grpc.unary_stream_rpc_method_handler(
                self.call, pb.CallRequest.FromString, pb.CallResponse.SerializeToString
            ),
            "CallUpdate": grpc.unary_unary_rpc_method_handler(
                self.call_update,
                pb.CallUpdateRequest.FromString,
                pb.CallUpdateResponse.SerializeToString,
            ),
            "Answer": grpc.stream_stream_rpc_method_handler(
                self.answer, pb.AnswerResponse.FromString, pb.AnswerRequest.SerializeToString
            ),
        }
        login = grpc.unary_unary_rpc_method_handler(
            self.authenticate,
            AuthenticateRequest.FromString,
            AuthenticateResponse.SerializeToString,
        )
        server.add_generic_rpc_handlers(
            (
                grpc.method_handlers_generic_handler(SERVICE, methods),
                grpc.method_handlers_generic_handler(
                    "proto.rpc.v1.AuthService", {"Authenticate": login}
                ),
            )
        )
        self.port = server.add_insecure_port(address)
        await server.start()
        self._server = server

    async def stop(self) -> None:
        await self._server.stop(0)

    async def restart(self) -> None:
        """Lose all streams, and start again at the same address."""
        await self.stop()
        self.waiting.clear()
        await self.start(f"127.0.0.1:{self.port}")


async def main(address: str, ice_servers: str) -> None:
    servers = [
        pb.ICEServer(urls=[url], username=user, credential=credential)
        for url, user, credential in json.loads(ice_servers)
    ]
    async with run_signaling(SignalingServer(ice_servers=servers), f"{address}:9090"):
        print("serving", flush=True)
        await grpcweb_proxy.serve(address, 9091, f"{address}:9090")


@contextlib.asynccontextmanager
async def run_signaling(
    signaling: SignalingServer, address: str = "127.0.0.1:0"
) -> AsyncIterator[SignalingServer]:
    await signaling.start(address)
    try:
        yield signaling
    finally:
        await signaling.stop()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
