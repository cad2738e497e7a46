"""A node of the graph: the current state of a resource, and the reason for it."""

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
"""States in which a resource without a usable object is about to get one. READY means that the
object was just lost."""


class Reason(NamedTuple):
    """The reason why a node is not ready. The reason includes the root cause if the node waits for
    another node."""

    text: str
    root: tuple[ResourceName, str] | None = None
    is_temporary: bool = False
    """Whether the node is expected to be ready soon, so that this is not a fault."""

    def redact_with(self, redact: Callable[[str], str]) -> Reason:
        root = (self.root[0], redact(self.root[1])) if self.root is not None else None
        return Reason(redact(self.text), root, self.is_temporary)

    def for_dependent(self, name: ResourceName) -> Reason:
        """Return the reason for dependents of `name`. It names the root cause, not every node
        between."""
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
    """All inputs of a constructor. A failed build with the same inputs is retried with back-off."""

    spec: Spec
    dependencies: Mapping[ResourceName, int]
    builder: Builder
    provider_session: int


@dataclass(slots=True)
class LiveResource:
    """The object of a resource, its inputs, and the objects that it holds."""

    resource: object
    spec: Spec
    offer: Offer
    generation: int
    holds: Mapping[ResourceName, int]
    """The held dependencies with their generations; during a reconfiguration, both the old and the
    new dependencies."""
    broken_reason: str | None = None
    """The reason why the resource must be replaced although its configuration has not changed."""
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
    """The dependencies that the call received, with their generations."""
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
    """Number of consecutive times that the resource was lost soon after it was ready."""
    ready_at: float = 0.0
    """Monotonic time when the resource last became ready."""
    is_being_replaced: bool = False
    """Whether the resource was ready and is being changed, replaced or removed."""
    call: LifecycleCall | None = None
    abandoned: dict[asyncio.Task[None], float] = field(default_factory=dict)
    """Abandoned calls that have not returned, with the times when they were abandoned."""
    optional_deadline: float | None = None
    """Time until which the node waits for optional dependencies, kept from one plan to the next."""
    _state_change: asyncio.Future[None] | None = None

    @property
    def live(self) -> LiveResource | None:
        return self.held if self.held is not None and not self.held.is_closing else None

    @property
    def usable(self) -> LiveResource | None:
        """The live resource if dependents may use it; None otherwise."""
        return self.live if self.held is not None and self.held.broken_reason is None else None

    @property
    def is_changing(self) -> bool:
        """Whether the resource is unavailable because it is being built or replaced.

        Retries of a failed resource do not count, because they may never succeed.
        """
        return self.usable is None and self.state in _TRANSIENT_STATES

    def next_state_change(self) -> asyncio.Future[None]:
        """Return a future that is done when the state changes. All callers share it."""
        if self._state_change is None:
            self._state_change = asyncio.get_running_loop().create_future()
        return self._state_change

    def notify_state_change(self) -> None:
        if self._state_change is not None:
            self._state_change.set_result(None)
            self._state_change = None

    def is_doing(self, activity: Activity) -> bool:
        return self.call is not None and self.call.activity is activity
