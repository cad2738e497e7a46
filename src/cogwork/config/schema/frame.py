"""The `frame` of a resource: its position and orientation."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, JsonValue, field_validator, model_validator

from cogwork.config.schema import codes
from cogwork.config.schema.fields import ObjectKeys, Section, fault
from cogwork.spatial.orientation import parse_orientation
from cogwork.spatial.pose import Pose, Quaternion
from cogwork.spatial.shape import parse_shape

_ROTATION = ObjectKeys(dict.fromkeys(("x", "y", "z", "w", "th", "roll", "pitch", "yaw")))
_GEOMETRY = ObjectKeys(
    {
        **dict.fromkeys(("type", "x", "y", "z", "r", "l", "label")),
        "translation": ObjectKeys(dict.fromkeys(("x", "y", "z"))),
        "orientation": ObjectKeys({"type": None, "value": _ROTATION}),
    }
)


class TranslationConfig(Section):
    """A position in space."""

    x: Annotated[float, Field(allow_inf_nan=False)] = 0.0
    """Millimeters along the x axis."""
    y: Annotated[float, Field(allow_inf_nan=False)] = 0.0
    """Millimeters along the y axis."""
    z: Annotated[float, Field(allow_inf_nan=False)] = 0.0
    """Millimeters along the z axis."""


class OrientationConfig(Section):
    """An orientation. Without `type` and `value` there is no rotation."""

    type: (
        Literal["ov_degrees", "ov_radians", "euler_angles", "axis_angles", "quaternion"] | None
    ) = None
    """The format of `value`. Only `ov_degrees` is in degrees; the others are in radians."""
    value: Annotated[dict[str, JsonValue], _ROTATION] | None = None
    """The rotation: `x`, `y`, `z`, `th`; or `roll`, `pitch`, `yaw`; or `w`, `x`, `y`, `z`."""

    @property
    def rotation(self) -> Quaternion:
        return parse_orientation(self.type or "", self.value)

    @model_validator(mode="before")
    @classmethod
    def _drop_empty_type(cls, data: Any) -> Any:
        """Accept an empty type, which other tools write for an orientation without rotation."""
        if isinstance(data, dict) and data.get("type") == "":
            return {key: value for key, value in data.items() if key != "type"}
        return data

    @model_validator(mode="after")
    def _check_rotation(self) -> Self:
        try:
            _ = self.rotation
        except ValueError as error:
            raise fault(codes.BAD_VALUE, str(error)) from None
        return self


class FrameConfig(Section):
    """The pose of a component relative to its parent frame, in millimeters."""

    parent: str
    """The parent frame: `world`, or the name of a component."""
    id: str | None = None
    """The name of the frame. Defaults to the name of the component."""
    translation: Annotated[
        TranslationConfig, Field(default_factory=TranslationConfig.model_construct)
    ]
    """The position relative to the parent. Defaults to the position of the parent."""
    orientation: OrientationConfig | None = None
    """The orientation relative to the parent. Defaults to no rotation."""
    geometry: Annotated[dict[str, JsonValue], _GEOMETRY] | None = None
    """The space that the component occupies, such as a box. Unknown by default."""

    @property
    def pose(self) -> Pose:
        """The pose relative to the parent."""
        position = self.translation
        rotation = self.orientation.rotation if self.orientation else Quaternion.identity()
        return Pose((position.x, position.y, position.z), rotation)

    @field_validator("geometry")
    @classmethod
    def _check_geometry(cls, value: dict[str, JsonValue] | None) -> dict[str, JsonValue] | None:
        try:
            if value is not None:
                parse_shape(value)
        except ValueError as error:
            raise fault(codes.BAD_VALUE, str(error)) from None
        return value

    @model_validator(mode="after")
    def _check_parent(self) -> Self:
        if not self.parent:
            raise fault(
                codes.BAD_VALUE, '"parent" is empty; write "world" or the name of a component'
            )
        if self.id == "world":
            raise fault(codes.BAD_VALUE, 'the frame name "world" is reserved; choose another "id"')
        if self.id is not None and self.id == self.parent:
            raise fault(codes.BAD_VALUE, f'the frame "{self.id}" is its own parent')
        return self
