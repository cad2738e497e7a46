from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from grpclib.const import Status
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.support.machine.served import Serve, refused
from tests.support.waiting import poll
from viam.proto.common import Transform
from viam.proto.service.worldstatestore import StreamTransformChangesResponse
from viam.proto.service.worldstatestore import TransformChangeType as Change
from viam.services.worldstatestore.client import WorldStateStoreClient

from cogwork.core.clock import ManualClock
from cogwork.drivers.world_state_store.attributes import FakeWorldStateStoreAttributes
from cogwork.drivers.world_state_store.fake import FakeWorldStateStore
from cogwork.drivers.world_state_store.world import SimulatedWorld, Transforms, diff_transforms
from cogwork.graph.name import ResourceName

NAME = ResourceName.parse("rdk:service:world_state_store/w")
ATTRIBUTES = FakeWorldStateStoreAttributes(reference_frame="table")


@pytest.fixture
async def store(clock: ManualClock) -> FakeWorldStateStore:
    return await FakeWorldStateStore.new(NAME, ATTRIBUTES, {}, clock)


@pytest.fixture
async def client(store: FakeWorldStateStore, serve: Serve) -> AsyncIterator[WorldStateStoreClient]:
    async with serve(store) as channel:
        yield WorldStateStoreClient("w", channel)


async def test_transforms_have_a_pose_a_geometry_and_a_color(client: WorldStateStoreClient) -> None:
    uuids = await client.list_uuids()
    assert len(uuids) == 5
    shapes = set()
    assert [(await client.get_transform(uuid)).reference_frame for uuid in uuids] == [
        "pill-1",
        "box-2",
        "ball-3",
        "pill-4",
        "box-5",
    ]
    for uuid in uuids:
        thing = await client.get_transform(uuid)
        assert thing.uuid == uuid
        assert thing.reference_frame == thing.physical_object.label
        assert thing.pose_in_observer_frame.reference_frame == "table"
        assert set(thing.metadata.fields) == {"color", "opacity"}
        shapes.add(thing.physical_object.WhichOneof("geometry_type"))
    assert shapes == {"box", "sphere", "capsule"}


async def test_oldest_transform_is_replaced_after_the_interval(
    client: WorldStateStoreClient, clock: ManualClock
) -> None:
    before = await client.list_uuids()
    await clock.advance(1.9)
    assert await client.list_uuids() == before
    await clock.advance(0.1)
    after = await client.list_uuids()
    assert after[:-1] == before[1:]
    assert after[-1] not in before
    with refused() as told:
        await client.get_transform(before[0])
    assert told.status is Status.NOT_FOUND
    assert told.words == (
        f'world_state_store "w" has no transform {before[0].hex()}: it has disappeared or never '
        "existed; list the UUIDs again"
    )


async def test_transforms_move(client: WorldStateStoreClient, clock: ManualClock) -> None:
    uuid = (await client.list_uuids())[-1]
    before = await client.get_transform(uuid)
    await clock.advance(0.09)
    assert await client.get_transform(uuid) == before
    await clock.advance(0.01)
    after = await client.get_transform(uuid)
    assert after.pose_in_observer_frame.pose.x != before.pose_in_observer_frame.pose.x
    after.pose_in_observer_frame.CopyFrom(before.pose_in_observer_frame)
    assert after == before


def has_streams(client: WorldStateStoreClient, number: int) -> Callable[[], Awaitable[bool]]:
    async def has_count() -> bool:
        return (await client.get_status())["change_streams"] == number

    return has_count


async def test_streamed_changes_reproduce_the_world(
    client: WorldStateStoreClient, clock: ManualClock
) -> None:
    stream = client.stream_transform_changes()
    async with contextlib.aclosing(stream):
        assert await anext(stream) == StreamTransformChangesResponse()  # it is open
        first = asyncio.ensure_future(anext(stream))
        world = {uuid: await client.get_transform(uuid) for uuid in await client.list_uuids()}
        kinds: set[int] = set()
        await clock.advance(0.1)
        apply(await asyncio.wait_for(first, 10), world)
        while len(kinds) < 3:
            async with asyncio.timeout(60):
                while not await is_up_to_date(client, world):
                    change = await anext(stream)
                    kinds.add(change.change_type)
                    apply(change, world)
            await clock.advance(0.3)
    await poll(has_streams(client, 0))


async def is_up_to_date(client: WorldStateStoreClient, world: dict[bytes, Transform]) -> bool:
    uuids = await client.list_uuids()
    return set(uuids) == set(world) and all(
        [await client.get_transform(uuid) == world[uuid] for uuid in uuids]
    )


def apply(change: StreamTransformChangesResponse, world: dict[bytes, Transform]) -> None:
    uuid = change.transform.uuid
    match change.change_type:
        case Change.TRANSFORM_CHANGE_TYPE_ADDED:
            assert uuid not in world
            assert not change.updated_fields.paths
            world[uuid] = change.transform
        case Change.TRANSFORM_CHANGE_TYPE_UPDATED:
            paths = list(change.updated_fields.paths)
            assert paths
            before = Transform.FromString(world[uuid].SerializeToString())
            for path in paths:
                assert path.startswith("pose_in_observer_frame.pose.")
            mask = change.updated_fields
            mask.MergeMessage(change.transform, before)
            # The named fields make up the whole difference.
            assert before == change.transform
            world[uuid] = change.transform
        case _:
            assert change.change_type == Change.TRANSFORM_CHANGE_TYPE_REMOVED
            assert list(change.updated_fields.paths) == ["uuid"]
            del world[uuid]


@given(
    interval=st.floats(0.1, 5),
    lifetime=st.floats(0.1, 20),
    moments=st.tuples(st.floats(0, 1000), st.floats(0, 50)),
)
def test_changes_transform_one_state_into_another(
    interval: float, lifetime: float, moments: tuple[float, float]
) -> None:
    """This holds whatever time passes in between."""
    attributes = FakeWorldStateStoreAttributes.model_construct(
        interval=interval, lifetime=lifetime, radius_mm=100.0, reference_frame="world"
    )
    world = SimulatedWorld("w", attributes)
    now, later = moments[0], sum(moments)
    followed: dict[bytes, Transform] = dict(world.transforms_at(now))
    for change in diff_transforms(world.transforms_at(now), world.transforms_at(later)):
        apply(change, followed)
    assert followed == world.transforms_at(later)


def test_world_depends_on_the_resource_name() -> None:
    def things(name: str) -> Transforms:
        return SimulatedWorld(name, ATTRIBUTES).transforms_at(12.3)

    assert things("a") == things("a")
    assert not set(things("a")) & set(things("b"))


async def test_slow_stream_reader_gets_accumulated_changes(
    store: FakeWorldStateStore, clock: ManualClock
) -> None:
    """The stream does not queue one change per missed move."""
    stream = store.stream_transform_changes()
    async with contextlib.aclosing(stream):
        first = asyncio.ensure_future(anext(stream))
        await clock.advance(0.1)
        seen = [await first, *[await anext(stream) for _ in range(4)]]
        assert len({change.transform.uuid for change in seen}) == 5
        await clock.advance(1000)
        next_ones = [await anext(stream) for _ in range(10)]
        kinds = [change.change_type for change in next_ones]
        assert (
            kinds
            == [Change.TRANSFORM_CHANGE_TYPE_REMOVED] * 5 + [Change.TRANSFORM_CHANGE_TYPE_ADDED] * 5
        )


async def test_close_ends_the_streams(
    client: WorldStateStoreClient, store: FakeWorldStateStore
) -> None:
    async def read() -> None:
        async for _ in client.stream_transform_changes():
            pass

    reading = asyncio.ensure_future(read())
    await poll(has_streams(client, 1))
    await store.close()
    with refused() as told:
        await asyncio.wait_for(reading, 10)
    assert (told.status, told.words) == (Status.ABORTED, 'world_state_store "w" was closed')


async def test_empty_uuid_is_refused(client: WorldStateStoreClient) -> None:
    with refused() as told:
        await client.get_transform(b"")
    assert told.status is Status.INVALID_ARGUMENT


async def test_status_of_the_store(client: WorldStateStoreClient) -> None:
    assert await client.get_status() == {"transforms": 5, "change_streams": 0}


def test_too_many_transforms_are_refused() -> None:
    with pytest.raises(ValidationError, match="at most 200 times"):
        FakeWorldStateStoreAttributes.model_validate({"interval": "10ms", "lifetime": "1h"})
