"""The contract of world state stores."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any, ClassVar

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from viam.proto.common import Transform
from viam.proto.service.worldstatestore import TransformChangeType as Change
from viam.services.worldstatestore.client import WorldStateStoreClient

from cogwork.contracts.contract import TIMEOUT, Contract, allow_refusal


class WorldStateStoreContract(Contract):
    api = "rdk:service:world_state_store"
    client = WorldStateStoreClient

    changing: ClassVar[int] = 10
    """Number of changes that the test waits for; 0 for a static world. They must occur within a few
    seconds."""

    async def test_listed_transforms_can_be_fetched(self, resource: Any) -> None:
        uuids = await resource.list_uuids()
        assert len(set(uuids)) == len(uuids)
        for uuid in uuids:
            # Allow NOT_FOUND: the transform may have been removed since the UUIDs were listed.
            with allow_refusal("GetTransform"):
                transform = await resource.get_transform(uuid)
                assert transform.uuid == uuid
                assert _is_complete(transform)

    async def test_unknown_uuid_is_not_found(self, resource: Any) -> None:
        with pytest.raises(GRPCError) as refused:
            await resource.get_transform(b"no such uuid")
        assert refused.value.status is Status.NOT_FOUND
        assert " " in (refused.value.message or "")

    async def test_streams_changes(self, resource: Any) -> None:
        """Check the changes; a removed transform must not be updated."""
        gone: set[bytes] = set()
        stream = _stream_changes(resource)
        async with asyncio.timeout(TIMEOUT), contextlib.aclosing(stream):
            for _ in range(self.changing):
                change = await anext(stream)
                uuid = change.transform.uuid
                match change.change_type:
                    case Change.TRANSFORM_CHANGE_TYPE_ADDED:
                        assert _is_complete(change.transform)
                        gone.discard(uuid)
                    case Change.TRANSFORM_CHANGE_TYPE_UPDATED:
                        assert list(change.updated_fields.paths), (
                            "the change does not name the updated fields"
                        )
                        assert uuid not in gone, "a removed transform was updated"
                    case Change.TRANSFORM_CHANGE_TYPE_REMOVED:
                        assert uuid not in gone, "a transform was removed twice"
                        gone.add(uuid)
                    case other:
                        raise AssertionError(f"unexpected change type {other}")

    async def test_abandoned_streams_do_not_block(self, resource: Any) -> None:
        """Streams that clients abandon must not block other clients."""
        if not self.changing:
            return
        for _ in range(5):
            stream = _stream_changes(resource)
            async with asyncio.timeout(TIMEOUT), contextlib.aclosing(stream):
                await anext(stream)


async def _stream_changes(resource: Any) -> AsyncGenerator[Any, None]:
    """Yield the changes; skip the empty message with which a stream may begin."""
    async with contextlib.aclosing(resource.stream_transform_changes()) as stream:
        async for change in stream:
            if change.ByteSize():
                yield change


def _is_complete(transform: Transform) -> bool:
    return bool(
        transform.uuid
        and transform.reference_frame
        and transform.pose_in_observer_frame.reference_frame
    )
