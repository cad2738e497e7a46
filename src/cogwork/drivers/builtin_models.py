"""The built-in models."""

from __future__ import annotations

from collections.abc import Mapping

from cogwork.core.clock import SystemClock
from cogwork.drivers.mlmodel.model_cache import ModelCache
from cogwork.graph.name import Api, ModelName
from cogwork.resource.machine_access import MachineAccess
from cogwork.resource.model import Extra, Model, lazy_constructor


def builtin_models(machine: MachineAccess | None = None, *, untrusted: bool = False) -> list[Model]:
    """Return every built-in model.

    `machine` gives services access to the machine they belong to. With `untrusted`, the author of
    the configuration must not be able to run programs on this computer.
    """
    shared = (machine or MachineAccess(),)
    shell = "RefusedShell" if untrusted else "BuiltinShell"
    model_cache = ModelCache(SystemClock())
    return [
        _model("component:arm", "fake", "FakeArmAttributes", "arm.fake:FakeArm"),
        _model("component:audio_in", "fake", "FakeAudioInAttributes", "audio_in.fake:FakeAudioIn"),
        _model(
            "component:audio_out", "fake", "FakeAudioOutAttributes", "audio_out.fake:FakeAudioOut"
        ),
        _model("component:base", "fake", "FakeBaseAttributes", "base.fake:FakeBase"),
        _model("component:base", "wheeled", "WheeledBaseAttributes", "base.wheeled:WheeledBase"),
        _model("component:board", "fake", "FakeBoardAttributes", "board.fake:FakeBoard"),
        _model(
            "component:board",
            "gpio",
            "GpioBoardAttributes",
            "board.gpio:GpioBoard",
            needs=Extra("gpio", ("gpiozero",)),
        ),
        _model("component:button", "fake", "FakeButtonAttributes", "button.fake:FakeButton"),
        _model("component:button", "gpio", "GpioButtonAttributes", "button.gpio:GpioButton"),
        _camera_model("fake", "FakeCameraAttributes", "fake:FakeCamera"),
        _camera_model("ffmpeg", "FfmpegAttributes", "ffmpeg:FfmpegCamera", "cv2", "av"),
        _camera_model("image_file", "ImageFileAttributes", "image_file:ImageFileCamera"),
        _camera_model("transform", "TransformAttributes", "transform:TransformCamera"),
        _camera_model("webcam", "WebcamAttributes", "webcam:WebcamCamera"),
        _model("component:encoder", "fake", "FakeEncoderAttributes", "encoder.fake:FakeEncoder"),
        _model(
            "component:encoder",
            "incremental",
            "IncrementalEncoderAttributes",
            "encoder.gpio_incremental:IncrementalEncoder",
        ),
        _model(
            "component:encoder",
            "single",
            "SingleEncoderAttributes",
            "encoder.gpio_single:SingleEncoder",
        ),
        _model("component:gantry", "fake", "FakeGantryAttributes", "gantry.fake:FakeGantry"),
        _model("component:generic", "fake", "FakeGenericAttributes", "generic.fake:FakeGeneric"),
        _model("component:gripper", "fake", "FakeGripperAttributes", "gripper.fake:FakeGripper"),
        _model(
            "component:input_controller",
            "fake",
            "FakeInputControllerAttributes",
            "input_controller.fake:FakeInputController",
        ),
        _model(
            "component:input_controller",
            "gamepad",
            "GamepadAttributes",
            "input_controller.gamepad:Gamepad",
            needs=Extra("gamepad", ("evdev",)),
        ),
        _model("component:motor", "fake", "FakeMotorAttributes", "motor.fake:FakeMotor"),
        _model("component:motor", "gpio", "GpioMotorAttributes", "motor.gpio:GpioMotor"),
        _model(
            "component:movement_sensor",
            "fake",
            "FakeMovementSensorAttributes",
            "movement_sensor.fake:FakeMovementSensor",
        ),
        _model(
            "component:movement_sensor",
            "wheeled-odometry",
            "WheeledOdometryAttributes",
            "movement_sensor.wheeled_odometry:WheeledOdometry",
        ),
        _model(
            "component:pose_tracker",
            "fake",
            "FakePoseTrackerAttributes",
            "pose_tracker.fake:FakePoseTracker",
        ),
        _model(
            "component:power_sensor",
            "fake",
            "FakePowerSensorAttributes",
            "power_sensor.fake:FakePowerSensor",
        ),
        _model(
            "component:sensor",
            "fake",
            "FakeSensorAttributes",
            "sensor.fake:FakeSensor",
            reconfigures=True,
        ),
        _model(
            "component:sensor",
            "serial",
            "SerialSensorAttributes",
            "sensor.serial:SerialSensor",
            needs=Extra("serial", ("serial",)),
        ),
        _model(
            "component:sensor", "system", "SystemSensorAttributes", "sensor.system:SystemSensor"
        ),
        _model("component:servo", "fake", "FakeServoAttributes", "servo.fake:FakeServo"),
        _model("component:servo", "gpio", "GpioServoAttributes", "servo.gpio:GpioServo"),
        _model("component:switch", "fake", "FakeSwitchAttributes", "switch.fake:FakeSwitch"),
        _model("component:switch", "gpio", "GpioSwitchAttributes", "switch.gpio:GpioSwitch"),
        _model(
            "service:discovery", "fake", "FakeDiscoveryAttributes", "discovery.fake:FakeDiscovery"
        ),
        _model(
            "service:discovery",
            "system",
            "SystemDiscoveryAttributes",
            "discovery.system:SystemDiscovery",
        ),
        _model(
            "service:generic", "fake", "FakeGenericAttributes", "generic.fake:FakeGenericService"
        ),
        _ml_model(
            "onnx",
            "OnnxAttributes",
            "onnx:OnnxModel",
            "onnxruntime",
            model_cache,
            # ONNX Runtime otherwise sends telemetry to its vendor.
            {"ORT_DISABLE_TELEMETRY": "1"},
        ),
        _ml_model(
            "openvino", "OpenvinoAttributes", "openvino:OpenvinoModel", "openvino", model_cache
        ),
        _ml_model(
            "tensorflow",
            "TensorflowAttributes",
            "tensorflow:TensorflowModel",
            "tensorflow",
            model_cache,
            {"TF_CPP_MIN_LOG_LEVEL": "3", "KERAS_BACKEND": "tensorflow"},
        ),
        _ml_model(
            "tflite", "TfliteAttributes", "tflite:TfliteModel", "ai_edge_litert", model_cache
        ),
        _ml_model(
            "torch",
            "TorchAttributes",
            "torch:TorchModel",
            "torch",
            model_cache,
            # Its threads otherwise spin between runs and take processor time from everything else.
            {"OMP_WAIT_POLICY": "PASSIVE"},
        ),
        _motion_model("builtin", shared),
        _motion_model("fake", shared),
        _model(
            "service:navigation",
            "builtin",
            "BuiltinNavigationAttributes",
            "navigation.builtin:BuiltinNavigation",
            shared=shared,
        ),
        _model(
            "service:navigation",
            "fake",
            "FakeNavigationAttributes",
            "navigation.fake:FakeNavigation",
        ),
        _model("service:shell", "builtin", "BuiltinShellAttributes", f"shell.builtin:{shell}"),
        _model("service:slam", "fake", "FakeSlamAttributes", "slam.fake:FakeSlam"),
        _vision_model("color_detector", "ColorDetectorAttributes", "color_detector:ColorDetector"),
        _vision_model("fake", "FakeVisionAttributes", "fake:FakeVision"),
        _vision_model("mlmodel", "MlmodelVisionAttributes", "mlmodel:MlmodelVision"),
        _model(
            "service:world_state_store",
            "fake",
            "FakeWorldStateStoreAttributes",
            "world_state_store.fake:FakeWorldStateStore",
        ),
    ]


def _camera_model(name: str, attributes: str, driver: str, *libraries: str) -> Model:
    needs = Extra("camera", libraries or ("cv2",))
    return _model("component:camera", name, attributes, f"camera.{driver}", needs=needs)


def _ml_model(
    extra: str,
    attributes: str,
    driver: str,
    library: str,
    model_cache: ModelCache,
    environment: Mapping[str, str] | None = None,
) -> Model:
    """`environment` holds variables that the library reads when it is imported."""
    return _model(
        "service:mlmodel",
        f"{extra}_cpu",
        attributes,
        f"mlmodel.{driver}",
        needs=Extra(extra, (library,), environment or {}),
        shared=(model_cache,),
    )


def _motion_model(name: str, shared: tuple[object, ...]) -> Model:
    """Return the motion service; `builtin` and `fake` are the same, as neither plans motions."""
    driver = "motion.builtin:BuiltinMotion"
    return _model("service:motion", name, "BuiltinMotionAttributes", driver, shared=shared)


def _vision_model(name: str, attributes: str, driver: str) -> Model:
    needs = Extra("camera", ("cv2",))
    return _model("service:vision", name, attributes, f"vision.{driver}", needs=needs)


def _model(
    api: str,
    name: str,
    attributes: str,
    driver: str,
    *,
    reconfigures: bool = False,
    needs: Extra | None = None,
    shared: tuple[object, ...] = (),
) -> Model:
    """Return a model without importing its driver; `attributes` is a class of the same package."""
    package = f"cogwork.drivers.{driver.partition('.')[0]}"
    return Model(
        Api.parse(f"rdk:{api}"),
        ModelName.parse(name),
        f"{package}.attributes:{attributes}",
        lazy_constructor(f"cogwork.drivers.{driver}", needs, shared),
        reconfigures,
    )
