"""The input controller service: event times of triggered events."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from grpclib.const import Status
from tests.support.machine.served import refused, served

from cogwork.core.clock import ManualClock
from cogwork.drivers.input_controller.attributes import FakeInputControllerAttributes
from cogwork.drivers.input_controller.fake import FakeInputController
from cogwork.graph.name import ResourceName
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # the SDK must be imported first
from viam.gen.component.inputcontroller.v1 import input_controller_pb2 as inputs  # noqa: E402
from viam.gen.component.inputcontroller.v1.input_controller_grpc import (  # noqa: E402
    InputControllerServiceStub,
)

PAD = ResourceName.parse("rdk:component:input_controller/pad")


@pytest.fixture
async def stub() -> AsyncIterator[Any]:
    attributes = FakeInputControllerAttributes(controls=["ButtonSouth"])
    pad = await FakeInputController.new(PAD, attributes, {}, ManualClock())
    async with served(pad) as channel:
        yield InputControllerServiceStub(channel)
    await pad.close()


async def trigger(stub: Any, time: Timestamp) -> None:
    event = inputs.Event(time=time, event="ButtonPress", control="ButtonSouth", value=1)
    await stub.TriggerEvent(inputs.TriggerEventRequest(controller="pad", event=event))


async def get_last_event(stub: Any) -> inputs.Event:
    reply: inputs.GetEventsResponse
    reply = await stub.GetEvents(inputs.GetEventsRequest(controller="pad"))
    return reply.events[0]


@pytest.mark.parametrize(
    "time",
    [
        Timestamp(seconds=1_700_000_000_000),
        Timestamp(seconds=253_402_300_799, nanos=999_999_999),
        Timestamp(seconds=-62_135_596_801),
        Timestamp(seconds=2**63 - 1),
        Timestamp(seconds=-(2**63)),
    ],
    ids=["milliseconds", "rounded up", "before the first", "the largest", "the smallest"],
)
async def test_event_time_out_of_range_is_refused(stub: Any, time: Timestamp) -> None:
    before = await get_last_event(stub)
    with refused() as error:
        await trigger(stub, time)
    assert error.status is Status.INVALID_ARGUMENT
    assert "not between the years 1 and 9999; set it in seconds" in error.words
    assert await get_last_event(stub) == before


@pytest.mark.parametrize("seconds", [-62_135_596_800, 1_700_000_000, 253_402_300_799])
async def test_valid_event_time_is_kept(stub: Any, seconds: int) -> None:
    await trigger(stub, Timestamp(seconds=seconds))
    assert (await get_last_event(stub)).time.seconds == seconds
