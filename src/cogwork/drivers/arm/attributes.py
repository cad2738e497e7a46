"""What the arms read from their configuration."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cogwork.config.fields import Attributes, FileField


class FakeArmAttributes(Attributes):
    kinematics_file: FileField | None = None
    """Its links and joints: kinematics in JSON (SVA or DH), or a URDF. Without one it is a desk arm
    with six joints."""
    speed_degs_per_sec: Annotated[float, Field(gt=0)] = 60.0
    """How fast its joints turn at most, in degrees per second. One that slides goes as many
    millimetres per second."""
    joints: list[float] | None = None
    """Where its joints are at first, in degrees, or in millimetres if they slide. Without it they
    are at 0, or at the limit that is nearest to it."""
