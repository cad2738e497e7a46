"""Resources in another process, as those in this one hold them: the SDK's client of each API."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import grpc.aio

from cogwork.graph.name import BUILTIN_NAMESPACE, Api
from cogwork.resource.model import Extra, MissingExtra
from cogwork.wire.channel import SdkChannel

_COMPONENTS = {
    "arm": "arm.client:ArmClient",
    "audio_in": "audio_in.client:AudioInClient",
    "audio_out": "audio_out.client:AudioOutClient",
    "base": "base.client:BaseClient",
    "board": "board.client:BoardClient",
    "button": "button.client:ButtonClient",
    "camera": "camera.client:CameraClient",
    "encoder": "encoder.client:EncoderClient",
    "gantry": "gantry.client:GantryClient",
    "generic": "generic.client:GenericClient",
    "gripper": "gripper.client:GripperClient",
    "input_controller": "input.client:ControllerClient",
    "motor": "motor.client:MotorClient",
    "movement_sensor": "movement_sensor.client:MovementSensorClient",
    "pose_tracker": "pose_tracker.client:PoseTrackerClient",
    "power_sensor": "power_sensor.client:PowerSensorClient",
    "sensor": "sensor.client:SensorClient",
    "servo": "servo.client:ServoClient",
    "switch": "switch.client:SwitchClient",
}
_SERVICES = {
    "discovery": "discovery.client:DiscoveryClient",
    "generic": "generic.client:GenericClient",
    "motion": "motion.client:MotionClient",
    "navigation": "navigation.client:NavigationClient",
    "slam": "slam.client:SLAMClient",
    "vision": "vision.client:VisionClient",
    "world_state_store": "worldstatestore.client:WorldStateStoreClient",
}
_MLMODEL = Api(BUILTIN_NAMESPACE, "service", "mlmodel")
_NUMPY = Extra("onnx", ("numpy",))

Trouble = Callable[[], str | None]
"""What is wrong with the process that a resource lives in, if anything is."""


class Elsewhere:
    """A resource in another process, beside the methods of its API: its calls are carried on as
    they come."""

    carrier: grpc.aio.Channel
    _trouble: Trouble

    @property
    def trouble(self) -> str | None:
        return self._trouble()


class Unknown(Elsewhere):
    """Of an API that is known only to whoever brings it: nobody here can call it."""

    def __init__(self, name: str) -> None:
        self.name = name


async def resource_elsewhere(
    api: Api, name: str, carrier: grpc.aio.Channel, trouble: Trouble
) -> Elsewhere:
    resource = await _client(api, name, carrier)
    resource.carrier = carrier
    resource._trouble = trouble  # noqa: SLF001 - made here
    found: Elsewhere = resource
    return found


async def _client(api: Api, name: str, carrier: grpc.aio.Channel) -> Any:
    if api == _MLMODEL:
        return await _model(name, carrier)
    path = _path(api)
    if path is None:
        return Unknown(name)
    module, _, kind = path.partition(":")
    return _mixed(getattr(importlib.import_module(module), kind))(name, SdkChannel(carrier))


async def _model(name: str, carrier: grpc.aio.Channel) -> Any:
    try:
        await _NUMPY.load()
    except MissingExtra:
        # Its calls are carried on all the same; who would use it here needs NumPy, too.
        return Unknown(name)
    from cogwork.resource.mlmodel_client import FastMLModelClient

    return _mixed(FastMLModelClient)(name, SdkChannel(carrier), carrier)


@functools.cache
def _mixed(client: type[Any]) -> type[Any]:
    return type(f"{client.__name__}Elsewhere", (Elsewhere, client), {})


def _path(api: Api) -> str | None:
    if api.namespace != BUILTIN_NAMESPACE:
        return None
    known, package = (
        (_COMPONENTS, "components") if api.kind == "component" else (_SERVICES, "services")
    )
    return f"viam.{package}.{known[api.subtype]}" if api.subtype in known else None
