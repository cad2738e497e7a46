"""Find the component that must move so that another component reaches its goal."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from cogwork.core.errors import Unsupported
from cogwork.graph.name import Api, ResourceName
from cogwork.resource.machine_access import CoordinateFrames
from cogwork.spatial.chain import WORLD
from cogwork.spatial.frame_tree import FramePart

ARM = Api.parse("rdk:component:arm")
BASE = Api.parse("rdk:component:base")
GANTRY = Api.parse("rdk:component:gantry")

_MOVING_APIS = (ARM, BASE, GANTRY)
_MAX_DEPTH = 100


def find_moving_component(
    component: str,
    names: Collection[ResourceName],
    frames: CoordinateFrames,
    extra: Iterable[FramePart] = (),
) -> ResourceName:
    """Return the component itself, or its closest ancestor that can move.

    `names` are the resources of the machine. `extra` holds additional frames of the call.
    """
    parents = {part.name: part.parent for part in extra}
    carrier = component
    for _ in range(_MAX_DEPTH):
        for name in names:
            if name.short == carrier and name.api in _MOVING_APIS:
                return name
        if carrier == WORLD:
            break
        carrier = parents.get(carrier) or frames.parent(carrier)
    raise Unsupported(
        f'cannot move "{component}": it is not an arm, gantry or base, and is not mounted on one'
    )


def origin_frame(carrier: ResourceName) -> str:
    """Return the frame that moves are relative to.

    A base has no origin frame, so its moves are relative to its current pose.
    """
    return carrier.short if carrier.api == BASE else f"{carrier.short}_origin"
