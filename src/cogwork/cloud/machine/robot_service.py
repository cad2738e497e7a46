"""RobotService, which machines call."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from email.utils import formatdate
from typing import Final, TypeVar

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID
from google.protobuf.duration_pb2 import Duration
from viam.gen.app.v1 import robot_pb2 as pb
from viam.gen.app.v1.robot_grpc import RobotServiceBase

from cogwork.auth.certificate_authority import issue_certificate
from cogwork.cloud.fleet.agent_info import (
    format_agent_info,
    read_agent_info,
    save_agent_info,
)
from cogwork.cloud.fleet.host_labels import CERTIFICATE_DAYS, list_aliases
from cogwork.cloud.fleet.part_access import require_own_part
from cogwork.cloud.fleet.parts import LocatedPart
from cogwork.cloud.identity.login import ActorLogin
from cogwork.cloud.identity.part_watch import instance_of
from cogwork.cloud.identity.public_name import LabeledPart, local_name
from cogwork.cloud.machine.log_intake import LogIntake, LogQuotaSpent
from cogwork.cloud.machine.part_documents import PartDocuments
from cogwork.cloud.operations.context import CloudContext
from cogwork.cloud.registry.resolution import Platform, read_platform, save_platform
from cogwork.cloud.storage.bus import describe_change, part_topic
from cogwork.cloud.storage.records import Transaction
from cogwork.wire.messages.follow_method import ACCESS_METADATA
from cogwork.wire.table.handlers import Method, Stream, methods_from_service
from cogwork.wire.table.retry_info import encode_retry_info

ROBOT_SERVICE: Final = "viam.app.v1.RobotService"

_RESTART_CHECK_INTERVAL: Final = 30
"""Interval in seconds at which a machine asks whether it must restart."""

T = TypeVar("T")


class _RobotService(RobotServiceBase):
    def __init__(
        self, context: CloudContext, login: ActorLogin, documents: PartDocuments, intake: LogIntake
    ) -> None:
        self._context = context
        self._login = login
        self._documents = documents
        self._intake = intake

    async def Config(self, stream: Stream) -> None:  # type: ignore[override]
        name, value = ACCESS_METADATA
        has_list = stream.metadata.get(name) == value

        def read_config(tx: Transaction, part: LocatedPart) -> pb.RobotConfig:
            return self._documents.read_config(tx, part, has_access_list=has_list)

        known, part, config = await self._read(
            stream,
            lambda tx, part: (
                (read_platform(tx, part.id), read_agent_info(tx, part.id)),
                part,
                read_config(tx, part),
            ),
        )
        agent = stream.request.agent_info
        platform, info = Platform.of(agent), format_agent_info(agent)
        if info and (platform if platform.name else known[0], info) != known:

            def save(tx: Transaction) -> None:
                save_agent_info(tx, part.id, info)
                if platform.name:
                    save_platform(tx, part.id, platform)

            await self._context.records.write(save)
            # Read the configuration separately: building it in the write would block all other
            # writers.
            config = await self._context.records.read(lambda tx: read_config(tx, part))
        # Machines without a hardware clock set their clock to this date.
        date = formatdate(self._context.clock.time(), usegmt=True)
        await stream.send_initial_metadata(metadata={"date": date})
        await stream.send_message(pb.ConfigResponse(config=config))

    async def Certificate(self, stream: Stream) -> None:  # type: ignore[override]
        part, aliases = await self._read(
            stream, lambda tx, part: (part, list_aliases(tx, self._context.now(), part.id))
        )
        cloud = self._context.name
        names = [cloud.permanent_name(part.id)]
        labeled: list[LabeledPart] = [part, *aliases]
        for each in labeled:
            names += cloud.full_name(each), local_name(each)
        now = datetime.datetime.fromtimestamp(self._context.clock.time(), datetime.UTC)
        authority = self._context.authority
        pem = issue_certificate(
            authority,
            [x509.DNSName(each) for each in names],
            now,
            ExtendedKeyUsageOID.SERVER_AUTH,
            CERTIFICATE_DAYS,
        )
        await stream.send_message(
            pb.CertificateResponse(
                id=part.id,
                tls_certificate=(pem.certificate + authority.pem.certificate).decode(),
                tls_private_key=pem.key.decode(),
            )
        )

    async def Log(self, stream: Stream) -> None:  # type: ignore[override]
        part = await self._read(stream, lambda _, part: part)

        async def check_again() -> None:
            actor = await self._login.identify(stream)
            await self._context.records.read(lambda tx: require_own_part(tx, actor, part.id))

        try:
            await self._intake.store(part, stream.request, check_again)
        except LogQuotaSpent as error:
            retry = encode_retry_info(error, error.retry_after)
            await stream.send_trailing_metadata(metadata=retry)
            raise
        await stream.send_message(pb.LogResponse())

    async def NeedsRestart(self, stream: Stream) -> None:  # type: ignore[override]
        part = await self._read(stream, lambda _, part: part)
        is_requested = part.restart_requested_at is not None
        if is_requested:
            # Clear the request: the machine restarts now, and asks again after that.
            await self._context.records.write(
                lambda tx: tx.execute(
                    "UPDATE part SET restart_requested_at = NULL WHERE id = ?", part.id
                )
            )
        await stream.send_message(
            pb.NeedsRestartResponse(
                id=part.id,
                must_restart=is_requested,
                restart_check_interval=Duration(seconds=_RESTART_CHECK_INTERVAL),
            )
        )

    async def _read(self, stream: Stream, work: Callable[[Transaction, LocatedPart], T]) -> T:
        """Run the work on the part that a request names, if the sender may act as the part."""
        actor = await self._login.identify(stream)
        request = await stream.recv_message()

        def read(tx: Transaction) -> tuple[LocatedPart, T]:
            part = require_own_part(tx, actor, request.id)
            return part, work(tx, part)

        part, found = await self._context.records.read(read)
        self._context.presence.note(part)
        if self._context.watch.note_call(part.id, instance_of(stream)):
            # Notify both computers of the conflict.
            self._context.bus.publish(part_topic(part.id), describe_change([]))
        return found


def robot_methods(
    context: CloudContext, login: ActorLogin, documents: PartDocuments, intake: LogIntake
) -> list[Method]:
    return methods_from_service(_RobotService(context, login, documents, intake))
