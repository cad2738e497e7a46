"""What a world state store keeps to."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, ClassVar

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from viam.proto.common import Transform
from viam.proto.service.worldstatestore import TransformChangeType as Change
from viam.services.worldstatestore.client import WorldStateStoreClient

from cogwork.contracts.contract import PATIENCE, Contract, explained


class WorldStateStoreContract(Contract):
    api = "rdk:service:world_state_store"
    client = WorldStateStoreClient

    changing: ClassVar[int] = 10
    """How many changes come within some seconds; 0 for a world at rest."""

    async def test_what_it_lists_can_be_had(self, it: Any) -> None:
        uuids = await it.list_uuids()
        assert len(set(uuids)) == len(uuids)
        for uuid in uuids:
            # What vanishes meanwhile is not found.
            with explained("GetTransform"):
                transform = await it.get_transform(uuid)
                assert transform.uuid == uuid
                assert _is_whole(transform)

    async def test_what_it_has_not_is_not_found(self, it: Any) -> None:
        with pytest.raises(GRPCError) as refused:
            await it.get_transform(b"no such uuid")
        assert refused.value.status is Status.NOT_FOUND
        assert " " in (refused.value.message or "")

    async def test_it_tells_what_changes(self, it: Any) -> None:
        """Nothing else than that: what is removed is not updated."""
        gone: set[bytes] = set()
        stream = it.stream_transform_changes()
        async with asyncio.timeout(PATIENCE), contextlib.aclosing(stream):
            for _ in range(self.changing):
                change = await anext(stream)
                uuid = change.transform.uuid
                match change.change_type:
                    case Change.TRANSFORM_CHANGE_TYPE_ADDED:
                        assert _is_whole(change.transform)
                        gone.discard(uuid)
                    case Change.TRANSFORM_CHANGE_TYPE_UPDATED:
                        assert list(change.updated_fields.paths), "it does not say what changed"
                        assert uuid not in gone, "it was removed, and is updated"
                    case Change.TRANSFORM_CHANGE_TYPE_REMOVED:
                        assert uuid not in gone, "it was removed twice"
                        gone.add(uuid)
                    case other:
                        raise AssertionError(f"a change of type {other}")

    async def test_a_stream_that_nobody_reads_costs_nothing(self, it: Any) -> None:
        """Whoever opens one and leaves does not keep anybody else from it."""
        if not self.changing:
            return
        for _ in range(5):
            stream = it.stream_transform_changes()
            async with asyncio.timeout(PATIENCE), contextlib.aclosing(stream):
                await anext(stream)


def _is_whole(transform: Transform) -> bool:
    return bool(
        transform.uuid
        and transform.reference_frame
        and transform.pose_in_observer_frame.reference_frame
    )
