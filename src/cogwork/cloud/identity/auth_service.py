"""The gRPC service for logins to the cloud."""

from __future__ import annotations

from viam.gen.proto.rpc.v1.auth_grpc import AuthServiceBase
from viam.gen.proto.rpc.v1.auth_pb2 import AuthenticateRequest, AuthenticateResponse

from cogwork.auth.errors import InvalidLogin
from cogwork.cloud.identity.login import ActorLogin
from cogwork.net.peer import host_of
from cogwork.wire.table.handlers import Method, Stream, methods_from_service


class _AuthService(AuthServiceBase):
    def __init__(self, login: ActorLogin) -> None:
        self._login = login

    async def Authenticate(self, stream: Stream) -> None:  # type: ignore[override]
        request: AuthenticateRequest = await stream.recv_message()
        if "authorization" in stream.metadata:
            raise InvalidLogin("already authenticated; cannot re-authenticate")
        credentials = request.credentials
        token = await self._login.log_in(
            request.entity, credentials.type, credentials.payload, host_of(stream.peer)
        )
        await stream.send_message(AuthenticateResponse(access_token=token))


def auth_methods(login: ActorLogin) -> list[Method]:
    return methods_from_service(_AuthService(login))
