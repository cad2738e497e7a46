"""Pages of logs: their bounds, and their tokens, which only the cloud that made them accepts."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from tests.support.cloud.cloud_at_rest import add_machine, new_cloud, open_plane
from viam.gen.app.v1 import app_pb2 as pb
from viam.gen.common.v1.common_pb2 import LogEntry

from cogwork.cloud.control_plane.control_plane import ControlPlane
from cogwork.cloud.fleet.log_searches import LogSearches
from cogwork.cloud.fleet.part_logs import get_robot_part_logs
from cogwork.cloud.identity.actor import Actor, ActorType
from cogwork.cloud.storage.log_store import LogLine
from cogwork.core.errors import InvalidRequest


async def read_logs(
    plane: ControlPlane, actor: Actor, request: pb.GetRobotPartLogsRequest
) -> pb.GetRobotPartLogsResponse:
    searches = LogSearches(plane.context.logs, plane.context.clock)
    return await get_robot_part_logs(plane.context, searches, actor, request)


async def test_page_tokens_cannot_be_made_up(tmp_path: Path) -> None:
    directory, new = new_cloud(tmp_path / "cloud")
    async with open_plane(directory) as plane:
        context, actor = plane.context, Actor(ActorType.API_KEY, new.key_id)
        part, _ = await add_machine(plane, new.key_id)
        entries = [LogEntry(message=text, level="info") for text in ("first", "second")]
        now = context.now()
        lines = [
            LogLine(part, now, "info", "", each.message, each.SerializeToString())
            for each in entries
        ]
        await context.logs.append(lines, now)
        request = pb.GetRobotPartLogsRequest(id=part, limit=1)
        page = await read_logs(plane, actor, request)
        assert [each.message for each in page.logs] == ["second"]
        request.page_token = page.next_page_token
        page = await read_logs(plane, actor, request)
        assert [each.message for each in page.logs] == ["first"]
        request.order = pb.LogOrder.LOG_ORDER_ASCENDING
        with pytest.raises(InvalidRequest, match="page token does not belong"):
            await read_logs(plane, actor, request)
    request.order = pb.LogOrder.LOG_ORDER_DESCENDING
    directory, new = new_cloud(tmp_path / "other")
    async with open_plane(directory) as plane:
        actor = Actor(ActorType.API_KEY, new.key_id)
        with pytest.raises(InvalidRequest, match="page token does not belong"):
            await read_logs(plane, actor, request)


async def test_bounds_are_times(tmp_path: Path) -> None:
    directory, new = new_cloud(tmp_path / "cloud")
    async with open_plane(directory) as plane:
        part, _ = await add_machine(plane, new.key_id)
        actor = Actor(ActorType.API_KEY, new.key_id)
        request = pb.GetRobotPartLogsRequest(id=part, end=Timestamp(nanos=-1))
        with pytest.raises(InvalidRequest, match="end is not a time"):
            await read_logs(plane, actor, request)
