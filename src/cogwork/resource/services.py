"""Which service carries which API, and the SDK's service classes made to ask our machine.

The SDK's class serves an API unless it bites: those that parse images byte by byte on the loop,
swallow errors or drop fields wait for a class of our own.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, cast

from cogwork.graph.name import BUILTIN_NAMESPACE, Api, ResourceName
from cogwork.resource.answers import CommonAnswers, Find
from cogwork.resource.structs import extra_to_dict, to_struct
from cogwork.wire.described import answering
from cogwork.wire.handlers import Method, Servable, methods_of


@dataclass(frozen=True, slots=True)
class ServedApi:
    api: Api
    service: str
    """The name of the gRPC service."""
    sdk_class: str | None = None
    """The SDK's class that serves it, as `module:Class`."""
    ours: str | None = None
    """Our function that makes its methods, as `module:function`, where the SDK's class bites."""

    @property
    def is_served(self) -> bool:
        """Not every API is, yet."""
        return self.sdk_class is not None or self.ours is not None


def public_services() -> tuple[ServedApi, ...]:
    return (
        _component("arm", "arm.v1.ArmService", ours="arm_service:arm_methods"),
        _component(
            "audio_in", "audioin.v1.AudioInService", ours="audio_in_service:audio_in_methods"
        ),
        _component("audio_out", "audioout.v1.AudioOutService", "audio_out"),
        _component("base", "base.v1.BaseService", ours="base_service:base_methods"),
        _component("board", "board.v1.BoardService", ours="board_service:board_methods"),
        _component("button", "button.v1.ButtonService", "button"),
        _component("camera", "camera.v1.CameraService", ours="camera_service:camera_methods"),
        _component("encoder", "encoder.v1.EncoderService", "encoder"),
        _component("gantry", "gantry.v1.GantryService", "gantry"),
        _component("generic", "generic.v1.GenericService", "generic"),
        _component("gripper", "gripper.v1.GripperService", ours="gripper_service:gripper_methods"),
        _component(
            "input_controller",
            "inputcontroller.v1.InputControllerService",
            ours="input_controller_service:input_controller_methods",
        ),
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
        _service("mlmodel", "mlmodel.v1.MLModelService", ours="mlmodel_service:mlmodel_methods"),
        _service("motion", "motion.v1.MotionService", ours="motion_service:motion_methods"),
        _service(
            "navigation", "navigation.v1.NavigationService", "navigation:NavigationRPCService"
        ),
        _service("shell", "shell.v1.ShellService", ours="shell_service:shell_methods"),
        _service("slam", "slam.v1.SLAMService", "slam:SLAMRPCService"),
        _service("video", "video.v1.VideoService"),
        _service("vision", "vision.v1.VisionService", ours="vision_service:vision_methods"),
        _service(
            "world_state_store",
            "worldstatestore.v1.WorldStateStoreService",
            "worldstatestore:WorldStateStoreService",
        ),
    )


def served_methods(served: ServedApi, find: Find) -> Iterable[Method]:
    """Loads whoever serves it, and with it the messages of the service."""
    if served.ours is not None:
        methods: Iterable[Method] = _attribute(served.ours)(served.api, find)
        return methods
    assert served.sdk_class is not None
    path, _, kind = served.sdk_class.partition(":")
    module: Any = importlib.import_module(path)
    module.struct_to_dict = extra_to_dict
    module.dict_to_struct = to_struct
    theirs = methods_of(sdk_service(getattr(module, kind), served.api, find))
    return [_without_the_sdk(method, served.api, find) for method in theirs]


def _without_the_sdk(method: Method, api: Api, find: Find) -> Method:
    if method.path.endswith("/DoCommand"):
        return replace(method, handle=answering(CommonAnswers(api, find).do_command))
    return method


def sdk_service(kind: type[Any], api: Api, find: Find) -> Servable:
    """An instance of one of the SDK's `…RPCService` classes.

    Their own way to find a resource takes the first one of that name, whatever its API.
    """

    def get_resource(_: object, name: str) -> object:
        return find(ResourceName.of(api, name))

    tamed = type(f"Served{kind.__name__}", (kind,), {"get_resource": get_resource})
    return cast("Servable", tamed(manager=None))


def _component(
    subtype: str, service: str, package: str | None = None, *, ours: str | None = None
) -> ServedApi:
    words = (package or "").split("_")
    kind = "".join(word.capitalize() for word in words) + "RPCService"
    return ServedApi(
        Api(BUILTIN_NAMESPACE, "component", subtype),
        f"viam.component.{service}",
        f"viam.components.{package}.service:{kind}" if package is not None else None,
        f"cogwork.resource.{ours}" if ours is not None else None,
    )


def _service(
    subtype: str, service: str, sdk_class: str | None = None, *, ours: str | None = None
) -> ServedApi:
    package, _, kind = (sdk_class or "").partition(":")
    return ServedApi(
        Api(BUILTIN_NAMESPACE, "service", subtype),
        f"viam.service.{service}",
        f"viam.services.{package}.service:{kind}" if sdk_class is not None else None,
        f"cogwork.resource.{ours}" if ours is not None else None,
    )


def _attribute(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)
