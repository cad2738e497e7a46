"""What a service may use of the machine it belongs to, found when it is used.

A dependency is there before whoever needs it is built, and its loss unmakes it. A service that
moves whatever a call names, by the frames in which it all stands, needs neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from cogwork.core.errors import CogworkError
from cogwork.graph.name import Api, ResourceName
from cogwork.spatial.pose import Pose
from cogwork.spatial.tree import Part


class Alone(CogworkError):
    """Nobody runs the machine that the resource would belong to."""

    status = "FAILED_PRECONDITION"


class Frames(Protocol):
    """Where everything is. Frames are called by the names of what they belong to; the root of them
    is `world`."""

    async def transform(
        self, pose: Pose, source: str, destination: str, extra: Iterable[Part] = ()
    ) -> Pose:
        """The same pose, as it is seen from another frame. Joints are asked where they are.
        `extra`: frames beside those of the machine, for this once."""

    def parent(self, name: str) -> str:
        """What a component stands on, and what its own moves are measured from."""


def _never(_: object) -> int:
    return 0


def _nobody(_: object) -> object:
    raise Alone("it belongs to no machine")


@dataclass(slots=True)
class Neighbours:
    """Filled by whoever runs the machine, before anything is built."""

    find: Callable[[ResourceName], object] = _nobody
    """The ready resource, held by the call that asks until it ends; or an error that says why there
    is none."""
    names: Callable[[], Iterable[ResourceName]] = tuple
    """All that are configured."""
    frames: Frames | None = None
    stops: Callable[[ResourceName], int] = _never
    """How often it was told to stop. Whoever moves it in several steps sees by it that the next one
    is not wanted any more."""

    def named(self, short: str, *apis: Api) -> object:
        """The only one of these APIs with that name."""
        return self.find(self.name_of(short, *apis))

    def name_of(self, short: str, *apis: Api) -> ResourceName:
        for name in self.names():
            if name.short == short and name.api in apis:
                return name
        return ResourceName.of(apis[0], short)
