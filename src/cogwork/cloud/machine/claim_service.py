"""ClaimService, with which owners create claim codes for machines."""

from __future__ import annotations

from google.protobuf.wrappers_pb2 import StringValue
from grpclib.const import Cardinality

from cogwork.cloud.identity.login import ActorLogin
from cogwork.cloud.machine.claim_codes import create_code
from cogwork.cloud.operations.context import CloudContext
from cogwork.wire.messages.claim_method import CREATE_CLAIM
from cogwork.wire.table.handlers import Method, Stream


class ClaimService:
    def __init__(self, context: CloudContext, login: ActorLogin) -> None:
        self._context = context
        self._login = login

    def methods(self) -> list[Method]:
        unary = Cardinality.UNARY_UNARY
        return [Method(CREATE_CLAIM, unary, self._create, StringValue, StringValue)]

    async def _create(self, stream: Stream) -> None:
        call = self._context.make_call(await self._login.identify(stream))
        part = (await stream.recv_message()).value
        code = await self._context.records.write(lambda tx: create_code(tx, call, part))
        await stream.send_message(StringValue(value=code))
