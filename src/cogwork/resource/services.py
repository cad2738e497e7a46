"""The gRPC service of each API, and adapters that let the SDK's service classes use our machine.

The SDK's class serves an API unless it has a defect. Classes that parse images byte by byte on the
event loop, swallow errors or drop fields are replaced by our own.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, cast

from cogwork.graph.name import BUILTIN_NAMESPACE, Api, ResourceName
from cogwork.resource.resource_service import FindResource, ResourceService
from cogwork.resource.structs import extra_to_dict, to_struct
from cogwork.wire.descriptor_service import to_stream_handler
from cogwork.wire.handlers import Method, Servable, methods_from_service


@dataclass(frozen=True, slots=True)
class ServedApi:
    """An API, and the class or function that serves it."""

    api: Api
    service: str
    """The name of the gRPC service."""
    sdk_class: str | None = None
    """The SDK's class that serves the API, as `module:Class`."""
    methods_factory: str | None = None
    """Our function that returns the methods, as `module:function`, instead of the SDK's class."""

    @property
    def is_served(self) -> bool:
        """Whether the API is implemented."""
        return self.sdk_class is not None or self.methods_factory is not None


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


def load_methods(served: ServedApi, find: FindResource) -> Iterable[Method]:
    """Import the implementation of an API with its messages, and return its methods."""
    if served.methods_factory is not None:
        methods: Iterable[Method] = _import_attribute(served.methods_factory)(served.api, find)
        return methods
    assert served.sdk_class is not None
    path, _, kind = served.sdk_class.partition(":")
    module: Any = importlib.import_module(path)
    module.struct_to_dict = extra_to_dict
    module.dict_to_struct = to_struct
    service = create_sdk_service(getattr(module, kind), served.api, find)
    return [_replace_do_command(each, served.api, find) for each in methods_from_service(service)]


def _replace_do_command(method: Method, api: Api, find: FindResource) -> Method:
    if method.path.endswith("/DoCommand"):
        return replace(method, handle=to_stream_handler(ResourceService(api, find).do_command))
    return method


def create_sdk_service(kind: type[Any], api: Api, find: FindResource) -> Servable:
    """Create an instance of one of the SDK's `…RPCService` classes.

    Its lookup of resources is replaced, because the SDK returns the first resource with the name
    regardless of its API.
    """

    def get_resource(_: object, name: str) -> object:
        return find(ResourceName.from_short(api, name))

    patched = type(f"Served{kind.__name__}", (kind,), {"get_resource": get_resource})
    return cast("Servable", patched(manager=None))


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


def _import_attribute(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)
