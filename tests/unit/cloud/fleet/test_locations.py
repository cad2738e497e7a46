"""Locations form a tree of bounded depth."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.cloud.cloud_at_rest import new_cloud, open_plane
from viam.gen.app.v1 import app_pb2 as pb

from cogwork.cloud.fleet.locations import create_location, update_location
from cogwork.cloud.identity.actor import Actor, ActorType
from cogwork.cloud.operations.operation import Call
from cogwork.cloud.storage.records import Transaction
from cogwork.cloud.storage.select import query_values
from cogwork.core.errors import InvalidRequest

DEEPEST = 10


async def test_depth_is_bounded(tmp_path: Path) -> None:
    directory, new = new_cloud(tmp_path / "cloud")
    async with open_plane(directory) as plane:

        async def write(work: Callable[[Transaction, Call], Any]) -> Any:
            actor = Actor(ActorType.API_KEY, new.key_id)
            context = plane.context
            return await context.records.write(lambda tx: work(tx, context.make_call(actor)))

        async def create(parent: str) -> str:
            def work(tx: Transaction, call: Call) -> str:
                (organization,) = query_values(tx, str, "SELECT id FROM organization")
                request = pb.CreateLocationRequest(
                    organization_id=organization, name="Hall", parent_location_id=parent
                )
                return create_location(tx, call, request).location.id

            made: str = await write(work)
            return made

        async def create_nested(levels: int) -> list[str]:
            nested = [await create("")]
            while len(nested) < levels:
                nested.append(await create(nested[-1]))
            return nested

        async def move(location: str, parent: str) -> None:
            request = pb.UpdateLocationRequest(location_id=location, parent_location_id=parent)
            await write(lambda tx, call: update_location(tx, call, request))

        deep = await create_nested(DEEPEST)
        with pytest.raises(InvalidRequest, match="10 levels deep; choose a parent that is higher"):
            await create(deep[-1])
        # What is moved brings everything inside with it.
        low = await create_nested(3)
        with pytest.raises(InvalidRequest, match="10 levels deep"):
            await move(low[0], deep[DEEPEST - 3])
        await move(low[0], deep[DEEPEST - 4])
        await move(low[0], "")
        with pytest.raises(InvalidRequest, match="cannot be inside itself"):
            await move(deep[0], deep[-1])
