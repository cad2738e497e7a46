"""The gripper API: the SDK's service, with IsHoldingSomething replaced.

The SDK does not pass `extra`, the deadline and the metadata of IsHoldingSomething to the gripper.
"""

from __future__ import annotations

from collections.abc import Iterable

from viam.gen.component.gripper.v1 import gripper_pb2 as messages

from cogwork.graph.name import Api
from cogwork.resource.messages.structs import extra_to_dict, to_struct
from cogwork.resource.services.patched_service import patch_methods
from cogwork.resource.services.resource_service import FindResource, ResourceService, time_left
from cogwork.wire.table.descriptor_service import to_stream_handler
from cogwork.wire.table.handlers import Method, Stream

_DESCRIPTOR = messages.DESCRIPTOR.services_by_name["GripperService"]


def gripper_methods(api: Api, find: FindResource) -> Iterable[Method]:
    holding = to_stream_handler(GripperService(api, find).is_holding_something)
    return patch_methods(api, find, {"IsHoldingSomething": holding})


class GripperService(ResourceService):
    async def is_holding_something(
        self, request: messages.IsHoldingSomethingRequest, stream: Stream
    ) -> messages.IsHoldingSomethingResponse:
        status = await self.find_resource(request.name).is_holding_something(
            extra=extra_to_dict(request.extra), timeout=time_left(stream), metadata=stream.metadata
        )
        return messages.IsHoldingSomethingResponse(
            is_holding_something=status.is_holding_something, meta=to_struct(status.meta)
        )
