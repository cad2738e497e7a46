"""The built-in models of viam-server that do not exist here, and modules that are not needed."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from cogwork.config.schema.existing_product.difference import MissingModel

_WITH_MODULE = "get it from a module, or write a driver"
_KINEMATICS = (
    'use the model "fake" with "kinematics_file", or a module that drives the arm and knows its '
    "kinematics"
)

MISSING_MODELS: tuple[MissingModel, ...] = (
    MissingModel(
        "component", "arm", "simulated", "only the fake arm moves without hardware", _KINEMATICS
    ),
    MissingModel(
        "component",
        "arm",
        "wrapper_arm",
        "an arm cannot be wrapped with other kinematics",
        _KINEMATICS,
    ),
    MissingModel(
        "component",
        "base",
        "sensor-controlled",
        "a base is not controlled by a movement sensor",
        'use the model "wheeled"; the navigation service corrects its course with the sensor',
    ),
    MissingModel(
        "component",
        "board",
        "esp32",
        "this server does not run on a microcontroller",
        "keep the server of the microcontroller, and add it as a remote",
    ),
    MissingModel(
        "component",
        "board",
        "pi",
        "boards of the Raspberry Pi are one model here",
        'use the model "gpio", or a module that drives the board',
    ),
    MissingModel(
        "component",
        "camera",
        "replay_pcd",
        "this release does not store captured data that could be replayed",
        'use the model "image_file", which shows a saved point cloud',
    ),
    MissingModel(
        "component",
        "input_controller",
        "gpio",
        "buttons and dials on pins are not an input controller here",
        "read the pins from the board, or write a driver",
    ),
    MissingModel(
        "component",
        "input_controller",
        "mux",
        "controllers are not combined",
        "let the program read each controller",
    ),
    MissingModel(
        "component",
        "input_controller",
        "webgamepad",
        "the control page does not pass on the gamepad of the browser",
        'connect the gamepad to the machine, and use the model "gamepad"; or drive from the '
        "control page",
    ),
    MissingModel(
        "component", "motor", "gpiostepper", "steppers are not driven by this release", _WITH_MODULE
    ),
    MissingModel(
        "component",
        "movement_sensor",
        "merged",
        "readings of several sensors are not merged",
        "name the sensor that has the reading wherever this one is used, or write a driver that "
        "merges them",
    ),
    MissingModel(
        "component",
        "movement_sensor",
        "replay",
        "this release does not store captured data that could be replayed",
        'use the model "fake"',
    ),
    MissingModel(
        "service",
        "base_remote_control",
        "builtin",
        "a gamepad does not drive a base by itself",
        "drive the base from the control page, or let a program read the gamepad and drive",
        is_idle=True,
    ),
    MissingModel(
        "service",
        "data_manager",
        "builtin",
        "this release does not capture data",
        "let a program call the machine and store what it needs",
        is_idle=True,
    ),
    MissingModel(
        "service",
        "video",
        "fake",
        "this release does not serve stored video",
        "watch the camera in the control page, or over WebRTC",
        is_idle=True,
    ),
)

BUILTIN_INSTEAD: Mapping[str, str] = MappingProxyType(
    {
        "viam:tflite_cpu": "tflite_cpu",
        "viam:onnx-cpu": "onnx_cpu",
        "viam:tensorflow-cpu": "tensorflow_cpu",
        "viam:torch-cpu": "torch_cpu",
        "viam:raspberry-pi": "gpio",
    }
)
"""For modules of the public registry: the built-in model that does the same here."""
