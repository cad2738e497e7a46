"""Methods that cause motion. A motion belongs to the session of the client that started it.

The public API marks the methods of components that cause motion. The methods of the motion service
have no mark, although they move components.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from google.protobuf import descriptor_pool
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from cogwork.core.errors import InvalidRequest
from cogwork.graph.name import Api
from cogwork.graph.public_apis import API_BY_SERVICE
from cogwork.wire.table.handlers import Method

if TYPE_CHECKING:  # the services that use this module import it at run time
    from viam.gen.common.v1.common_pb2 import Transform

MOTION_API: Final = Api.parse("rdk:service:motion")
_MOVE_PREFIX: Final = "Move"


def is_motion_service_move(method: Method) -> bool:
    """Return whether a method moves a component through a motion service."""
    return (
        API_BY_SERVICE.get(method.service) == MOTION_API
        and not method.is_unregistered
        and method.path.rpartition("/")[2].startswith(_MOVE_PREFIX)
    )


def sets_in_motion(method: Method) -> bool:
    """Return whether a registered method is marked in the public API as causing motion."""
    return not method.is_unregistered and is_marked(_describe(method))


def is_marked(method: MethodDescriptor) -> bool:
    """Return whether a method is marked in the public API as causing motion."""
    from viam.gen.common.v1.common_pb2 import safety_heartbeat_monitored

    return bool(method.GetOptions().Extensions[safety_heartbeat_monitored])


def read_component(method: Method, request: Any) -> str:
    """Return the component named in a request of a motion service. Raise InvalidRequest."""
    from cogwork.resource.services.motion import read_resource_name

    return read_resource_name(_parse(method, request), "component_name")


def read_transforms(method: Method, request: Any) -> Iterable[Transform]:
    """Return the additional frames in a request of a motion service. Raise InvalidRequest."""
    world_state = getattr(_parse(method, request), "world_state", None)
    return world_state.transforms if world_state is not None else ()


def _parse(method: Method, request: Any) -> Any:
    """Parse a request, which is raw bytes if its resource is in another process."""
    if not isinstance(request, bytes):
        return request
    try:
        return GetMessageClass(_describe(method).input_type).FromString(request)
    except DecodeError as error:
        raise InvalidRequest(f"the request of {method.path} is malformed: {error}") from None


def _describe(method: Method) -> MethodDescriptor:
    pool: Any = descriptor_pool.Default()  # type: ignore[no-untyped-call]
    found: MethodDescriptor = pool.FindMethodByName(method.path.lstrip("/").replace("/", "."))
    return found
