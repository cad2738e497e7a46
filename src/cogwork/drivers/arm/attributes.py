"""Attributes of the arm models."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cogwork.config.schema.fields import Attributes, FileField, UnsetIfZero


class FakeArmAttributes(Attributes):
    """An arm without hardware that moves in real time."""

    kinematics_file: Annotated[FileField, UnsetIfZero()] | None = None
    """Kinematics file of the arm: JSON (SVA or DH) or URDF. Defaults to a desk arm with six
    joints."""
    speed_degs_per_sec: Annotated[float, Field(gt=0)] = 60.0
    """Maximum speed of the joints in degrees per second, or in millimeters per second for prismatic
    joints."""
    joints: list[float] | None = None
    """Initial joint positions in degrees, or in millimeters for prismatic joints. Defaults to 0, or
    to the limit closest to 0 if the joint cannot reach 0."""
