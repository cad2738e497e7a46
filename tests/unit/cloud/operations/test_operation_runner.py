"""What follows from an operation."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.support.cloud.cloud_at_rest import new_cloud, open_plane
from tests.support.machine.running import DEADLINE

from cogwork.cloud.identity.actor import Actor, ActorType
from cogwork.cloud.operations.operation import Call, writing
from cogwork.cloud.operations.operation_runner import run_operation
from cogwork.cloud.storage.bus import part_topic
from cogwork.cloud.storage.records import Transaction


async def test_removed_access_ends_even_if_the_client_that_removed_it_is_gone(
    tmp_path: Path,
) -> None:
    directory, new = new_cloud(tmp_path / "cloud")
    begun, may_end = threading.Event(), threading.Event()

    def remove(_: Transaction, call: Call, __: Any) -> Any:
        call.ended_credentials.append("key")
        call.changed_parts.append("part")
        begun.set()
        may_end.wait(DEADLINE)

    async with open_plane(directory) as plane:
        context = plane.context
        context.actors.add(context.actors.begin("token"), Actor(ActorType.API_KEY, "key"))
        owner, request = Actor(ActorType.API_KEY, new.key_id), Any
        async with context.bus.listen(part_topic("part")) as notices:
            running = asyncio.create_task(
                run_operation(context, writing(remove), owner, request)  # type: ignore[arg-type]
            )
            await asyncio.to_thread(begun.wait, DEADLINE)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            may_end.set()
            notice = await asyncio.wait_for(anext(notices), DEADLINE)
        assert b"key" in notice
        assert context.actors.find("token") is None
