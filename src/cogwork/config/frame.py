"""Where a resource is, and how it is turned."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, JsonValue, field_validator, model_validator

from cogwork.config import codes
from cogwork.config.fields import Section, fault
from cogwork.spatial.orientation import read_orientation
from cogwork.spatial.pose import Pose, Quaternion
from cogwork.spatial.shape import read_shape


class Vector(Section):
    """A place in space."""

    x: Annotated[float, Field(allow_inf_nan=False)] = 0.0
    """Millimetres along the x axis."""
    y: Annotated[float, Field(allow_inf_nan=False)] = 0.0
    """Millimetres along the y axis."""
    z: Annotated[float, Field(allow_inf_nan=False)] = 0.0
    """Millimetres along the z axis."""


class Orientation(Section):
    """How something is turned. Without `type` and `value` it is not."""

    type: (
        Literal["ov_degrees", "ov_radians", "euler_angles", "axis_angles", "quaternion"] | None
    ) = None
    """How `value` is written. Only `ov_degrees` counts in degrees, the others in radians."""
    value: dict[str, JsonValue] | None = None
    """The rotation: `x`, `y`, `z`, `th`; or `roll`, `pitch`, `yaw`; or `w`, `x`, `y`, `z`."""

    @property
    def turned(self) -> Quaternion:
        return read_orientation(self.type or "", self.value)

    @model_validator(mode="before")
    @classmethod
    def _empty_is_absent(cls, data: Any) -> Any:
        """Upstream writes an orientation that is none with an empty type."""
        if isinstance(data, dict) and data.get("type") == "":
            return {key: value for key, value in data.items() if key != "type"}
        return data

    @model_validator(mode="after")
    def _is_a_rotation(self) -> Self:
        try:
            _ = self.turned
        except ValueError as error:
            raise fault(codes.BAD_VALUE, str(error)) from None
        return self


class Frame(Section):
    """Where something is, in millimetres from its parent."""

    parent: str
    """What it is measured from: `world`, or the name of a component."""
    id: str | None = None
    """What the frame is called. By default it has the name of what it belongs to."""
    translation: Annotated[Vector, Field(default_factory=Vector.model_construct)]
    """Where it is, seen from its parent. By default it is at the same place."""
    orientation: Orientation | None = None
    """How it is turned against its parent. By default it is not."""
    geometry: dict[str, JsonValue] | None = None
    """The space it takes up, such as a box. By default none is known."""

    @property
    def pose(self) -> Pose:
        """Where it is and how it is turned, seen from its parent."""
        place = self.translation
        turned = self.orientation.turned if self.orientation else Quaternion.identity()
        return Pose((place.x, place.y, place.z), turned)

    @field_validator("geometry")
    @classmethod
    def _is_a_shape(cls, written: dict[str, JsonValue] | None) -> dict[str, JsonValue] | None:
        try:
            if written is not None:
                read_shape(written)
        except ValueError as error:
            raise fault(codes.BAD_VALUE, str(error)) from None
        return written

    @model_validator(mode="after")
    def _in_the_world(self) -> Self:
        if not self.parent:
            raise fault(codes.BAD_VALUE, 'the parent is empty; it is "world" or a component')
        if self.id == "world":
            raise fault(codes.BAD_VALUE, 'no frame but the world itself is called "world"')
        if self.id is not None and self.id == self.parent:
            raise fault(codes.BAD_VALUE, f'the frame "{self.id}" is its own parent')
        return self
