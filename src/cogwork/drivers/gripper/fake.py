"""A gripper whose fingers move in time, and hold what lies between them."""

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
from cogwork.resource.model import logger_of
from cogwork.resource.poses import shape_of
from cogwork.spatial.kinematics import WORLD, Chain, Joint, Kind, write_sva

_PALM_MM = (40.0, 60.0)
"""How wide and how high its palm is, beside its fingers and under them."""
_FINGER_MM = (10.0, 20.0, 60.0)
"""How thick, wide and long its fingers are."""


class FakeGripper(Gripper):
    """Its only joint is the gap between its fingers. The newest command has the gripper; an older
    move that it ends fails and says so."""

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
        most = self._attributes.opening_mm
        if len(values) != 1 or not 0 <= values[0] <= most:
            raise InvalidRequest(
                f"{self._mover.called} takes one input, how many millimetres its fingers are "
                f"apart, from 0 to {most:g}, not {_listed(values)}"
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
        """What it holds it goes on holding."""
        self._mover.halt("stop")

    async def close(self) -> None:
        self._mover.halt("close")

    async def is_moving(self) -> bool:
        return self._mover.is_moving

    async def get_kinematics(self, **_: Any) -> tuple[KinematicsFileFormat.ValueType, bytes]:
        most = self._attributes.opening_mm
        fingers = Joint("fingers", WORLD, Kind.PRISMATIC, (1.0, 0.0, 0.0), 0.0, most)
        described = write_sva(Chain.of(self.name, [fingers]))
        return KinematicsFileFormat.KINEMATICS_FILE_FORMAT_SVA, described.encode()

    async def get_geometries(self, **_: Any) -> Sequence[Geometry]:
        """Its palm stands on its origin, and its fingers on the palm; they close along x."""
        width, height = _PALM_MM
        thick, long = _FINGER_MM[0], _FINGER_MM[2]
        across = self._attributes.opening_mm + 2 * thick
        aside = (self._gap + thick) / 2
        return [
            _box("palm", (across, width, height), 0.0, height / 2),
            _box("left_finger", _FINGER_MM, -aside, height + long / 2),
            _box("right_finger", _FINGER_MM, aside, height + long / 2),
        ]

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        return {
            "opening_mm": self._gap,
            "is_holding_something": self._is_holding,
            "is_moving": self._mover.is_moving,
        }

    async def _go(self, command: str, gap: float) -> None:
        """Until the fingers are that far apart, or meet what lies between them."""
        met = self._attributes.object_width_mm or 0.0
        meets = gap < met
        self._is_holding = self._is_holding and meets
        await self._mover.go(command, [(max(gap, met),)], (self._attributes.speed_mm_per_sec,))
        self._is_holding = meets

    @property
    def _gap(self) -> float:
        (gap,) = self._mover.joints
        return gap


def _box(label: str, sides: tuple[float, float, float], x: float, z: float) -> Geometry:
    lengths = dict(zip("xyz", sides, strict=True))
    return shape_of({"type": "box", **lengths, "translation": {"x": x, "z": z}}, label)


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values) or "none"
