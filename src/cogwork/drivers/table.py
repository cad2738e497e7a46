"""The models that come with Cogwork."""

from __future__ import annotations

from collections.abc import Mapping

from cogwork.config.fields import Attributes
from cogwork.core.clock import SystemClock
from cogwork.drivers.arm.attributes import FakeArmAttributes
from cogwork.drivers.audio_in.attributes import FakeAudioInAttributes
from cogwork.drivers.audio_out.attributes import FakeAudioOutAttributes
from cogwork.drivers.base.attributes import FakeBaseAttributes, WheeledBaseAttributes
from cogwork.drivers.board.attributes import FakeBoardAttributes, GpioBoardAttributes
from cogwork.drivers.button.attributes import FakeButtonAttributes
from cogwork.drivers.button.gpio_attributes import GpioButtonAttributes
from cogwork.drivers.camera.attributes import (
    FakeCameraAttributes,
    FfmpegAttributes,
    ImageFileAttributes,
    TransformAttributes,
    WebcamAttributes,
)
from cogwork.drivers.discovery.attributes import (
    FakeDiscoveryAttributes,
    SystemDiscoveryAttributes,
)
from cogwork.drivers.encoder.attributes import FakeEncoderAttributes
from cogwork.drivers.encoder.gpio_attributes import (
    IncrementalEncoderAttributes,
    SingleEncoderAttributes,
)
from cogwork.drivers.gantry.attributes import FakeGantryAttributes
from cogwork.drivers.generic.attributes import FakeGenericAttributes
from cogwork.drivers.gripper.attributes import FakeGripperAttributes
from cogwork.drivers.input_controller.attributes import FakeInputControllerAttributes
from cogwork.drivers.input_controller.gamepad_attributes import GamepadAttributes
from cogwork.drivers.mlmodel.attributes import (
    OnnxAttributes,
    OpenvinoAttributes,
    TensorflowAttributes,
    TfliteAttributes,
    TorchAttributes,
)
from cogwork.drivers.mlmodel.loaded import LoadedModels
from cogwork.drivers.motion.attributes import BuiltinMotionAttributes
from cogwork.drivers.motor.attributes import FakeMotorAttributes, GpioMotorAttributes
from cogwork.drivers.movement_sensor.attributes import (
    FakeMovementSensorAttributes,
    WheeledOdometryAttributes,
)
from cogwork.drivers.navigation.attributes import FakeNavigationAttributes
from cogwork.drivers.pose_tracker.attributes import FakePoseTrackerAttributes
from cogwork.drivers.power_sensor.attributes import FakePowerSensorAttributes
from cogwork.drivers.sensor.attributes import (
    FakeSensorAttributes,
    SerialSensorAttributes,
    SystemSensorAttributes,
)
from cogwork.drivers.servo.attributes import FakeServoAttributes
from cogwork.drivers.servo.gpio_attributes import GpioServoAttributes
from cogwork.drivers.shell.attributes import BuiltinShellAttributes
from cogwork.drivers.slam.attributes import FakeSlamAttributes
from cogwork.drivers.switch.attributes import FakeSwitchAttributes, GpioSwitchAttributes
from cogwork.drivers.vision.attributes import (
    ColorDetectorAttributes,
    FakeVisionAttributes,
    MlmodelVisionAttributes,
)
from cogwork.drivers.world_state_store.attributes import FakeWorldStateStoreAttributes
from cogwork.graph.name import Api, ModelName
from cogwork.resource.model import Extra, Model, imported_when_built
from cogwork.resource.neighbours import Neighbours


def builtin_models(neighbours: Neighbours | None = None, *, untrusted: bool = False) -> list[Model]:
    """`neighbours`: what services may use of the machine that they belong to. `untrusted`: whoever
    configures the machine may not run programs of theirs on this computer."""
    around = (neighbours or Neighbours(),)
    shell = "RefusedShell" if untrusted else "BuiltinShell"
    loaded = LoadedModels(SystemClock())
    return [
        _model("component:arm", "fake", FakeArmAttributes, "arm.fake:FakeArm"),
        _model("component:audio_in", "fake", FakeAudioInAttributes, "audio_in.fake:FakeAudioIn"),
        _model(
            "component:audio_out", "fake", FakeAudioOutAttributes, "audio_out.fake:FakeAudioOut"
        ),
        _model("component:base", "fake", FakeBaseAttributes, "base.fake:FakeBase"),
        _model("component:base", "wheeled", WheeledBaseAttributes, "base.wheeled:WheeledBase"),
        _model("component:board", "fake", FakeBoardAttributes, "board.fake:FakeBoard"),
        _model(
            "component:board",
            "gpio",
            GpioBoardAttributes,
            "board.gpio:GpioBoard",
            needs=Extra("gpio", ("gpiozero",)),
        ),
        _model("component:button", "fake", FakeButtonAttributes, "button.fake:FakeButton"),
        _model("component:button", "gpio", GpioButtonAttributes, "button.gpio:GpioButton"),
        _camera("fake", FakeCameraAttributes, "fake:FakeCamera"),
        _camera("ffmpeg", FfmpegAttributes, "ffmpeg:FfmpegCamera", "cv2", "av"),
        _camera("image_file", ImageFileAttributes, "image_file:ImageFileCamera"),
        _camera("transform", TransformAttributes, "transform:TransformCamera"),
        _camera("webcam", WebcamAttributes, "webcam:WebcamCamera"),
        _model("component:encoder", "fake", FakeEncoderAttributes, "encoder.fake:FakeEncoder"),
        _model(
            "component:encoder",
            "incremental",
            IncrementalEncoderAttributes,
            "encoder.gpio_incremental:IncrementalEncoder",
        ),
        _model(
            "component:encoder",
            "single",
            SingleEncoderAttributes,
            "encoder.gpio_single:SingleEncoder",
        ),
        _model("component:gantry", "fake", FakeGantryAttributes, "gantry.fake:FakeGantry"),
        _model("component:generic", "fake", FakeGenericAttributes, "generic.fake:FakeGeneric"),
        _model("component:gripper", "fake", FakeGripperAttributes, "gripper.fake:FakeGripper"),
        _model(
            "component:input_controller",
            "fake",
            FakeInputControllerAttributes,
            "input_controller.fake:FakeInputController",
        ),
        _model(
            "component:input_controller",
            "gamepad",
            GamepadAttributes,
            "input_controller.gamepad:Gamepad",
            needs=Extra("gamepad", ("evdev",)),
        ),
        _model("component:motor", "fake", FakeMotorAttributes, "motor.fake:FakeMotor"),
        _model("component:motor", "gpio", GpioMotorAttributes, "motor.gpio:GpioMotor"),
        _model(
            "component:movement_sensor",
            "fake",
            FakeMovementSensorAttributes,
            "movement_sensor.fake:FakeMovementSensor",
        ),
        _model(
            "component:movement_sensor",
            "wheeled-odometry",
            WheeledOdometryAttributes,
            "movement_sensor.wheeled_odometry:WheeledOdometry",
        ),
        _model(
            "component:pose_tracker",
            "fake",
            FakePoseTrackerAttributes,
            "pose_tracker.fake:FakePoseTracker",
        ),
        _model(
            "component:power_sensor",
            "fake",
            FakePowerSensorAttributes,
            "power_sensor.fake:FakePowerSensor",
        ),
        _model(
            "component:sensor",
            "fake",
            FakeSensorAttributes,
            "sensor.fake:FakeSensor",
            reconfigures=True,
        ),
        _model(
            "component:sensor",
            "serial",
            SerialSensorAttributes,
            "sensor.serial:SerialSensor",
            needs=Extra("serial", ("serial",)),
        ),
        _model("component:sensor", "system", SystemSensorAttributes, "sensor.system:SystemSensor"),
        _model("component:servo", "fake", FakeServoAttributes, "servo.fake:FakeServo"),
        _model("component:servo", "gpio", GpioServoAttributes, "servo.gpio:GpioServo"),
        _model("component:switch", "fake", FakeSwitchAttributes, "switch.fake:FakeSwitch"),
        _model("component:switch", "gpio", GpioSwitchAttributes, "switch.gpio:GpioSwitch"),
        _model(
            "service:discovery", "fake", FakeDiscoveryAttributes, "discovery.fake:FakeDiscovery"
        ),
        _model(
            "service:discovery",
            "system",
            SystemDiscoveryAttributes,
            "discovery.system:SystemDiscovery",
        ),
        _model("service:generic", "fake", FakeGenericAttributes, "generic.fake:FakeGenericService"),
        _engine(
            "onnx",
            OnnxAttributes,
            "onnx:OnnxModel",
            "onnxruntime",
            loaded,
            # It would report what it does to its makers.
            {"ORT_DISABLE_TELEMETRY": "1"},
        ),
        _engine("openvino", OpenvinoAttributes, "openvino:OpenvinoModel", "openvino", loaded),
        _engine(
            "tensorflow",
            TensorflowAttributes,
            "tensorflow:TensorflowModel",
            "tensorflow",
            loaded,
            {"TF_CPP_MIN_LOG_LEVEL": "3", "KERAS_BACKEND": "tensorflow"},
        ),
        _engine("tflite", TfliteAttributes, "tflite:TfliteModel", "ai_edge_litert", loaded),
        _engine(
            "torch",
            TorchAttributes,
            "torch:TorchModel",
            "torch",
            loaded,
            # Its threads would spin between runs, and take the processor from everybody.
            {"OMP_WAIT_POLICY": "PASSIVE"},
        ),
        _motion("builtin", around),
        _motion("fake", around),
        _model(
            "service:navigation",
            "fake",
            FakeNavigationAttributes,
            "navigation.fake:FakeNavigation",
        ),
        _model("service:shell", "builtin", BuiltinShellAttributes, f"shell.builtin:{shell}"),
        _model("service:slam", "fake", FakeSlamAttributes, "slam.fake:FakeSlam"),
        _vision("color_detector", ColorDetectorAttributes, "color_detector:ColorDetector"),
        _vision("fake", FakeVisionAttributes, "fake:FakeVision"),
        _vision("mlmodel", MlmodelVisionAttributes, "mlmodel:MlmodelVision"),
        _model(
            "service:world_state_store",
            "fake",
            FakeWorldStateStoreAttributes,
            "world_state_store.fake:FakeWorldStateStore",
        ),
    ]


def _camera(name: str, attributes: type[Attributes], driver: str, *libraries: str) -> Model:
    needs = Extra("camera", libraries or ("cv2",))
    return _model("component:camera", name, attributes, f"camera.{driver}", needs=needs)


def _engine(
    extra: str,
    attributes: type[Attributes],
    driver: str,
    library: str,
    loaded: LoadedModels,
    environment: Mapping[str, str] | None = None,
) -> Model:
    """`environment`: what the library reads when it is imported."""
    return _model(
        "service:mlmodel",
        f"{extra}_cpu",
        attributes,
        f"mlmodel.{driver}",
        needs=Extra(extra, (library,), environment or {}),
        shared=(loaded,),
    )


def _motion(name: str, around: tuple[object, ...]) -> Model:
    """Nobody planned the motions of the fake one either: it is the same."""
    driver = "motion.builtin:BuiltinMotion"
    return _model("service:motion", name, BuiltinMotionAttributes, driver, shared=around)


def _vision(name: str, attributes: type[Attributes], driver: str) -> Model:
    needs = Extra("camera", ("cv2",))
    return _model("service:vision", name, attributes, f"vision.{driver}", needs=needs)


def _model(
    api: str,
    name: str,
    attributes: type[Attributes],
    driver: str,
    *,
    reconfigures: bool = False,
    needs: Extra | None = None,
    shared: tuple[object, ...] = (),
) -> Model:
    return Model(
        Api.parse(f"rdk:{api}"),
        ModelName.parse(name),
        attributes,
        imported_when_built(f"cogwork.drivers.{driver}", needs, shared),
        reconfigures,
    )
