"""What has to move, so that something else gets where it shall be."""

from __future__ import annotations

from collections.abc import Iterable

from cogwork.core.errors import Unsupported
from cogwork.graph.name import Api, ResourceName
from cogwork.resource.neighbours import Frames, Neighbours
from cogwork.spatial.chain import WORLD
from cogwork.spatial.tree import Part

ARM = Api.parse("rdk:component:arm")
BASE = Api.parse("rdk:component:base")
GANTRY = Api.parse("rdk:component:gantry")

_MOVE = (ARM, BASE, GANTRY)
_DEEPEST = 100


def carrier_of(
    component: str, neighbours: Neighbours, frames: Frames, extra: Iterable[Part]
) -> ResourceName:
    """The component itself, or the first that moves of those that it stands on."""
    parents = {part.name: part.parent for part in extra}
    carrier = component
    for _ in range(_DEEPEST):
        for name in neighbours.names():
            if name.short == carrier and name.api in _MOVE:
                return name
        if carrier == WORLD:
            break
        carrier = parents.get(carrier) or frames.parent(carrier)
    raise Unsupported(
        f'nothing moves "{component}": it is no arm, gantry or base, and stands on none'
    )


def origin_of(carrier: ResourceName) -> str:
    """The frame that its moves are measured from. A base has none: it leaves where it stood."""
    return carrier.short if carrier.api == BASE else f"{carrier.short}_origin"
