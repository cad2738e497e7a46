"""Access of a service to the resources and frames of its machine, resolved on each call.

A resource that is named only in calls, such as the resource to move, is not a dependency of the
service. If it were, the service would be built only when the resource is ready, and closed when the
resource is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from cogwork.core.errors import CogworkError
from cogwork.graph.name import Api, ResourceName
from cogwork.spatial.frame_tree import FramePart
from cogwork.spatial.pose import Pose


class NoMachine(CogworkError):
    """A resource is used outside a running machine."""

    status = "FAILED_PRECONDITION"


class CoordinateFrames(Protocol):
    """The coordinate frames of the machine.

    A frame has the name of its resource; the root is `world`.
    """

    async def transform(
        self, pose: Pose, source: str, destination: str, extra: Iterable[FramePart] = ()
    ) -> Pose:
        """Transform a pose to another frame, with the current joint positions.

        `extra` holds additional frames for this call.
        """

    def parent(self, name: str) -> str:
        """Return the parent frame of a component. The component's own poses are relative to it."""


def _no_stops(_: object) -> int:
    return 0


def _ignore(_name: object, _mover: object) -> None:
    pass


def _raise_no_machine(_: object) -> object:
    raise NoMachine("the resource does not belong to a machine")


@dataclass(slots=True)
class MachineAccess:
    """The interface to the machine. The server fills it before any resource is built."""

    find: Callable[[ResourceName], object] = _raise_no_machine
    """Returns a ready resource, which is not closed before the current call ends. Raises an error
    with the reason if the resource is not ready."""
    names: Callable[[], Iterable[ResourceName]] = tuple
    """Returns the names of all configured resources."""
    frames: CoordinateFrames | None = None
    stop_count: Callable[[ResourceName], int] = _no_stops
    """Returns the number of times that a resource was stopped. A motion in several steps is
    cancelled if this number changes between two steps."""
    take_over: Callable[[ResourceName, str], None] = _ignore
    """Records that a service now moves a resource. The resource then keeps moving even if the
    client that moved it before disconnects."""

    def find_by_name(self, short: str, *apis: Api) -> object:
        """Return the resource with a short name in any of these APIs."""
        return self.find(self.resolve_name(short, *apis))

    def resolve_name(self, short: str, *apis: Api) -> ResourceName:
        """Return the full name. The short name may omit the remote if it is unique without it."""
        fitting = [name for name in self.names() if name.api in apis]
        for name in fitting:
            if name.short == short:
                return name
        on_remotes = [name for name in fitting if name.name == short]
        if len(on_remotes) == 1:
            return on_remotes[0]
        return ResourceName.from_short(apis[0], short)
