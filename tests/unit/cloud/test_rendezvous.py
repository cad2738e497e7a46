"""Where clients meet machines."""

from __future__ import annotations

import pytest

from cogwork.resource import sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.gen.proto.rpc.webrtc.v1.signaling_pb2 import (  # noqa: E402
    AnswerRequestInitStage,
    AnswerResponse,
    CallUpdateRequest,
)

from cogwork.cloud.signaling.rendezvous import Rendezvous, TooManyMessages  # noqa: E402


async def test_side_that_sends_too_much_is_told() -> None:
    meeting = Rendezvous()
    with meeting.wait_at(["press"]), meeting.call("press", AnswerRequestInitStage()) as call:
        for _ in range(256):
            call.add_update(CallUpdateRequest())
            call.add_answer(AnswerResponse())
        with pytest.raises(TooManyMessages, match="has not read 256 messages"):
            call.add_update(CallUpdateRequest())
        with pytest.raises(TooManyMessages) as refused:
            call.add_answer(AnswerResponse())
        assert refused.value.status == "RESOURCE_EXHAUSTED"
