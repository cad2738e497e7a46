"""The base API. Of the SDK's own service all but one method serves: asked for its properties, a
base is not told what else the question says."""

from __future__ import annotations

from collections.abc import Iterable

from viam.gen.component.base.v1 import base_pb2 as messages

from cogwork.graph.name import Api
from cogwork.resource.answers import CommonAnswers, Find, time_left
from cogwork.resource.mended import mended
from cogwork.resource.structs import extra_to_dict
from cogwork.wire.described import answering
from cogwork.wire.handlers import Method, Stream

_DESCRIPTOR = messages.DESCRIPTOR.services_by_name["BaseService"]
_SDK_CLASS = "viam.components.base.service:BaseRPCService"


def base_methods(api: Api, find: Find) -> Iterable[Method]:
    properties = answering(BaseService(api, find).get_properties)
    return mended(api, find, _DESCRIPTOR, _SDK_CLASS, {"GetProperties": properties})


class BaseService(CommonAnswers):
    async def get_properties(
        self, request: messages.GetPropertiesRequest, stream: Stream
    ) -> messages.GetPropertiesResponse:
        properties = await self.resource(request.name).get_properties(
            extra=extra_to_dict(request.extra), timeout=time_left(stream), metadata=stream.metadata
        )
        return messages.GetPropertiesResponse(
            width_meters=properties.width_meters,
            turning_radius_meters=properties.turning_radius_meters,
            wheel_circumference_meters=properties.wheel_circumference_meters,
        )
