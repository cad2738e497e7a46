"""A node of the graph: the current state of one resource, and the reason for it."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Builder, Offer
from cogwork.graph.spec import Spec


class NodeState(enum.IntEnum):
    """The state of a resource, numbered as in `ResourceStatus.State` of the public API."""

    UNKNOWN = 0
    UNCONFIGURED = 1
    CONFIGURING = 2
    READY = 3
    REMOVING = 4
    UNHEALTHY = 5


_TRANSIENT_STATES = (NodeState.UNCONFIGURED, NodeState.CONFIGURING, NodeState.READY)
"""States in which a resource without a usable object is about to get one. In READY, it has just
been lost."""


class Reason(NamedTuple):
    """Why a node is not ready. A node that waits for another also names the root cause."""

    text: str
    root: tuple[ResourceName, str] | None = None
    is_temporary: bool = False
    """Whether this is not a fault: the node will be ready soon."""

    def redact_with(self, redact: Callable[[str], str]) -> Reason:
        root = (self.root[0], redact(self.root[1])) if self.root is not None else None
        return Reason(redact(self.text), root, self.is_temporary)

    def for_dependent(self, name: ResourceName) -> Reason:
        """Return the reason for dependents of `name`: it names the root, not every node between."""
        if self.root is None:
            return Reason(
                f'depends on "{name.short}", which is not ready: {self.text}',
                (name, self.text),
                self.is_temporary,
            )
        root, why = self.root
        return Reason(
            f'depends on "{name.short}", which waits for "{root.short}": {why}',
            self.root,
            self.is_temporary,
        )


class BuildInputs(NamedTuple):
    """Everything that a constructor gets. A failed build with the same inputs is retried later."""

    spec: Spec
    dependencies: Mapping[ResourceName, int]
    builder: Builder
    provider_session: int


@dataclass(slots=True)
class LiveResource:
    """The object of a resource, what it was built from, and the objects that it holds."""

    resource: object
    spec: Spec
    offer: Offer
    generation: int
    holds: Mapping[ResourceName, int]
    """Generations of its dependencies; during a reconfiguration, the old and the new ones."""
    broken_reason: str | None = None
    """Why the resource must be replaced although its configuration has not changed."""
    is_closing: bool = False


@dataclass(frozen=True, slots=True)
class BuildFailure:
    inputs: BuildInputs
    count: int
    retry_at: float
    reason: str


class Activity(enum.StrEnum):
    BUILDING = "building"
    RECONFIGURING = "reconfiguring"
    CLOSING = "closing"


@dataclass(slots=True)
class LifecycleCall:
    """A running constructor, reconfiguration or close."""

    activity: Activity
    work: asyncio.Future[object]
    inputs: BuildInputs | None = None
    holds: Mapping[ResourceName, int] = field(default_factory=dict)
    """Generations of the dependencies that it was given."""
    offer: Offer | None = None
    """The offer whose builder closes the late result of an abandoned call."""
    supervisor: asyncio.Task[None] | None = None


@dataclass(slots=True)
class Node:
    spec: Spec
    state: NodeState = NodeState.UNCONFIGURED
    reason: Reason | None = None
    since: float = 0.0
    revision: str = ""
    held: LiveResource | None = None
    failure: BuildFailure | None = None
    losses: int = 0
    """Number of consecutive times that the resource was lost soon after it became ready."""
    ready_at: float = 0.0
    """When the resource last became ready, on the monotonic clock."""
    is_being_replaced: bool = False
    """Whether the resource was ready and is being changed, replaced or removed."""
    call: LifecycleCall | None = None
    abandoned: dict[asyncio.Task[None], float] = field(default_factory=dict)
    """Abandoned calls that have not returned, with the times at which they were abandoned."""
    optional_deadline: float | None = None
    """When to stop waiting for optional dependencies; kept from one plan to the next."""
    _state_change: asyncio.Future[None] | None = None

    @property
    def live(self) -> LiveResource | None:
        return self.held if self.held is not None and not self.held.is_closing else None

    @property
    def usable(self) -> LiveResource | None:
        """The live resource if dependents may get it."""
        return self.live if self.held is not None and self.held.broken_reason is None else None

    @property
    def is_changing(self) -> bool:
        """Whether the resource cannot be used now, but is being built or replaced.

        Retries of a failed resource do not count, because they may never succeed.
        """
        return self.usable is None and self.state in _TRANSIENT_STATES

    def next_state_change(self) -> asyncio.Future[None]:
        """Return a future that all callers share; it is done when the state changes."""
        if self._state_change is None:
            self._state_change = asyncio.get_running_loop().create_future()
        return self._state_change

    def notify_state_change(self) -> None:
        if self._state_change is not None:
            self._state_change.set_result(None)
            self._state_change = None

    def is_doing(self, activity: Activity) -> bool:
        return self.call is not None and self.call.activity is activity
