"""Where clients meet machines."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

import pytest

from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.gen.proto.rpc.webrtc.v1.signaling_pb2 import (  # noqa: E402
    AnswerRequestInitStage,
    AnswerResponse,
    CallUpdateRequest,
)

from cogwork.cloud.identity.access import CloudRole  # noqa: E402
from cogwork.cloud.signaling.rendezvous import (  # noqa: E402
    Rendezvous,
    SignalingCall,
    TooManyCallers,
    TooManyMessages,
)
from cogwork.core.limits.fair_places import Holder  # noqa: E402

OWNER = Holder("owner", CloudRole.OWNER)
OPERATOR = Holder("operator", CloudRole.OPERATOR)
OTHER = Holder("other operator", CloudRole.OPERATOR)
MAX_CALLERS = 50


class Meeting:
    def __init__(self) -> None:
        self.rendezvous = Rendezvous()
        self.stack = contextlib.ExitStack()

    def wait(self, part: str = "press") -> asyncio.Future[SignalingCall]:
        return self.stack.enter_context(self.rendezvous.wait_at(part))

    def call(self, caller: Holder, part: str = "press") -> SignalingCall:
        offer = AnswerRequestInitStage()
        return self.stack.enter_context(self.rendezvous.call(part, offer, caller))


@pytest.fixture
def meeting() -> Iterator[Meeting]:
    made = Meeting()
    with made.stack:
        yield made
    assert not made.rendezvous._machines
    assert not made.rendezvous._calls


async def test_side_that_sends_too_much_is_told(meeting: Meeting) -> None:
    meeting.wait()
    call = meeting.call(OPERATOR)
    for _ in range(256):
        call.add_update(CallUpdateRequest())
        call.add_answer(AnswerResponse())
    with pytest.raises(TooManyMessages, match="has not read 256 messages"):
        call.add_update(CallUpdateRequest())
    with pytest.raises(TooManyMessages) as refused:
        call.add_answer(AnswerResponse())
    assert refused.value.status == "RESOURCE_EXHAUSTED"


async def test_call_waits_for_a_stream_of_its_part(meeting: Meeting) -> None:
    with meeting.rendezvous.wait_at("press") as busy, meeting.rendezvous.wait_at("saw") as saw:
        taken = meeting.call(OPERATOR)
        assert busy.result() is taken
        call = meeting.call(OPERATOR)
        assert not saw.done()
        assert meeting.rendezvous.find(call.id) is call
    assert not meeting.rendezvous.is_online("press")
    assert meeting.wait().result() is call


async def test_operators_leave_a_stream_for_owners(meeting: Meeting) -> None:
    streams = [meeting.wait(), meeting.wait()]
    calls = [meeting.call(OPERATOR) for _ in range(8)]
    assert [each.done() for each in streams] == [True, False]
    owner = meeting.call(OWNER)
    assert streams[1].result() is owner
    # The streams of a machine that opens another one for each that it answers are never few.
    third, _ = meeting.wait(), meeting.wait()
    assert third.result() is calls[1]


async def test_streams_are_shared_among_identities(meeting: Meeting) -> None:
    _, *queue = [meeting.wait(), *(meeting.call(OPERATOR) for _ in range(4))]
    late = meeting.call(OTHER)
    found = [meeting.wait() for _ in range(3)]
    assert found[0].result() is late
    assert found[1].result() is queue[1]


async def test_full_queue_is_shared_among_identities(meeting: Meeting) -> None:
    meeting.wait()
    _, *queue = [meeting.call(OPERATOR) for _ in range(MAX_CALLERS + 1)]
    with pytest.raises(TooManyCallers):
        meeting.call(OPERATOR)
    meeting.call(OTHER)
    meeting.call(OWNER)
    for each in queue[:2]:
        assert isinstance(each.answers.get_nowait(), TooManyCallers)
    assert queue[2].answers.empty()
