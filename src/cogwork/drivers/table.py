"""The models that come with Cogwork."""

from __future__ import annotations

from collections.abc import Mapping

from cogwork.config.fields import Attributes
from cogwork.core.clock import SystemClock
from cogwork.drivers.board.attributes import FakeBoardAttributes
from cogwork.drivers.camera.attributes import (
    FakeCameraAttributes,
    FfmpegAttributes,
    ImageFileAttributes,
    TransformAttributes,
    WebcamAttributes,
)
from cogwork.drivers.generic.attributes import FakeGenericAttributes
from cogwork.drivers.mlmodel.attributes import (
    OnnxAttributes,
    OpenvinoAttributes,
    TensorflowAttributes,
    TfliteAttributes,
    TorchAttributes,
)
from cogwork.drivers.mlmodel.loaded import LoadedModels
from cogwork.drivers.motor.attributes import FakeMotorAttributes
from cogwork.drivers.sensor.attributes import FakeSensorAttributes, SystemSensorAttributes
from cogwork.drivers.switch.attributes import FakeSwitchAttributes
from cogwork.drivers.vision.attributes import (
    ColorDetectorAttributes,
    FakeVisionAttributes,
    MlmodelVisionAttributes,
)
from cogwork.graph.name import Api, ModelName
from cogwork.resource.model import Extra, Model, imported_when_built


def builtin_models() -> list[Model]:
    loaded = LoadedModels(SystemClock())
    return [
        _model("component:board", "fake", FakeBoardAttributes, "board.fake:FakeBoard"),
        _camera("fake", FakeCameraAttributes, "fake:FakeCamera"),
        _camera("ffmpeg", FfmpegAttributes, "ffmpeg:FfmpegCamera", "cv2", "av"),
        _camera("image_file", ImageFileAttributes, "image_file:ImageFileCamera"),
        _camera("transform", TransformAttributes, "transform:TransformCamera"),
        _camera("webcam", WebcamAttributes, "webcam:WebcamCamera"),
        _model("component:generic", "fake", FakeGenericAttributes, "generic.fake:FakeGeneric"),
        _model("component:motor", "fake", FakeMotorAttributes, "motor.fake:FakeMotor"),
        _model(
            "component:sensor",
            "fake",
            FakeSensorAttributes,
            "sensor.fake:FakeSensor",
            reconfigures=True,
        ),
        _model("component:sensor", "system", SystemSensorAttributes, "sensor.system:SystemSensor"),
        _model("component:switch", "fake", FakeSwitchAttributes, "switch.fake:FakeSwitch"),
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
        _vision("color_detector", ColorDetectorAttributes, "color_detector:ColorDetector"),
        _vision("fake", FakeVisionAttributes, "fake:FakeVision"),
        _vision("mlmodel", MlmodelVisionAttributes, "mlmodel:MlmodelVision"),
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
