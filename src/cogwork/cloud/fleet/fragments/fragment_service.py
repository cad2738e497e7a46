"""FragmentService: the impact of an edit on the machines that use a fragment."""

from __future__ import annotations

from typing import Final

from google.protobuf.struct_pb2 import Struct
from grpclib.const import Cardinality
from viam.gen.app.v1 import app_pb2 as pb

from cogwork.cloud.configuration.config_checker import ConfigChecker
from cogwork.cloud.fleet.fragments.fragment_edit import preview_update
from cogwork.cloud.fleet.fragments.fragment_impact import ConfigImpact, Impact
from cogwork.cloud.identity.login import ActorLogin
from cogwork.cloud.operations.context import CloudContext
from cogwork.wire.messages.fragment_method import PREVIEW, FragmentPreview, PlannedChange
from cogwork.wire.table.handlers import Method, Stream

_MAX_LINES: Final = 200
"""Maximum number of lines in one plan."""


class FragmentService:
    def __init__(self, context: CloudContext, login: ActorLogin, checker: ConfigChecker) -> None:
        self._context = context
        self._login = login
        self._checker = checker

    def methods(self) -> list[Method]:
        unary = Cardinality.UNARY_UNARY
        return [Method(PREVIEW, unary, self._preview, pb.UpdateFragmentRequest, Struct)]

    async def _preview(self, stream: Stream) -> None:
        actor = await self._login.identify(stream)
        request = await stream.recv_message()
        impact = await preview_update(self._context, self._checker, actor, request)
        await stream.send_message((await self._describe(impact)).to_struct())

    async def _describe(self, impact: Impact) -> FragmentPreview:
        return FragmentPreview(
            impact.machines,
            impact.other_machines,
            [await self._plan(impact.organization, each) for each in impact.changes],
            impact.unchanged_parts,
            impact.unchecked_parts,
        )

    async def _plan(self, organization: str, change: ConfigImpact) -> PlannedChange:
        planned = await self._checker.plan(organization, change.before, change.after)
        lines = planned.steps.split("\n")
        if len(lines) > _MAX_LINES:
            lines[_MAX_LINES:] = [f"and {len(lines) - _MAX_LINES} more lines"]
        return PlannedChange(
            sorted(each.label for each in change.parts),
            "\n".join(lines),
            [*change.mistakes],
            planned.errors,
        )
