"""The APIs of the built-in namespace, and the classes that serve and call them.

Custom APIs use other namespaces.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from cogwork.graph.name import BUILTIN_NAMESPACE, Api


@dataclass(frozen=True, slots=True)
class PublicApi:
    """An API. Classes and functions are named as `module:name`, and imported on demand."""

    api: Api
    service: str | None = None
    """The name of the gRPC service; None if the SDK has no messages for the API."""
    sdk_client: str | None = None
    """The SDK's client class."""
    sdk_service: str | None = None
    """The SDK's class that serves the API."""
    methods_factory: str | None = None
    """Our function that returns the methods; it replaces the SDK's class."""

    @property
    def is_served(self) -> bool:
        return self.sdk_service is not None or self.methods_factory is not None


def _component(subtype: str, service: str, sdk: str, *, ours: bool = False) -> PublicApi:
    return _public_api("component", subtype, service, sdk, ours=ours)


def _service(
    subtype: str, service: str, sdk: str | None = None, *, ours: bool = False
) -> PublicApi:
    return _public_api("service", subtype, service, sdk, ours=ours)


def _public_api(kind: str, subtype: str, service: str, sdk: str | None, *, ours: bool) -> PublicApi:
    """Return an API. `sdk` is the SDK's package and the prefix of its class names."""
    package, _, prefix = (sdk or "").partition(":")
    module = f"viam.{kind}s.{package}"
    return PublicApi(
        Api(BUILTIN_NAMESPACE, kind, subtype),
        f"viam.{kind}.{service}",
        f"{module}.client:{prefix}Client" if sdk else None,
        f"{module}.service:{_SDK_SERVICES.get(prefix, f'{prefix}RPCService')}" if sdk else None,
        f"cogwork.resource.services.{subtype}:{subtype}_methods" if ours else None,
    )


_SDK_SERVICES = {
    "Controller": "InputControllerRPCService",
    "WorldStateStore": "WorldStateStoreService",
}
"""Classes whose names do not follow the pattern."""

_APIS = (
    _component("arm", "arm.v1.ArmService", "arm:Arm", ours=True),
    _component("audio_in", "audioin.v1.AudioInService", "audio_in:AudioIn", ours=True),
    _component("audio_out", "audioout.v1.AudioOutService", "audio_out:AudioOut"),
    _component("base", "base.v1.BaseService", "base:Base", ours=True),
    _component("board", "board.v1.BoardService", "board:Board", ours=True),
    _component("button", "button.v1.ButtonService", "button:Button"),
    _component("camera", "camera.v1.CameraService", "camera:Camera", ours=True),
    _component("encoder", "encoder.v1.EncoderService", "encoder:Encoder"),
    _component("gantry", "gantry.v1.GantryService", "gantry:Gantry"),
    _component("generic", "generic.v1.GenericService", "generic:Generic"),
    _component("gripper", "gripper.v1.GripperService", "gripper:Gripper", ours=True),
    _component(
        "input_controller",
        "inputcontroller.v1.InputControllerService",
        "input:Controller",
        ours=True,
    ),
    _component("motor", "motor.v1.MotorService", "motor:Motor"),
    _component(
        "movement_sensor",
        "movementsensor.v1.MovementSensorService",
        "movement_sensor:MovementSensor",
        ours=True,
    ),
    _component("pose_tracker", "posetracker.v1.PoseTrackerService", "pose_tracker:PoseTracker"),
    _component("power_sensor", "powersensor.v1.PowerSensorService", "power_sensor:PowerSensor"),
    _component("sensor", "sensor.v1.SensorService", "sensor:Sensor"),
    _component("servo", "servo.v1.ServoService", "servo:Servo"),
    _component("switch", "switch.v1.SwitchService", "switch:Switch"),
    PublicApi(Api(BUILTIN_NAMESPACE, "service", "base_remote_control")),
    _service("data_manager", "datamanager.v1.DataManagerService"),
    _service("discovery", "discovery.v1.DiscoveryService", "discovery:Discovery"),
    _service("generic", "generic.v1.GenericService", "generic:Generic"),
    _service("mlmodel", "mlmodel.v1.MLModelService", "mlmodel:MLModel", ours=True),
    _service("motion", "motion.v1.MotionService", "motion:Motion", ours=True),
    _service("navigation", "navigation.v1.NavigationService", "navigation:Navigation"),
    _service("shell", "shell.v1.ShellService", ours=True),
    _service("slam", "slam.v1.SLAMService", "slam:SLAM"),
    _service("video", "video.v1.VideoService"),
    _service("vision", "vision.v1.VisionService", "vision:Vision", ours=True),
    _service(
        "world_state_store",
        "worldstatestore.v1.WorldStateStoreService",
        "worldstatestore:WorldStateStore",
        ours=True,
    ),
)

PUBLIC_APIS: Mapping[Api, PublicApi] = MappingProxyType({each.api: each for each in _APIS})
SERVICE_BY_API: Mapping[Api, str] = MappingProxyType(
    {each.api: each.service for each in _APIS if each.service is not None}
)
"""The gRPC services, by API."""
API_BY_SERVICE: Mapping[str, Api] = MappingProxyType(
    {service: api for api, service in SERVICE_BY_API.items()}
)
