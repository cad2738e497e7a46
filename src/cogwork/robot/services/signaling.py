"""Signaling: exchanges offers and answers with clients that connect over WebRTC."""

from __future__ import annotations

from viam.gen.proto.rpc.webrtc.v1.signaling_grpc import (
    SignalingServiceBase,
    UnimplementedSignalingServiceBase,
)
from viam.gen.proto.rpc.webrtc.v1.signaling_pb2 import (
    CallRequest,
    CallResponse,
    CallResponseInitStage,
    CallUpdateRequest,
    CallUpdateResponse,
    ICECandidate,
    ICEServer,
    OptionalWebRTCConfigResponse,
    ReportConnectionMetadataResponse,
    WebRTCConfig,
)

from cogwork.auth.roles import Role
from cogwork.core.errors import InvalidRequest
from cogwork.core.limits.fair_places import Holder
from cogwork.robot.middleware.authentication import Authentication
from cogwork.robot.middleware.operations import current_operation
from cogwork.wire.table.handlers import Metadata, Method, Stream, methods_from_service
from cogwork.wire.transports.webrtc_peers import WebRtcPeers

_HOST_KEY = "rpc-host"
_MAX_HOSTS = 5
_LOGIN_KEY = "authorization"


class _SignalingService(UnimplementedSignalingServiceBase):
    """The signaling service of this machine. It serves no other machine, so it accepts every host
    name."""

    def __init__(self, peers: WebRtcPeers, authentication: Authentication) -> None:
        self._peers = peers
        self._authentication = authentication

    async def OptionalWebRTCConfig(self, stream: Stream) -> None:  # type: ignore[override]
        await stream.recv_message()
        _check_hosts(stream.metadata, _MAX_HOSTS)
        servers = [
            ICEServer(urls=each.urls, username=each.username, credential=each.credential)
            for each in self._peers.list_ice_servers()
        ]
        config = WebRTCConfig(additional_ice_servers=servers)
        await stream.send_message(OptionalWebRTCConfigResponse(config=config))

    async def Call(self, stream: Stream) -> None:  # type: ignore[override]
        request: CallRequest = await stream.recv_message()
        _check_hosts(stream.metadata, 1)
        login = {k: v for k, v in stream.metadata.items() if k == _LOGIN_KEY}
        operation = current_operation()
        identity = operation.identity if operation is not None else None
        caller = (
            Holder(identity.entity, identity.role)
            if identity is not None
            else Holder(stream.client.host_and_port[0], Role.OWNER)
        )
        peer_id, answer = await self._peers.answer(request.sdp, stream.client, caller, login)
        release = self._authentication.hold_connection(identity, lambda: self._peers.close(peer_id))
        self._peers.on_end(peer_id, release)
        # The answer contains all candidates. End the stream here, because clients wait for its end.
        init = CallResponseInitStage(sdp=answer)
        await stream.send_message(CallResponse(uuid=peer_id, init=init))

    async def CallUpdate(self, stream: Stream) -> None:  # type: ignore[override]
        request: CallUpdateRequest = await stream.recv_message()
        _check_hosts(stream.metadata, 1)
        match request.WhichOneof("update"):
            case "candidate":
                self._peers.add_candidate(request.uuid, request.candidate)
            case "done":
                self._peers.add_candidate(request.uuid, ICECandidate())
            case "error":
                self._peers.close(request.uuid)
        await stream.send_message(CallUpdateResponse())

    async def ReportConnectionMetadata(self, stream: Stream) -> None:  # type: ignore[override]
        await stream.recv_message()
        await stream.send_message(ReportConnectionMetadataResponse())


def _check_hosts(metadata: Metadata, most: int) -> None:
    hosts = [value for key, value in metadata.items() if key == _HOST_KEY and value]
    if not hosts:
        raise InvalidRequest(f"expected {_HOST_KEY} to be set in metadata")
    if len(hosts) > most:
        raise InvalidRequest(f"expected at most {most} {_HOST_KEY} in metadata")


def signaling_methods(peers: WebRtcPeers | None, authentication: Authentication) -> list[Method]:
    """Return the signaling methods. `peers` is None if WebRTC is off; clients then connect
    directly."""
    service: SignalingServiceBase = (
        _SignalingService(peers, authentication)
        if peers is not None
        else UnimplementedSignalingServiceBase()
    )
    return methods_from_service(service)
