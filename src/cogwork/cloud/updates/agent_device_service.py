"""AgentDeviceService, which gives agents their versions and settings."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from google.protobuf.duration_pb2 import Duration
from viam.gen.app.agent.v1 import agent_pb2 as pb
from viam.gen.app.agent.v1.agent_grpc import AgentDeviceServiceBase

from cogwork.cloud.fleet.part_access import require_own_part
from cogwork.cloud.fleet.part_software import (
    Software,
    is_saved,
    read_software,
    save_software,
)
from cogwork.cloud.identity.login import ActorLogin
from cogwork.cloud.operations.context import CloudContext
from cogwork.cloud.registry.resolution import read_platform
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.tables import PartRow
from cogwork.cloud.updates.agent_section import read_agent_section
from cogwork.cloud.updates.rollouts import note_outcome, offer
from cogwork.cloud.updates.update_choice import OTHER_AGENT, Update, choose_update
from cogwork.cloud.updates.version_control import read_source
from cogwork.core.versions.product import Product
from cogwork.wire.messages.update_method import AGENT_TAG, Outcome, UpdateReport, write_rollbacks
from cogwork.wire.table.handlers import Method, Stream, methods_from_service

AGENT_DEVICE_SERVICE: Final = "viam.app.agent.v1.AgentDeviceService"

_CHECK_INTERVAL: Final = 60
"""Seconds between two requests of an agent."""
_SETTINGS: Final = (
    *("advanced_settings", "network_configuration"),
    *("additional_networks", "system_configuration"),
)
"""Sections of `agent` that the cloud passes on to the agent."""

_log = logging.getLogger("cloud.updates")


class _AgentDeviceService(AgentDeviceServiceBase):
    def __init__(self, context: CloudContext, login: ActorLogin) -> None:
        self._context = context
        self._login = login

    async def DeviceAgentConfig(self, stream: Stream) -> None:  # type: ignore[override]
        actor = await self._login.identify(stream)
        request: pb.DeviceAgentConfigRequest = await stream.recv_message()
        context, now = self._context, self._context.now()
        is_ours = _is_our_agent(stream, request)

        def answer(tx: Transaction) -> _Answer:
            part = require_own_part(tx, actor, request.id)
            return _Answer(tx, part, request, context.name.url, now, is_ours=is_ours)

        def answer_and_save(tx: Transaction) -> _Answer:
            found = answer(tx)
            found.save(tx)
            return found

        found = await context.records.read(answer)
        if found.is_news:
            # Read the records again before saving, because another call may have changed them.
            found = await context.records.write(answer_and_save)
            found.log_hindrances()
        await stream.send_message(found.reply)


class _Answer:
    """The reply to a part, and the data to save. Most calls have no data to save."""

    def __init__(
        self,
        tx: Transaction,
        part: PartRow,
        request: pb.DeviceAgentConfigRequest,
        url: str,
        now: int,
        *,
        is_ours: bool,
    ) -> None:
        """`is_ours` is True for agents of Cogwork, which accept our releases."""
        section = read_agent_section(tx, part)
        platform = read_platform(tx, part.id).name
        self._part, self._now = part, now
        self._products: dict[Product, tuple[Software, Update]] = {}
        for product in Product:
            software = read_software(request, product, platform, now)
            source = read_source(section, product)
            update = (
                choose_update(tx, source, product, part.id, software, url)
                if is_ours
                else Update(hindrance=OTHER_AGENT)
            )
            self._products[product] = software, update
        self.reply = _make_reply(section)
        # Leave out entries without a URL, because agents of other vendors report them as errors.
        for product, info in (
            (Product.AGENT, self.reply.agent_update_info),
            (Product.SERVER, self.reply.viam_server_update_info),
        ):
            if (offered := self._products[product][1].info) is not None:
                info.CopyFrom(offered)
        rollbacks = [each for each, (_, update) in self._products.items() if update.is_rollback]
        write_rollbacks(self.reply.advanced_settings, rollbacks)
        self._unsaved = {
            product
            for product, (software, update) in self._products.items()
            if not is_saved(tx, part.id, product, software, update.hindrance)
        }
        self.is_news = bool(self._unsaved) or any(
            update.offered_by is not None or update.proved is not None
            for _, update in self._products.values()
        )

    def save(self, tx: Transaction) -> None:
        part_id, now = self._part.id, self._now
        for product, (software, update) in self._products.items():
            if product in self._unsaved:
                save_software(tx, part_id, product, software, update.hindrance, now)
            if update.offered_by is not None:
                offer(tx, update.offered_by, part_id, software.current, now)
            if update.proved is not None:
                report = UpdateReport(product, update.proved.version, Outcome.GOOD)
                note_outcome(tx, update.proved, part_id, report, now)

    def log_hindrances(self) -> None:
        for product in sorted(self._unsaved):
            _, update = self._products[product]
            if update.hindrance:
                _log.warning(
                    'part "%s" (%s) keeps its %s version: %s',
                    *(self._part.name, self._part.id, product, update.hindrance),
                )


def _is_our_agent(stream: Stream, request: pb.DeviceAgentConfigRequest) -> bool:
    if AGENT_TAG in request.host_info.tags:
        return True
    # Agents of version 0.1 send no tag. Their gRPC library identifies them, because only agents of
    # Cogwork are written in Python.
    return str((stream.metadata or {}).get("user-agent", "")).startswith("grpc-python")


def _make_reply(section: Mapping[str, Any]) -> pb.DeviceAgentConfigResponse:
    reply = pb.DeviceAgentConfigResponse(check_interval=Duration(seconds=_CHECK_INTERVAL))
    for name in _SETTINGS:
        value = section.get(name)
        if isinstance(value, Mapping):
            getattr(reply, name).update(value)
    return reply


def agent_device_methods(context: CloudContext, login: ActorLogin) -> list[Method]:
    return methods_from_service(_AgentDeviceService(context, login))
