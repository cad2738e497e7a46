"""A fake gripper whose fingers move over time and hold a configured object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from viam.components.gripper import Gripper
from viam.proto.common import Geometry, KinematicsFileFormat

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import InvalidRequest
from cogwork.drivers.gripper.attributes import FakeGripperAttributes
from cogwork.drivers.mover import Mover
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.messages.pose_proto import geometry_to_proto
from cogwork.resource.model import logger_of
from cogwork.spatial.kinematics import WORLD, Chain, Joint, JointType, format_sva

_PALM_MM = (40.0, 60.0)
"""Width and height of the palm, without the fingers."""
_FINGER_MM = (10.0, 20.0, 60.0)
"""Thickness, width and length of a finger."""


class FakeGripper(Gripper):
    """A fake gripper with one joint, the gap between the fingers.

    A newer command preempts a running move, which then fails with Interrupted.
    """

    def __init__(self, name: ResourceName, attributes: FakeGripperAttributes, clock: Clock) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._attributes = attributes
        self._mover = Mover(f'gripper "{name.name}"', (attributes.opening_mm,), clock)
        self._is_holding = False

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: FakeGripperAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> FakeGripper:
        del dependencies
        return cls(name, attributes, clock or SystemClock())

    async def open(self, **_: Any) -> None:
        await self._go("open", self._attributes.opening_mm)

    async def grab(self, **_: Any) -> bool:
        await self._go("grab", 0.0)
        return self._is_holding

    async def go_to_inputs(self, values: Sequence[float], **_: Any) -> None:
        maximum = self._attributes.opening_mm
        if len(values) != 1 or not 0 <= values[0] <= maximum:
            raise InvalidRequest(
                f"{self._mover.display_name} takes one input, the gap between the fingers in "
                f"millimeters, from 0 to {maximum:g}, not {_format_values(values)}"
            )
        await self._go("go_to_inputs", values[0])

    async def get_current_inputs(self, **_: Any) -> list[float]:
        return [self._gap]

    async def is_holding_something(self, **_: Any) -> Gripper.HoldingStatus:
        meta = {"opening_mm": self._gap}
        if self._is_holding:
            meta["object_width_mm"] = self._attributes.object_width_mm or 0.0
        return Gripper.HoldingStatus(self._is_holding, meta)

    async def stop(self, **_: Any) -> None:
        """Stop the fingers. The gripper keeps holding an object."""
        self._mover.halt("stop")

    async def close(self) -> None:
        self._mover.halt("close")

    def emergency_stop(self) -> None:
        self._mover.emergency_stop()

    async def is_moving(self) -> bool:
        return self._mover.is_moving

    async def get_kinematics(self, **_: Any) -> tuple[KinematicsFileFormat.ValueType, bytes]:
        maximum = self._attributes.opening_mm
        fingers = Joint("fingers", WORLD, JointType.PRISMATIC, (1.0, 0.0, 0.0), 0.0, maximum)
        kinematics = format_sva(Chain.from_elements(self.name, [fingers]))
        return KinematicsFileFormat.KINEMATICS_FILE_FORMAT_SVA, kinematics.encode()

    async def get_geometries(self, **_: Any) -> Sequence[Geometry]:
        """Return the palm on the origin and the fingers on the palm; they close along x."""
        width, height = _PALM_MM
        thick, long = _FINGER_MM[0], _FINGER_MM[2]
        width_across = self._attributes.opening_mm + 2 * thick
        offset = (self._gap + thick) / 2
        return [
            _box_geometry("palm", (width_across, width, height), 0.0, height / 2),
            _box_geometry("left_finger", _FINGER_MM, -offset, height + long / 2),
            _box_geometry("right_finger", _FINGER_MM, offset, height + long / 2),
        ]

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        return {
            "opening_mm": self._gap,
            "is_holding_something": self._is_holding,
            "is_moving": self._mover.is_moving,
        }

    async def _go(self, command: str, gap: float) -> None:
        """Move the fingers to the given gap, or until they touch the object."""
        object_width = self._attributes.object_width_mm or 0.0
        touches = gap < object_width
        self._is_holding = self._is_holding and touches
        await self._mover.move_through(
            command, [(max(gap, object_width),)], (self._attributes.speed_mm_per_sec,)
        )
        self._is_holding = touches

    @property
    def _gap(self) -> float:
        (gap,) = self._mover.joints
        return gap


def _box_geometry(label: str, sides: tuple[float, float, float], x: float, z: float) -> Geometry:
    lengths = dict(zip("xyz", sides, strict=True))
    return geometry_to_proto({"type": "box", **lengths, "translation": {"x": x, "z": z}}, label)


def _format_values(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values) or "none"
