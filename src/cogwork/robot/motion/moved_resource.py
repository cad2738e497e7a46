"""Lookup of the resource that a call to a motion service moves."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from cogwork.core.errors import CogworkError
from cogwork.graph.name import ResourceName
from cogwork.resource.machine_access import CoordinateFrames
from cogwork.resource.messages.supplemental_transforms import read_supplemental_transforms
from cogwork.resource.moving_component import find_moving_component
from cogwork.robot.motion.claims import MotionPlan

if TYPE_CHECKING:  # the services that use this module import it at run time
    from viam.gen.common.v1.common_pb2 import Transform


def find_moved_resource(
    plan: MotionPlan,
    transforms: Iterable[Transform],
    known: Collection[ResourceName],
    frames: CoordinateFrames,
) -> ResourceName:
    """Return the resource that a plan moves; the motion service itself if the resource is unknown.

    A module's motion service may move more resources. Stopping its plan stops them, too.
    """
    prefix = f"{plan.service.remote}:" if plan.service.remote else ""
    component = f"{prefix}{plan.component}"
    try:
        extra = read_supplemental_transforms(transforms, frames)
        return find_moving_component(component, known, frames, extra)
    except CogworkError:
        same_name = (name for name in known if name.short == component)
        return next(same_name, plan.service)
