"""The service with which clients log in. It is registered only while login is required."""

from __future__ import annotations

from viam.gen.proto.rpc.v1.auth_grpc import AuthServiceBase
from viam.gen.proto.rpc.v1.auth_pb2 import AuthenticateRequest, AuthenticateResponse

from cogwork.auth.errors import InvalidLogin
from cogwork.core.errors import Unsupported
from cogwork.net.peer import host_of
from cogwork.robot.middleware.authentication import Authentication
from cogwork.wire.table.handlers import Method, Stream, methods_from_service


class _AuthService(AuthServiceBase):
    def __init__(self, authentication: Authentication) -> None:
        self._authentication = authentication

    async def Authenticate(self, stream: Stream) -> None:  # type: ignore[override]
        request: AuthenticateRequest = await stream.recv_message()
        if self._authentication.authenticator is None:
            raise Unsupported("this machine requires no login; connect without credentials")
        if "authorization" in stream.metadata:
            raise InvalidLogin("already authenticated; cannot re-authenticate")
        self._authentication.check_confidential(stream.client.is_confidential)
        credentials = request.credentials
        token = await self._authentication.log_in(
            request.entity, credentials.type, credentials.payload, host_of(stream.peer)
        )
        await stream.send_message(AuthenticateResponse(access_token=token))


def auth_methods(authentication: Authentication) -> list[Method]:
    return methods_from_service(_AuthService(authentication))
