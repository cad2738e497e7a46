"""The contract of input controllers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, ClassVar

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from grpclib import GRPCError
from grpclib.const import Status
from viam.components.input import Control, EventType
from viam.components.input.client import ControllerClient
from viam.proto.component.inputcontroller import Event as EventMessage
from viam.proto.component.inputcontroller import StreamEventsRequest, TriggerEventRequest

from cogwork.contracts.contract import TIMEOUT, Contract
from cogwork.contracts.harness import Harness

PRESSED = EventType.BUTTON_PRESS.value


class InputControllerContract(Contract):
    api = "rdk:component:input_controller"
    client = ControllerClient

    control: ClassVar[str]
    """A control of the controller that only changes when a test triggers it."""
    triggers: ClassVar[bool] = True
    """Whether clients may trigger events."""

    async def test_has_controls(self, resource: Any) -> None:
        assert Control(self.control) in await resource.get_controls()

    async def test_reports_last_events(self, resource: Any) -> None:
        controls = await resource.get_controls()
        for control, event in (await resource.get_events()).items():
            assert control in controls
            assert event.control == control

    async def test_triggered_event_is_last(self, resource: Any) -> None:
        if not self.triggers:
            return
        await _trigger(resource, self.control, 1.0)
        event = (await resource.get_events())[Control(self.control)]
        assert (event.event, event.value) == (EventType.BUTTON_PRESS, 1.0)

    async def test_unsupported_trigger_is_refused(self, resource: Any) -> None:
        if self.triggers:
            return
        with pytest.raises(GRPCError) as refused:
            await _trigger(resource, self.control, 1.0)
        assert refused.value.status is Status.UNIMPLEMENTED
        # The SDK's client recognizes the error by these words.
        assert "does not support triggering events" in (refused.value.message or "")

    @pytest.mark.parametrize("control", ["", "ButtonNowhere"])
    async def test_refuses_unknown_control(self, resource: Any, control: str) -> None:
        with pytest.raises(GRPCError) as refused:
            await _trigger(resource, control, 1.0)
        assert refused.value.status in (Status.INVALID_ARGUMENT, Status.NOT_FOUND)
        with pytest.raises(GRPCError) as refused:
            async with _open_stream(resource, control, "AllEvents"):
                pass
        assert refused.value.status in (Status.INVALID_ARGUMENT, Status.NOT_FOUND)

    async def test_refuses_unknown_event(self, resource: Any) -> None:
        with pytest.raises(GRPCError) as refused:
            async with _open_stream(resource, self.control, "ButtonTickled"):
                pass
        assert refused.value.status is Status.INVALID_ARGUMENT

    async def test_every_stream_gets_each_event_once(self, resource: Any) -> None:
        if not self.triggers:
            return
        async with (
            _open_stream(resource, self.control, PRESSED) as one,
            _open_stream(resource, self.control, "AllEvents", PRESSED, "ButtonChange") as other,
        ):
            for value in (1.0, 0.5):
                await _trigger(resource, self.control, value)
            for stream in (one, other):
                for value in (1.0, 0.5):
                    reply = await asyncio.wait_for(stream.recv_message(), TIMEOUT)
                    assert reply.event.value == value
                    assert (reply.event.control, reply.event.event) == (self.control, PRESSED)

    async def test_closing_a_stream_keeps_others(self, resource: Any) -> None:
        if not self.triggers:
            return
        async with _open_stream(resource, self.control, PRESSED) as staying:
            async with _open_stream(resource, self.control, PRESSED):
                pass
            await _trigger(resource, self.control, 1.0)
            reply = await asyncio.wait_for(staying.recv_message(), TIMEOUT)
            assert reply.event.value == 1.0

    async def test_event_time_is_kept(self, resource: Any) -> None:
        if not self.triggers:
            return
        async with _open_stream(resource, self.control, PRESSED) as stream:
            await _trigger(resource, self.control, 1.0)
            reply = await asyncio.wait_for(stream.recv_message(), TIMEOUT)
            assert reply.event.time.seconds == 1_700_000_000

    async def test_stream_ends_with_controller(self, harness: Harness, resource: Any) -> None:
        async with _open_stream(resource, self.control, PRESSED) as stream:
            await harness.run(*self.other_resources)
            with pytest.raises(GRPCError) as ended:
                await asyncio.wait_for(_drain(stream), TIMEOUT)
            assert " " in (ended.value.message or "")


async def _trigger(resource: Any, control: str, value: float) -> None:
    """Trigger an event without the SDK's class, which shifts times by the client's time zone."""
    event = EventMessage(
        time=Timestamp(seconds=1_700_000_000), event=PRESSED, control=control, value=value
    )
    await resource.client.TriggerEvent(TriggerEventRequest(controller=resource.name, event=event))


@contextlib.asynccontextmanager
async def _open_stream(resource: Any, control: str, *events: str) -> AsyncIterator[Any]:
    """Open a stream and wait until the controller has registered it."""
    wanted = StreamEventsRequest.Events(control=control, events=events)
    async with resource.client.StreamEvents.open() as stream:
        request = StreamEventsRequest(controller=resource.name, events=[wanted])
        await stream.send_message(request, end=True)
        try:
            await asyncio.wait_for(stream.recv_initial_metadata(), TIMEOUT)
            yield stream
        finally:
            with contextlib.suppress(Exception):
                await stream.cancel()


async def _drain(stream: Any) -> None:
    while await stream.recv_message() is not None:
        pass
    await stream.recv_trailing_metadata()
