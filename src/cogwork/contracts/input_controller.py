"""What an input controller keeps to."""

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

from cogwork.contracts.bench import Bench
from cogwork.contracts.contract import PATIENCE, Contract

PRESSED = EventType.BUTTON_PRESS.value


class InputControllerContract(Contract):
    api = "rdk:component:input_controller"
    client = ControllerClient

    control: ClassVar[str]
    """One of its controls, at rest as long as a test does nothing."""
    triggers: ClassVar[bool] = True
    """Whether clients may make events happen."""

    async def test_it_has_controls(self, it: Any) -> None:
        assert Control(self.control) in await it.get_controls()

    async def test_it_knows_the_last_event_of_its_controls(self, it: Any) -> None:
        controls = await it.get_controls()
        for control, event in (await it.get_events()).items():
            assert control in controls
            assert event.control == control

    async def test_an_event_that_is_triggered_is_the_last(self, it: Any) -> None:
        if not self.triggers:
            return
        await _trigger(it, self.control, 1.0)
        event = (await it.get_events())[Control(self.control)]
        assert (event.event, event.value) == (EventType.BUTTON_PRESS, 1.0)

    async def test_who_cannot_trigger_says_so(self, it: Any) -> None:
        if self.triggers:
            return
        with pytest.raises(GRPCError) as refused:
            await _trigger(it, self.control, 1.0)
        assert refused.value.status is Status.UNIMPLEMENTED
        # By these words the SDK's client knows it.
        assert "does not support triggering events" in (refused.value.message or "")

    @pytest.mark.parametrize("control", ["", "ButtonNowhere"])
    async def test_a_control_that_there_is_not_is_refused(self, it: Any, control: str) -> None:
        with pytest.raises(GRPCError) as refused:
            await _trigger(it, control, 1.0)
        assert refused.value.status in (Status.INVALID_ARGUMENT, Status.NOT_FOUND)
        with pytest.raises(GRPCError) as refused:
            async with _stream(it, control, "AllEvents"):
                pass
        assert refused.value.status in (Status.INVALID_ARGUMENT, Status.NOT_FOUND)

    async def test_a_kind_of_event_that_there_is_not_is_refused(self, it: Any) -> None:
        with pytest.raises(GRPCError) as refused:
            async with _stream(it, self.control, "ButtonTickled"):
                pass
        assert refused.value.status is Status.INVALID_ARGUMENT

    async def test_all_who_listen_hear_of_every_event_once(self, it: Any) -> None:
        if not self.triggers:
            return
        async with (
            _stream(it, self.control, PRESSED) as one,
            _stream(it, self.control, "AllEvents", PRESSED, "ButtonChange") as other,
        ):
            for value in (1.0, 0.5):
                await _trigger(it, self.control, value)
            for stream in (one, other):
                for value in (1.0, 0.5):
                    reply = await asyncio.wait_for(stream.recv_message(), PATIENCE)
                    assert reply.event.value == value
                    assert (reply.event.control, reply.event.event) == (self.control, PRESSED)

    async def test_who_leaves_takes_nothing_from_the_others(self, it: Any) -> None:
        if not self.triggers:
            return
        async with _stream(it, self.control, PRESSED) as staying:
            async with _stream(it, self.control, PRESSED):
                pass
            await _trigger(it, self.control, 1.0)
            reply = await asyncio.wait_for(staying.recv_message(), PATIENCE)
            assert reply.event.value == 1.0

    async def test_the_moment_of_an_event_is_kept(self, it: Any) -> None:
        if not self.triggers:
            return
        async with _stream(it, self.control, PRESSED) as stream:
            await _trigger(it, self.control, 1.0)
            reply = await asyncio.wait_for(stream.recv_message(), PATIENCE)
            assert reply.event.time.seconds == 1_700_000_000

    async def test_a_stream_ends_with_the_controller(self, bench: Bench, it: Any) -> None:
        async with _stream(it, self.control, PRESSED) as stream:
            await bench.run(*self.beside)
            with pytest.raises(GRPCError) as ended:
                await asyncio.wait_for(_read_out(stream), PATIENCE)
            assert " " in (ended.value.message or "")


async def _trigger(it: Any, control: str, value: float) -> None:
    """Without the SDK's own event, which shifts times by the zone of the client."""
    event = EventMessage(
        time=Timestamp(seconds=1_700_000_000), event=PRESSED, control=control, value=value
    )
    await it.client.TriggerEvent(TriggerEventRequest(controller=it.name, event=event))


@contextlib.asynccontextmanager
async def _stream(it: Any, control: str, *events: str) -> AsyncIterator[Any]:
    """From the moment on at which the controller listens."""
    wanted = StreamEventsRequest.Events(control=control, events=events)
    async with it.client.StreamEvents.open() as stream:
        request = StreamEventsRequest(controller=it.name, events=[wanted])
        await stream.send_message(request, end=True)
        try:
            await asyncio.wait_for(stream.recv_initial_metadata(), PATIENCE)
            yield stream
        finally:
            with contextlib.suppress(Exception):
                await stream.cancel()


async def _read_out(stream: Any) -> None:
    while await stream.recv_message() is not None:
        pass
    await stream.recv_trailing_metadata()
