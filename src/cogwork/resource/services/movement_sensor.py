"""The movement sensor API: the SDK's service, with GetReadings replaced.

The SDK's GetReadings marks an angular velocity as an ordinary vector, but clients in Go distinguish
the two.
"""

from __future__ import annotations

from collections.abc import Iterable

from viam.components.movement_sensor import Vector3
from viam.gen.common.v1 import common_pb2 as common
from viam.utils import sensor_readings_native_to_value

from cogwork.graph.name import Api
from cogwork.resource.messages.structs import extra_to_dict
from cogwork.resource.services.patched_service import patch_methods
from cogwork.resource.services.resource_service import FindResource, ResourceService, time_left
from cogwork.wire.table.descriptor_service import to_stream_handler
from cogwork.wire.table.handlers import Method, Stream

_ANGULAR_VELOCITY = "angular_velocity"
"""Name of the reading, which is also the name of its type in the reply."""


def movement_sensor_methods(api: Api, find: FindResource) -> Iterable[Method]:
    service = MovementSensorService(api, find)
    return patch_methods(api, find, {"GetReadings": to_stream_handler(service.get_readings)})


class MovementSensorService(ResourceService):
    async def get_readings(
        self, request: common.GetReadingsRequest, stream: Stream
    ) -> common.GetReadingsResponse:
        readings = await self.find_resource(request.name).get_readings(
            extra=extra_to_dict(request.extra), timeout=time_left(stream), metadata=stream.metadata
        )
        values = sensor_readings_native_to_value(readings)
        if isinstance(readings.get(_ANGULAR_VELOCITY), Vector3):
            fields = values[_ANGULAR_VELOCITY].struct_value.fields
            fields["_type"].string_value = _ANGULAR_VELOCITY
        return common.GetReadingsResponse(readings=values)
