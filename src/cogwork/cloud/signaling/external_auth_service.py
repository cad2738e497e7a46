"""The service that gives users of the cloud tokens for machines."""

from __future__ import annotations

from typing import Final

from viam.gen.proto.rpc.v1.auth_grpc import ExternalAuthServiceBase
from viam.gen.proto.rpc.v1.auth_pb2 import AuthenticateToRequest, AuthenticateToResponse

from cogwork.auth.granted_access import describe_principal
from cogwork.cloud.identity.access import ROLE_NAMES
from cogwork.cloud.identity.login import ActorLogin
from cogwork.cloud.operations.context import CloudContext
from cogwork.cloud.signaling.machine_hosts import find_host_role
from cogwork.core.errors import NotFound
from cogwork.wire.table.handlers import Method, Stream, methods_from_service

EXTERNAL_AUTH_SERVICE: Final = "proto.rpc.v1.ExternalAuthService"


class _ExternalAuthService(ExternalAuthServiceBase):
    def __init__(self, context: CloudContext, login: ActorLogin) -> None:
        self._context = context
        self._login = login

    async def AuthenticateTo(self, stream: Stream) -> None:  # type: ignore[override]
        actor = await self._login.identify(stream)
        request: AuthenticateToRequest = await stream.recv_message()
        context, host = self._context, request.entity.lower()
        found = await context.records.read(
            lambda tx: find_host_role(tx, context.name, actor, host, context.now())
        )
        if found is None:
            raise NotFound(f'there is no machine "{host[:256]}", or it is not shared with you')
        part, role = found
        # Cogwork checks the ID, which is unique. Machines of other vendors check the name.
        audience = [part.id, context.name.full_name(part)]
        metadata = {"role": ROLE_NAMES[role]}
        if (principal := actor.principal) is not None:
            metadata |= describe_principal(principal)
        token = context.machine_tokens.issue(audience, actor.id, metadata, context.clock.time())
        await stream.send_message(AuthenticateToResponse(access_token=token))


def external_auth_methods(context: CloudContext, login: ActorLogin) -> list[Method]:
    return methods_from_service(_ExternalAuthService(context, login))
