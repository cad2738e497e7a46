"""SignalingService, through which clients reach machines behind routers."""

from __future__ import annotations

import asyncio
from typing import Final

from viam.gen.proto.rpc.webrtc.v1 import signaling_pb2 as pb
from viam.gen.proto.rpc.webrtc.v1.signaling_grpc import SignalingServiceBase

from cogwork.auth.granted_access import describe_principal
from cogwork.cloud.fleet.part_access import require_own_part
from cogwork.cloud.fleet.parts import LocatedPart
from cogwork.cloud.identity.access import ROLE_NAMES, CloudRole
from cogwork.cloud.identity.actor import Actor, ActorType
from cogwork.cloud.identity.login import ActorLogin
from cogwork.cloud.operations.context import CloudContext
from cogwork.cloud.signaling.machine_hosts import find_host, find_host_role
from cogwork.cloud.signaling.relay_servers import RelayServers
from cogwork.cloud.signaling.rendezvous import (
    CALL_TIMEOUT,
    HostOffline,
    Rendezvous,
    SignalingCall,
    TooManyCallers,
)
from cogwork.cloud.storage.records import Transaction
from cogwork.core.errors import Interrupted, InvalidRequest, NotFound
from cogwork.core.limits.fair_places import Holder
from cogwork.wire.table.handlers import Metadata, Method, Stream, methods_from_service

SIGNALING_SERVICE: Final = "proto.rpc.webrtc.v1.SignalingService"

_HEARTBEAT: Final = 15.0
_MAX_HOSTS: Final = 5


class _SignalingService(SignalingServiceBase):
    def __init__(
        self, context: CloudContext, login: ActorLogin, rendezvous: Rendezvous, relays: RelayServers
    ) -> None:
        self._context = context
        self._login = login
        self._rendezvous = rendezvous
        self._relays = relays

    async def OptionalWebRTCConfig(self, stream: Stream) -> None:  # type: ignore[override]
        actor = await self._login.identify(stream)
        await stream.recv_message()
        hosts = _read_hosts(stream.metadata, _MAX_HOSTS)
        # Only machines and their users get relay servers, because these cost money.
        if actor.type is ActorType.PART:
            await self._context.records.read(lambda tx: self._find_own(tx, actor, hosts))
        else:
            await self._find_host(actor, hosts[0])
        config = pb.WebRTCConfig(additional_ice_servers=self._list_relays())
        await stream.send_message(pb.OptionalWebRTCConfigResponse(config=config))

    async def Call(self, stream: Stream) -> None:  # type: ignore[override]
        actor = await self._login.identify(stream)
        request: pb.CallRequest = await stream.recv_message()
        (host,) = _read_hosts(stream.metadata, 1)
        part, role = await self._find_host(actor, host)
        if not self._rendezvous.is_online(part.id):
            raise HostOffline(host)
        offer = pb.AnswerRequestInitStage(sdp=request.sdp, caller_auth_entity=actor.id)
        offer.optional_config.disable_trickle = request.disable_trickle
        offer.optional_config.additional_ice_servers.extend(self._list_relays())
        offer.caller_auth_metadata["role"] = ROLE_NAMES[role]
        if (principal := actor.principal) is not None:
            offer.caller_auth_metadata.update(describe_principal(principal))
        offer.deadline.FromMicroseconds(self._context.now() + int(CALL_TIMEOUT * 1e6))
        with self._rendezvous.call(part.id, offer, Holder(str(actor), role)) as call:
            try:
                async with asyncio.timeout(CALL_TIMEOUT):
                    await _relay_answers(stream, call)
            except TimeoutError:
                raise Interrupted(f"{host} did not answer within {CALL_TIMEOUT:g} s") from None

    async def CallUpdate(self, stream: Stream) -> None:  # type: ignore[override]
        actor = await self._login.identify(stream)
        request: pb.CallUpdateRequest = await stream.recv_message()
        call = self._rendezvous.find(request.uuid)
        if call.offer.caller_auth_entity != actor.id:
            raise NotFound(f'there is no call "{request.uuid[:64]}"; it may have ended')
        call.add_update(request)
        await stream.send_message(pb.CallUpdateResponse())

    async def Answer(self, stream: Stream) -> None:  # type: ignore[override]
        actor = await self._login.identify(stream)
        hosts = _read_hosts(stream.metadata, _MAX_HOSTS)
        part = await self._context.records.read(lambda tx: self._find_own(tx, actor, hosts))
        with (
            self._context.presence.connected(part),
            self._rendezvous.wait_at(part.id) as waiting,
        ):
            call = await _wait_for_call(stream, waiting)
            await stream.send_message(pb.AnswerRequest(uuid=call.id, init=call.offer))
            updates = asyncio.create_task(_relay_updates(stream, call))
            try:
                async with asyncio.timeout(2 * CALL_TIMEOUT):
                    async for answer in stream:
                        call.add_answer(answer)
            except TimeoutError:
                raise Interrupted("the call is over; wait for the next one") from None
            finally:
                updates.cancel()
                await asyncio.gather(updates, return_exceptions=True)

    async def ReportConnectionMetadata(self, stream: Stream) -> None:  # type: ignore[override]
        await self._login.identify(stream)
        await stream.recv_message()
        await stream.send_message(pb.ReportConnectionMetadataResponse())

    def _list_relays(self) -> list[pb.ICEServer]:
        return self._relays.list_with_credentials(self._context.clock.time())

    async def _find_host(self, actor: Actor, host: str) -> tuple[LocatedPart, CloudRole]:
        """Return the part with this name, and the actor's role on it. Raise HostOffline."""
        found = await self._context.records.read(
            lambda tx: find_host_role(tx, self._context.name, actor, host, self._context.now())
        )
        if found is None:
            raise HostOffline(host)
        return found

    def _find_own(self, tx: Transaction, actor: Actor, hosts: list[str]) -> LocatedPart:
        """Return the part with these names, if the actor may act as it. Raise NotFound or
        RoleTooLow."""
        name, now = self._context.name, self._context.now()
        parts = {
            part.id: part
            for part in (find_host(tx, name, host, now) for host in hosts)
            if part is not None and _is_own_part(tx, actor, part.id)
        }
        if len(parts) != 1:
            raise NotFound(f"this machine does not have the name {' or '.join(hosts)}")
        return parts.popitem()[1]


def _is_own_part(tx: Transaction, actor: Actor, part: str) -> bool:
    """Return whether the actor may act as the part. Raise RoleTooLow if it may only see it."""
    try:
        require_own_part(tx, actor, part)
    except NotFound:  # do not reveal the ID of the part to an actor that knows only its name
        return False
    return True


def signaling_methods(
    context: CloudContext, login: ActorLogin, rendezvous: Rendezvous, relays: RelayServers
) -> list[Method]:
    return methods_from_service(_SignalingService(context, login, rendezvous, relays))


async def _wait_for_call(stream: Stream, waiting: asyncio.Future[SignalingCall]) -> SignalingCall:
    """Wait for a call, and send heartbeats so that both sides detect a lost connection."""
    allows_heartbeats = stream.metadata.get("heartbeats-allowed") == "true"
    while True:
        if allows_heartbeats:
            heartbeat = pb.AnswerRequestHeartbeatStage()
            await stream.send_message(pb.AnswerRequest(heartbeat=heartbeat))
        await asyncio.wait({waiting}, timeout=_HEARTBEAT)
        if waiting.done():
            return waiting.result()


async def _relay_answers(stream: Stream, call: SignalingCall) -> None:
    """Send the messages of the machine to the client until the machine ends its side."""
    while True:
        answer = await call.answers.get()
        if isinstance(answer, TooManyCallers):
            raise answer
        match answer.WhichOneof("stage"):
            case "init":
                init = pb.CallResponseInitStage(sdp=answer.init.sdp)
                await stream.send_message(pb.CallResponse(uuid=call.id, init=init))
            case "update":
                update = pb.CallResponseUpdateStage(candidate=answer.update.candidate)
                await stream.send_message(pb.CallResponse(uuid=call.id, update=update))
            case "error":
                raise Interrupted(f"the machine refused: {answer.error.status.message[:500]}")
            case _:
                return


async def _relay_updates(stream: Stream, call: SignalingCall) -> None:
    """Send the messages of the client to the machine."""
    while True:
        update = await call.updates.get()
        message = pb.AnswerRequest(uuid=call.id)
        match update.WhichOneof("update"):
            case "candidate":
                message.update.candidate.CopyFrom(update.candidate)
            case "error":
                message.error.status.CopyFrom(update.error)
            case _:
                message.done.SetInParent()
        await stream.send_message(message)


def _read_hosts(metadata: Metadata, most: int) -> list[str]:
    """Return the hosts in the metadata of a call, without the ports."""
    hosts = [
        value.partition(":")[0].lower()
        for key, value in metadata.items()
        if key == "rpc-host" and isinstance(value, str) and value
    ]
    if not 0 < len(hosts) <= most:
        raise InvalidRequest(f"expected 1 to {most} rpc-host in the metadata, not {len(hosts)}")
    return hosts
