"""The gripper API. Of the SDK's own service all but one method serves: asked whether it holds
something, a gripper is not told what else the question says."""

from __future__ import annotations

from collections.abc import Iterable

from viam.gen.component.gripper.v1 import gripper_pb2 as messages

from cogwork.graph.name import Api
from cogwork.resource.answers import CommonAnswers, Find, time_left
from cogwork.resource.mended import mended
from cogwork.resource.structs import extra_to_dict, to_struct
from cogwork.wire.described import answering
from cogwork.wire.handlers import Method, Stream

_DESCRIPTOR = messages.DESCRIPTOR.services_by_name["GripperService"]
_SDK_CLASS = "viam.components.gripper.service:GripperRPCService"


def gripper_methods(api: Api, find: Find) -> Iterable[Method]:
    holding = answering(GripperService(api, find).is_holding_something)
    return mended(api, find, _DESCRIPTOR, _SDK_CLASS, {"IsHoldingSomething": holding})


class GripperService(CommonAnswers):
    async def is_holding_something(
        self, request: messages.IsHoldingSomethingRequest, stream: Stream
    ) -> messages.IsHoldingSomethingResponse:
        status = await self.resource(request.name).is_holding_something(
            extra=extra_to_dict(request.extra), timeout=time_left(stream), metadata=stream.metadata
        )
        return messages.IsHoldingSomethingResponse(
            is_holding_something=status.is_holding_something, meta=to_struct(status.meta)
        )
