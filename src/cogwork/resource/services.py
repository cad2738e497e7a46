"""Which service carries which API, and the SDK's service classes made to ask our machine.

The SDK's class serves an API unless it bites: those that parse images byte by byte on the loop,
swallow errors or drop fields wait for a class of our own.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, cast

from cogwork.graph.name import BUILTIN_NAMESPACE, Api, ResourceName
from cogwork.resource.structs import (
    extra_to_dict,
    to_dict_aside,
    to_struct,
    to_struct_aside,
)
from cogwork.wire.handlers import Handle, Method, Servable, Stream, methods_of

Find = Callable[[ResourceName], object]
"""The ready resource, or an error that says why there is none."""


@dataclass(frozen=True, slots=True)
class ServedApi:
    api: Api
    service: str
    """The name of the gRPC service."""
    sdk_class: str | None = None
    """The SDK's class that serves it, as `module:Class`. None: not served yet."""


def public_services() -> tuple[ServedApi, ...]:
    return (
        _component("arm", "arm.v1.ArmService", "arm"),
        _component("audio_in", "audioin.v1.AudioInService"),
        _component("audio_out", "audioout.v1.AudioOutService", "audio_out"),
        _component("base", "base.v1.BaseService", "base"),
        _component("board", "board.v1.BoardService", "board"),
        _component("button", "button.v1.ButtonService", "button"),
        _component("camera", "camera.v1.CameraService"),
        _component("encoder", "encoder.v1.EncoderService", "encoder"),
        _component("gantry", "gantry.v1.GantryService", "gantry"),
        _component("generic", "generic.v1.GenericService", "generic"),
        _component("gripper", "gripper.v1.GripperService", "gripper"),
        _component("input_controller", "inputcontroller.v1.InputControllerService"),
        _component("motor", "motor.v1.MotorService", "motor"),
        _component("movement_sensor", "movementsensor.v1.MovementSensorService", "movement_sensor"),
        _component("pose_tracker", "posetracker.v1.PoseTrackerService", "pose_tracker"),
        _component("power_sensor", "powersensor.v1.PowerSensorService", "power_sensor"),
        _component("sensor", "sensor.v1.SensorService", "sensor"),
        _component("servo", "servo.v1.ServoService", "servo"),
        _component("switch", "switch.v1.SwitchService", "switch"),
        _service("data_manager", "datamanager.v1.DataManagerService"),
        _service("discovery", "discovery.v1.DiscoveryService", "discovery:DiscoveryRPCService"),
        _service("generic", "generic.v1.GenericService", "generic:GenericRPCService"),
        _service("mlmodel", "mlmodel.v1.MLModelService"),
        _service("motion", "motion.v1.MotionService", "motion:MotionRPCService"),
        _service(
            "navigation", "navigation.v1.NavigationService", "navigation:NavigationRPCService"
        ),
        _service("shell", "shell.v1.ShellService"),
        _service("slam", "slam.v1.SLAMService", "slam:SLAMRPCService"),
        _service("video", "video.v1.VideoService"),
        _service("vision", "vision.v1.VisionService"),
        _service(
            "world_state_store",
            "worldstatestore.v1.WorldStateStoreService",
            "worldstatestore:WorldStateStoreService",
        ),
    )


def served_methods(served: ServedApi, find: Find) -> Iterable[Method]:
    """Loads the SDK's class, and with it the messages of the service."""
    assert served.sdk_class is not None
    path, _, kind = served.sdk_class.partition(":")
    module: Any = importlib.import_module(path)
    module.struct_to_dict = extra_to_dict
    module.dict_to_struct = to_struct
    methods = methods_of(sdk_service(getattr(module, kind), served.api, find))
    return [_without_the_sdk(method, served.api, find) for method in methods]


def _without_the_sdk(method: Method, api: Api, find: Find) -> Method:
    """A command may hold any number of values, which the SDK would convert on the loop."""
    if method.path.endswith("/DoCommand"):
        return replace(method, handle=_do_command(method, api, find))
    return method


def _do_command(method: Method, api: Api, find: Find) -> Handle:
    assert method.reply is not None
    reply: Any = method.reply

    async def do_command(stream: Stream) -> None:
        request = stream.request
        resource: Any = find(ResourceName.of(api, request.name))
        command = await to_dict_aside(request.command)
        deadline = stream.deadline
        result = await resource.do_command(
            command,
            timeout=deadline.time_remaining() if deadline is not None else None,
            metadata=stream.metadata,
        )
        await stream.send_message(reply(result=await to_struct_aside(result)))

    return do_command


def sdk_service(kind: type[Any], api: Api, find: Find) -> Servable:
    """An instance of one of the SDK's `…RPCService` classes.

    Their own way to find a resource takes the first one of that name, whatever its API.
    """

    def get_resource(_: object, name: str) -> object:
        return find(ResourceName.of(api, name))

    tamed = type(f"Served{kind.__name__}", (kind,), {"get_resource": get_resource})
    return cast("Servable", tamed(manager=None))


def _component(subtype: str, service: str, package: str | None = None) -> ServedApi:
    words = (package or "").split("_")
    kind = "".join(word.capitalize() for word in words) + "RPCService"
    return ServedApi(
        Api(BUILTIN_NAMESPACE, "component", subtype),
        f"viam.component.{service}",
        f"viam.components.{package}.service:{kind}" if package is not None else None,
    )


def _service(subtype: str, service: str, sdk_class: str | None = None) -> ServedApi:
    package, _, kind = (sdk_class or "").partition(":")
    return ServedApi(
        Api(BUILTIN_NAMESPACE, "service", subtype),
        f"viam.service.{service}",
        f"viam.services.{package}.service:{kind}" if sdk_class is not None else None,
    )
