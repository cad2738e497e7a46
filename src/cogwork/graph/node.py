"""What is: one resource of the running machine, with its state and the reason for it."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Builder, Offer
from cogwork.graph.spec import Spec


class State(enum.IntEnum):
    """The numbers are those of the public API's `ResourceStatus.State`."""

    UNKNOWN = 0
    UNCONFIGURED = 1
    CONFIGURING = 2
    READY = 3
    REMOVING = 4
    UNHEALTHY = 5


class Reason(NamedTuple):
    """Why a node is not ready. A node that waits for another also names the root of the trouble."""

    text: str
    root: tuple[ResourceName, str] | None = None
    soon: bool = False
    """Whether nothing is wrong with it: it only takes a moment."""

    def seen_from_dependent(self, name: ResourceName) -> Reason:
        """The reason of whoever depends on `name`. Names the root, not every node between."""
        if self.root is None:
            return Reason(
                f'depends on "{name.short}", which is not ready: {self.text}',
                (name, self.text),
                self.soon,
            )
        root, why = self.root
        return Reason(
            f'depends on "{name.short}", which waits for "{root.short}": {why}',
            self.root,
            self.soon,
        )


class Inputs(NamedTuple):
    """Everything a constructor is given. A failure with the same inputs is worth a pause."""

    spec: Spec
    dependencies: Mapping[ResourceName, int]
    builder: Builder
    incarnation: int


@dataclass(slots=True)
class Held:
    """A live resource: the object, what it was made from and which objects it holds itself."""

    resource: object
    spec: Spec
    offer: Offer
    generation: int
    holds: Mapping[ResourceName, int]
    """While it is changed in place: what it had and what it is given."""
    broken: str | None = None
    """Why it must be replaced although its configuration is the same."""
    closing: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    inputs: Inputs
    count: int
    retry_at: float
    reason: str


class Doing(enum.StrEnum):
    BUILDING = "building"
    RECONFIGURING = "reconfiguring"
    CLOSING = "closing"


@dataclass(slots=True)
class Call:
    """One constructor, reconfiguration or close that is under way."""

    doing: Doing
    work: asyncio.Future[object]
    inputs: Inputs | None = None
    holds: Mapping[ResourceName, int] = field(default_factory=dict)
    """The dependencies it was given."""
    offer: Offer | None = None
    """Who closes what it brings if it is abandoned."""
    supervisor: asyncio.Task[None] | None = None


@dataclass(slots=True)
class Node:
    spec: Spec
    state: State = State.UNCONFIGURED
    reason: Reason | None = None
    since: float = 0.0
    revision: str = ""
    held: Held | None = None
    failure: Failure | None = None
    losses: int = 0
    """How often in a row it was lost soon after it had become ready."""
    ready_at: float = 0.0
    """When it last became ready, on the monotonic clock."""
    call: Call | None = None
    late: dict[asyncio.Task[None], float] = field(default_factory=dict)
    """Abandoned calls that are not over yet, with the moment they were let go."""
    patient_until: float | None = None
    """How long it waits for optional dependencies, from one pass to the next."""

    @property
    def live(self) -> Held | None:
        return self.held if self.held is not None and not self.held.closing else None

    @property
    def usable(self) -> Held | None:
        """What a dependent may be given."""
        return self.live if self.held is not None and self.held.broken is None else None

    def is_doing(self, doing: Doing) -> bool:
        return self.call is not None and self.call.doing is doing
