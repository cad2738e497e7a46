"""The base API: the SDK's service, with GetProperties replaced.

The SDK does not pass `extra`, the deadline and the metadata of GetProperties to the base.
"""

from __future__ import annotations

from collections.abc import Iterable

from viam.gen.component.base.v1 import base_pb2 as messages

from cogwork.graph.name import Api
from cogwork.resource.messages.structs import extra_to_dict
from cogwork.resource.services.patched_service import patch_methods
from cogwork.resource.services.resource_service import FindResource, ResourceService, time_left
from cogwork.wire.table.descriptor_service import to_stream_handler
from cogwork.wire.table.handlers import Method, Stream

_DESCRIPTOR = messages.DESCRIPTOR.services_by_name["BaseService"]


def base_methods(api: Api, find: FindResource) -> Iterable[Method]:
    properties = to_stream_handler(BaseService(api, find).get_properties)
    return patch_methods(api, find, {"GetProperties": properties})


class BaseService(ResourceService):
    async def get_properties(
        self, request: messages.GetPropertiesRequest, stream: Stream
    ) -> messages.GetPropertiesResponse:
        properties = await self.find_resource(request.name).get_properties(
            extra=extra_to_dict(request.extra), timeout=time_left(stream), metadata=stream.metadata
        )
        return messages.GetPropertiesResponse(
            width_meters=properties.width_meters,
            turning_radius_meters=properties.turning_radius_meters,
            wheel_circumference_meters=properties.wheel_circumference_meters,
        )
