"""The APIs of the built-in namespace. Custom APIs use namespaces of their own."""

from __future__ import annotations

from cogwork.graph.name import BUILTIN_NAMESPACE, Api

_COMPONENTS = (
    "arm audio_in audio_out base board button camera encoder gantry generic gripper "
    "input_controller motor movement_sensor pose_tracker power_sensor sensor servo switch"
)
_SERVICES = (
    "base_remote_control data_manager discovery generic mlmodel motion navigation shell slam "
    "video vision world_state_store"
)

PUBLIC_APIS: tuple[Api, ...] = (
    *(Api(BUILTIN_NAMESPACE, "component", subtype) for subtype in _COMPONENTS.split()),
    *(Api(BUILTIN_NAMESPACE, "service", subtype) for subtype in _SERVICES.split()),
)
