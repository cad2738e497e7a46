"""The service with which clients log in. It exists only while login is required."""

from __future__ import annotations

from viam.gen.proto.rpc.v1.auth_grpc import AuthServiceBase
from viam.gen.proto.rpc.v1.auth_pb2 import AuthenticateRequest, AuthenticateResponse

from cogwork.auth.authenticator import Authenticator
from cogwork.auth.errors import InvalidLogin, TooManyAttempts, Unauthenticated
from cogwork.core.errors import Unsupported
from cogwork.front.peer_name import host_of
from cogwork.robot.authentication import Authentication
from cogwork.wire.handlers import Method, Stream, methods_from_service


class _AuthService(AuthServiceBase):
    def __init__(self, authentication: Authentication) -> None:
        self._authentication = authentication

    async def Authenticate(self, stream: Stream) -> None:  # type: ignore[override]
        request: AuthenticateRequest = await stream.recv_message()
        authenticator = self._authentication.authenticator
        if authenticator is None:
            raise Unsupported("this machine requires no login; connect without credentials")
        if "authorization" in stream.metadata:
            raise InvalidLogin("already authenticated; cannot re-authenticate")
        self._authentication.check_confidential(stream.client.is_confidential)
        address = host_of(stream.peer)
        async with authenticator.refusals.apply():
            try:
                token = _log_in(authenticator, request, address)
            except (Unauthenticated, TooManyAttempts, InvalidLogin):
                # The key may be newer than the access list of this machine.
                if not await self._authentication.refresh_access():
                    raise
                newest = self._authentication.authenticator or authenticator
                token = _log_in(newest, request, address)
        await stream.send_message(AuthenticateResponse(access_token=token))


def _log_in(authenticator: Authenticator, request: AuthenticateRequest, address: str) -> str:
    credentials = request.credentials
    return authenticator.log_in(request.entity, credentials.type, credentials.payload, address)


def auth_methods(authentication: Authentication) -> list[Method]:
    return methods_from_service(_AuthService(authentication))
