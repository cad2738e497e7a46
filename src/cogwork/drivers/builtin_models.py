"""The built-in models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cogwork.core.clock import SystemClock
from cogwork.drivers.mlmodel.model_cache import ModelCache
from cogwork.graph.name import Api, ModelName
from cogwork.resource.machine_access import MachineAccess
from cogwork.resource.model import Extra, Model, lazy_constructor


@dataclass(frozen=True, slots=True)
class _Entry:
    """A model. Its classes are in the package that is named after the API."""

    name: str
    attributes: str
    """The name of a class in `attributes.py`."""
    driver: str
    """The driver, as `module:Class`."""
    needs: Extra | None = None
    shared: type[MachineAccess | ModelCache] | None = None
    """The type of the object that all resources of the model share."""
    reconfigures: bool = False
    untrusted_driver: str | None = None
    """The driver for untrusted configurations, whose authors must not be able to run programs."""


def _engine(
    extra: str,
    attributes: str,
    driver: str,
    library: str,
    environment: Mapping[str, str] | None = None,
) -> _Entry:
    """Return the entry of an ML model. `environment` contains environment variables to set before
    the library is imported."""
    needs = Extra(extra, (library,), environment or {})
    return _Entry(f"{extra}_cpu", attributes, driver, needs, ModelCache)


_OPENCV: Final = Extra("camera", ("cv2",))
_FFMPEG: Final = Extra("camera", ("cv2", "av"))
_MOTION: Final = ("BuiltinMotionAttributes", "builtin:BuiltinMotion", None, MachineAccess)

_ENTRIES: Final[Mapping[str, Sequence[_Entry]]] = {
    "component:arm": [_Entry("fake", "FakeArmAttributes", "fake:FakeArm")],
    "component:audio_in": [_Entry("fake", "FakeAudioInAttributes", "fake:FakeAudioIn")],
    "component:audio_out": [_Entry("fake", "FakeAudioOutAttributes", "fake:FakeAudioOut")],
    "component:base": [
        _Entry("fake", "FakeBaseAttributes", "fake:FakeBase"),
        _Entry("wheeled", "WheeledBaseAttributes", "wheeled:WheeledBase"),
    ],
    "component:board": [
        _Entry("fake", "FakeBoardAttributes", "fake:FakeBoard"),
        _Entry("gpio", "GpioBoardAttributes", "gpio:GpioBoard", Extra("gpio", ("gpiozero",))),
    ],
    "component:button": [
        _Entry("fake", "FakeButtonAttributes", "fake:FakeButton"),
        _Entry("gpio", "GpioButtonAttributes", "gpio:GpioButton"),
    ],
    "component:camera": [
        _Entry("fake", "FakeCameraAttributes", "fake:FakeCamera", _OPENCV),
        _Entry("ffmpeg", "FfmpegAttributes", "ffmpeg:FfmpegCamera", _FFMPEG),
        _Entry("image_file", "ImageFileAttributes", "image_file:ImageFileCamera", _OPENCV),
        _Entry("transform", "TransformAttributes", "transform:TransformCamera", _OPENCV),
        _Entry("webcam", "WebcamAttributes", "webcam:WebcamCamera", _OPENCV),
    ],
    "component:encoder": [
        _Entry("fake", "FakeEncoderAttributes", "fake:FakeEncoder"),
        _Entry(
            "incremental", "IncrementalEncoderAttributes", "gpio_incremental:IncrementalEncoder"
        ),
        _Entry("single", "SingleEncoderAttributes", "gpio_single:SingleEncoder"),
    ],
    "component:gantry": [_Entry("fake", "FakeGantryAttributes", "fake:FakeGantry")],
    "component:generic": [_Entry("fake", "FakeGenericAttributes", "fake:FakeGeneric")],
    "component:gripper": [_Entry("fake", "FakeGripperAttributes", "fake:FakeGripper")],
    "component:input_controller": [
        _Entry("fake", "FakeInputControllerAttributes", "fake:FakeInputController"),
        _Entry("gamepad", "GamepadAttributes", "gamepad:Gamepad", Extra("gamepad", ("evdev",))),
    ],
    "component:motor": [
        _Entry("fake", "FakeMotorAttributes", "fake:FakeMotor"),
        _Entry("gpio", "GpioMotorAttributes", "gpio:GpioMotor"),
    ],
    "component:movement_sensor": [
        _Entry("fake", "FakeMovementSensorAttributes", "fake:FakeMovementSensor"),
        _Entry("wheeled-odometry", "WheeledOdometryAttributes", "wheeled_odometry:WheeledOdometry"),
    ],
    "component:pose_tracker": [_Entry("fake", "FakePoseTrackerAttributes", "fake:FakePoseTracker")],
    "component:power_sensor": [_Entry("fake", "FakePowerSensorAttributes", "fake:FakePowerSensor")],
    "component:sensor": [
        _Entry("fake", "FakeSensorAttributes", "fake:FakeSensor", reconfigures=True),
        _Entry(
            "serial", "SerialSensorAttributes", "serial:SerialSensor", Extra("serial", ("serial",))
        ),
        _Entry("system", "SystemSensorAttributes", "system:SystemSensor"),
    ],
    "component:servo": [
        _Entry("fake", "FakeServoAttributes", "fake:FakeServo"),
        _Entry("gpio", "GpioServoAttributes", "gpio:GpioServo"),
    ],
    "component:switch": [
        _Entry("fake", "FakeSwitchAttributes", "fake:FakeSwitch"),
        _Entry("gpio", "GpioSwitchAttributes", "gpio:GpioSwitch"),
    ],
    "service:discovery": [
        _Entry("fake", "FakeDiscoveryAttributes", "fake:FakeDiscovery"),
        _Entry("system", "SystemDiscoveryAttributes", "system:SystemDiscovery"),
    ],
    "service:generic": [_Entry("fake", "FakeGenericAttributes", "fake:FakeGenericService")],
    "service:mlmodel": [
        # By default, ONNX Runtime sends telemetry to its vendor.
        _engine(
            "onnx",
            "OnnxAttributes",
            "onnx:OnnxModel",
            "onnxruntime",
            {"ORT_DISABLE_TELEMETRY": "1"},
        ),
        _engine("openvino", "OpenvinoAttributes", "openvino:OpenvinoModel", "openvino"),
        _engine(
            "tensorflow",
            "TensorflowAttributes",
            "tensorflow:TensorflowModel",
            "tensorflow",
            {"TF_CPP_MIN_LOG_LEVEL": "3", "KERAS_BACKEND": "tensorflow"},
        ),
        _engine("tflite", "TfliteAttributes", "tflite:TfliteModel", "ai_edge_litert"),
        # By default, PyTorch's threads spin between runs, which slows everything else.
        _engine(
            "torch", "TorchAttributes", "torch:TorchModel", "torch", {"OMP_WAIT_POLICY": "PASSIVE"}
        ),
    ],
    # `builtin` and `fake` are the same: the built-in motion service does not plan motions either.
    "service:motion": [_Entry("builtin", *_MOTION), _Entry("fake", *_MOTION)],
    "service:navigation": [
        _Entry(
            "builtin",
            "BuiltinNavigationAttributes",
            "builtin:BuiltinNavigation",
            shared=MachineAccess,
        ),
        _Entry("fake", "FakeNavigationAttributes", "fake:FakeNavigation"),
    ],
    "service:shell": [
        _Entry(
            "builtin",
            "BuiltinShellAttributes",
            "builtin:BuiltinShell",
            untrusted_driver="builtin:RefusedShell",
        ),
    ],
    "service:slam": [_Entry("fake", "FakeSlamAttributes", "fake:FakeSlam")],
    "service:vision": [
        _Entry(
            "color_detector", "ColorDetectorAttributes", "color_detector:ColorDetector", _OPENCV
        ),
        _Entry("fake", "FakeVisionAttributes", "fake:FakeVision", _OPENCV),
        _Entry("mlmodel", "MlmodelVisionAttributes", "mlmodel:MlmodelVision", _OPENCV),
    ],
    "service:world_state_store": [
        _Entry("fake", "FakeWorldStateStoreAttributes", "fake:FakeWorldStateStore")
    ],
}


def builtin_models(machine: MachineAccess | None = None, *, untrusted: bool = False) -> list[Model]:
    """Return every built-in model, without importing its driver.

    `machine` gives services access to the machine they belong to. Set `untrusted` if the author of
    the configuration must not be able to run programs on this computer.
    """
    shared: dict[type[object], object] = {
        MachineAccess: machine or MachineAccess(),
        ModelCache: ModelCache(SystemClock()),
    }

    return [
        _make_model(Api.parse(f"rdk:{api}"), entry, shared, untrusted=untrusted)
        for api, entries in _ENTRIES.items()
        for entry in entries
    ]


def _make_model(
    api: Api, entry: _Entry, shared: Mapping[type[object], object], *, untrusted: bool
) -> Model:
    package = f"cogwork.drivers.{api.subtype}"
    driver = entry.driver
    if untrusted and entry.untrusted_driver is not None:
        driver = entry.untrusted_driver
    objects = (shared[entry.shared],) if entry.shared is not None else ()
    return Model(
        api,
        ModelName.parse(entry.name),
        f"{package}.attributes:{entry.attributes}",
        lazy_constructor(f"{package}.{driver}", entry.needs, objects),
        entry.reconfigures,
        entry.needs,
    )
