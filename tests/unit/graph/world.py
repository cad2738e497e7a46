"""A test environment for the graph: scripted constructors on a manual clock.

The world records these violations in `violations` when they happen:

- an object is closed twice;
- an object is built or changed with a dependency that is being closed or is closed;
- an object is closed while another one holds it. A holder counts until its own close has ended:
  returned, raised, or been cancelled by the graph because it took too long. While it is changed in
  place, and ever after a change that failed, it holds both what it had and what it was given. Not
  counted: late objects, those that came from a constructor that was cancelled before it returned;
- an object is closed while a constructor that was not cancelled was given it;
- two objects, or two constructors, of one name at a time. Not counted: late objects and cancelled
  constructors, which the graph gives a second to go and then no longer waits for;
- an object is closed while it is changed in place, unless the change was cancelled.
"""

from __future__ import annotations

import asyncio
import enum
import itertools
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import NamedTuple

from cogwork.core.clock import ManualClock
from cogwork.graph.events import CallSlow, Event, StateChanged
from cogwork.graph.limits import GraphLimits
from cogwork.graph.name import Api, ModelName, Reference, ResourceName
from cogwork.graph.node import Node, NodeState
from cogwork.graph.provider import Dependencies, Offer, Providers, Unavailable
from cogwork.graph.reconciler import Outcome, Reconciler
from cogwork.graph.spec import Spec

API = Api("rdk", "component", "sensor")


@dataclass(frozen=True, slots=True)
class CallBehavior:
    """How a scripted call behaves."""

    seconds: float = 0.0
    """Duration of the call, or, if stubborn, the delay of its return after the cancellation."""
    error: str | None = None
    hangs: bool = False
    stubborn: bool = False


OK = CallBehavior()
HANGS = CallBehavior(hangs=True)
STUCK = CallBehavior(hangs=True, stubborn=True, seconds=1e9)


def takes(seconds: float) -> CallBehavior:
    return CallBehavior(seconds)


def fails(error: str = "no such device", after: float = 0.0) -> CallBehavior:
    return CallBehavior(after, error)


def stubborn(late: float) -> CallBehavior:
    """Hang, ignore every cancellation and return `late` seconds after the first."""
    return CallBehavior(late, hangs=True, stubborn=True)


@dataclass(slots=True)
class Script:
    """Behavior of the calls of one name. A list is consumed in order; its last item is kept."""

    build: CallBehavior | list[CallBehavior] = OK
    reconfigure: CallBehavior | list[CallBehavior] = OK
    close: CallBehavior | list[CallBehavior] = OK


class Life(enum.Enum):
    OPEN = "open"
    CLOSING = "closing"
    CLOSED = "closed"


@dataclass(eq=False, slots=True)
class Thing:
    """An object the world built."""

    number: int
    name: ResourceName
    settings: object
    model: ModelName
    holds: dict[ResourceName, Thing]
    late: bool = False
    life: Life = Life.OPEN
    changing: RunningCall | None = None

    def __repr__(self) -> str:
        return f"{self.name.short}#{self.number}"


class HistoryEntry(NamedTuple):
    time: float
    what: str
    name: str
    thing: int | None
    given: tuple[int, ...]


@dataclass(eq=False, slots=True)
class RunningCall:
    """One call of the graph into the world."""

    what: str
    name: ResourceName
    given: dict[ResourceName, Thing]
    cancelled: bool = False


@dataclass(slots=True)
class Supplier:
    """A provider that can leave and return. Models named `mutable` are reconfigurable."""

    world: World
    family: str
    available: bool = True
    provider_session: int = 0
    needs: dict[str, tuple[Reference, ...]] = field(default_factory=dict)
    """Dependencies that only this provider knows, by name."""

    def offer(self, spec: Spec) -> Offer | Unavailable | None:
        if spec.model.family != self.family:
            return None
        if not self.available:
            return Unavailable(f'module "{self.family}" is not running')
        in_place = spec.model.name == "mutable"
        needs = self.needs.get(spec.name.short, ())
        return Offer(self.world, self.provider_session, in_place, needs)

    def leave(self) -> None:
        self.available = False
        self.world.providers.notify_changed()

    def come_back(self) -> None:
        self.available = True
        self.provider_session += 1
        self.world.providers.notify_changed()


class UnusedBuilder:
    """A builder that must not be called."""

    async def build(self, spec: Spec, dependencies: Dependencies) -> object:
        raise NotImplementedError

    async def reconfigure(self, resource: object, spec: Spec, dependencies: Dependencies) -> None:
        raise NotImplementedError

    async def close(self, resource: object) -> None:
        raise NotImplementedError


class World:
    """The builder of all resources and its graph. Leaving the context closes and checks it."""

    def __init__(
        self,
        *families: str,
        limits: GraphLimits | None = None,
        seed: int = 0,
        redact: Callable[[str], str] = str,
    ) -> None:
        self.clock = ManualClock()
        self.started_at = self.clock.monotonic()
        self.suppliers = {family: Supplier(self, family) for family in ("acme", *families)}
        self.providers = Providers(self.suppliers)
        self.scripts: dict[str, Script] = {}
        self.history: list[HistoryEntry] = []
        self.events: list[tuple[float, Event]] = []
        self.violations: list[str] = []
        self.things: list[Thing] = []
        """Objects that are not closed."""
        self.running: set[RunningCall] = set()
        self.release = asyncio.Event()
        limits = limits or GraphLimits()
        self.graph = Reconciler(
            self.providers,
            self.clock,
            limits=replace(limits, retry=replace(limits.retry, rng=random.Random(seed))),
            observe=self._observe,
            redact=redact,
        )
        self.on_state: Callable[[ResourceName, NodeState], None] = lambda _name, _state: None
        self._numbers = itertools.count(1)

    async def __aenter__(self) -> World:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close_graph()
        if error is None:
            self.check()
            assert not self.running, self.running
            assert not self.things, self.things

    @property
    def now(self) -> float:
        return self.clock.monotonic() - self.started_at

    def script(
        self,
        name: str,
        build: CallBehavior | list[CallBehavior] = OK,
        *,
        reconfigure: CallBehavior | list[CallBehavior] = OK,
        close: CallBehavior | list[CallBehavior] = OK,
    ) -> None:
        self.scripts[name] = Script(build, reconfigure, close)

    def apply(self, *specs: Spec, revision: str = "") -> asyncio.Future[Outcome]:
        return self.graph.apply(specs, revision)

    async def run(self, *specs: Spec, revision: str = "") -> None:
        """Apply the specs and run everything that takes no time."""
        self.apply(*specs, revision=revision)
        await self.clock.settle()

    async def advance(self, seconds: float) -> None:
        await self.clock.advance(seconds)

    async def advance_to(self, moment: float) -> None:
        await self.clock.advance(moment - self.now)

    async def close_graph(self) -> list[ResourceName]:
        """Release all hanging calls and close the graph."""
        self.release.set()
        await self.clock.settle()
        closing = asyncio.ensure_future(self.graph.aclose())
        await self.clock.advance(30)
        assert closing.done(), "aclose did not keep to its budget"
        return closing.result()

    def check(self) -> None:
        assert not self.violations, self.violations

    def node(self, name: str) -> Node:
        return self.graph.nodes[full_name(name)]

    def state(self, name: str) -> NodeState:
        return self.node(name).state

    def lose(self, name: str, why: str) -> None:
        node = self.graph.nodes.get(full_name(name))
        if node is not None and node.held is not None:
            self.graph.report_lost(full_name(name), node.held.resource, why)

    def reason(self, name: str) -> str | None:
        reason = self.node(name).reason
        return reason.text if reason else None

    def thing(self, name: str) -> Thing:
        held = self.node(name).held
        assert held is not None
        assert isinstance(held.resource, Thing)
        return held.resource

    def times(self, what: str, *names: str) -> list[float]:
        return [h.time for h in self.history if h.what == what and (not names or h.name in names)]

    def history_of(self, *whats: str) -> list[tuple[float, str, str]]:
        """Return the history entries of the given kinds as (time, what, name)."""
        return [(h.time, h.what, h.name) for h in self.history if h.what in whats]

    def slow(self, name: str) -> list[float]:
        return [
            at for at, e in self.events if isinstance(e, CallSlow) and e.name == full_name(name)
        ]

    def states(self, name: str) -> list[tuple[float, NodeState]]:
        """Return the states of a node over time."""
        return [
            (at, event.after)
            for at, event in self.events
            if isinstance(event, StateChanged) and event.name == full_name(name)
        ]

    async def build(self, spec: Spec, dependencies: Dependencies) -> object:
        given = self._check_dependencies("build", spec.name, dependencies)
        for other in self.running:
            if other.what == "build" and other.name == spec.name and not other.cancelled:
                self._record_violation(f"{spec.name.short} is built twice at a time")
        for other_thing in self.things:
            if other_thing.name == spec.name and not other_thing.late:
                self._record_violation(f"{spec.name.short} is built while {other_thing} lives")
        running = RunningCall("build", spec.name, given)
        self._record("build", spec.name, None, given)
        with self._track(running):
            await self._run_behavior(running, self._script(spec.name).build)
            thing = Thing(
                next(self._numbers), spec.name, spec.settings, spec.model, given, running.cancelled
            )
            for dependency in given.values():
                if dependency.life is not Life.OPEN and not thing.late:
                    self._record_violation(f"{thing} was given {dependency}, closed since")
            self.things.append(thing)
            self._record("built late" if thing.late else "built", spec.name, thing, given)
        return thing

    async def reconfigure(self, resource: object, spec: Spec, dependencies: Dependencies) -> None:
        assert isinstance(resource, Thing)
        given = self._check_dependencies("reconfigure", spec.name, dependencies)
        if resource.life is not Life.OPEN:
            self._record_violation(f"{resource} is changed although it is {resource.life.value}")
        if resource.changing is not None:
            self._record_violation(f"{resource} is changed twice at a time")
        running = RunningCall("reconfigure", spec.name, given)
        resource.changing = running
        resource.holds = {**resource.holds, **given}
        self._record("reconfigure", spec.name, resource, given)
        try:
            with self._track(running):
                await self._run_behavior(running, self._script(spec.name).reconfigure)
        finally:
            resource.changing = None
        if not running.cancelled:
            resource.holds = given
        resource.settings = spec.settings
        self._record("reconfigured", spec.name, resource, given)

    async def close(self, resource: object) -> None:
        assert isinstance(resource, Thing)
        self._check_close(resource)
        resource.life = Life.CLOSING
        running = RunningCall("close", resource.name, {})
        self._record("close", resource.name, resource, {})
        try:
            with self._track(running):
                await self._run_behavior(running, self._script(resource.name).close, resource)
        finally:
            self._mark_closed(resource)

    def _check_close(self, thing: Thing) -> None:
        if thing.life is not Life.OPEN:
            self._record_violation(f"{thing} is closed again although it is {thing.life.value}")
        if thing.changing is not None and not thing.changing.cancelled:
            self._record_violation(f"{thing} is closed while it is changed in place")
        for other in self.things:
            if thing in other.holds.values() and not other.late and other is not thing:
                self._record_violation(
                    f"{thing} is closed while {other}, {other.life.value}, holds it"
                )
        for call in self.running:
            if thing in call.given.values() and not call.cancelled and call.what == "build":
                self._record_violation(
                    f"{thing} is closed while the constructor of {call.name} has it"
                )

    def _mark_closed(self, thing: Thing) -> None:
        if thing.life is not Life.CLOSED:
            thing.life = Life.CLOSED
            self.things.remove(thing)
            self._record("closed", thing.name, thing, {})

    async def _run_behavior(
        self,
        running: RunningCall,
        script: CallBehavior | list[CallBehavior],
        closing: Thing | None = None,
    ) -> None:
        behavior = _next_behavior(script)
        try:
            if behavior.hangs:
                await self.release.wait()
            elif behavior.seconds:
                await self.clock.sleep(behavior.seconds)
        except asyncio.CancelledError:
            running.cancelled = True
            if closing is not None:
                self._mark_closed(closing)
            self._record("cancelled", running.name, None, {})
            if not behavior.stubborn:
                raise
            await self._linger(behavior.seconds)
        if behavior.error is not None:
            raise RuntimeError(behavior.error)

    async def _linger(self, seconds: float) -> None:
        end = self.clock.monotonic() + seconds
        while not self.release.is_set() and (left := end - self.clock.monotonic()) > 0:
            waiting = asyncio.ensure_future(self.release.wait())
            try:
                await self.clock.wait({waiting}, left)
            except asyncio.CancelledError:
                continue
            finally:
                waiting.cancel()

    @contextmanager
    def _track(self, running: RunningCall) -> Iterator[None]:
        self.running.add(running)
        try:
            yield
        finally:
            self.running.discard(running)

    def _observe(self, event: Event) -> None:
        self.events.append((self.now, event))
        if isinstance(event, StateChanged):
            self.on_state(event.name, event.after)

    def _check_dependencies(
        self, what: str, name: ResourceName, dependencies: Dependencies
    ) -> dict[ResourceName, Thing]:
        given: dict[ResourceName, Thing] = {}
        for key, dependency in dependencies.items():
            assert isinstance(dependency, Thing)
            if dependency.life is not Life.OPEN:
                self._record_violation(
                    f"{what} {name.short} with {dependency}, {dependency.life.value}"
                )
            given[key] = dependency
        return given

    def _script(self, name: ResourceName) -> Script:
        return self.scripts.setdefault(name.short, Script())

    def _record(
        self,
        what: str,
        name: ResourceName,
        thing: Thing | None,
        given: Mapping[ResourceName, Thing],
    ) -> None:
        numbers = tuple(other.number for other in given.values())
        number = thing.number if thing else None
        self.history.append(HistoryEntry(self.now, what, name.short, number, numbers))

    def _record_violation(self, sentence: str) -> None:
        self.violations.append(f"at {self.now}: {sentence}")


def full_name(name: str) -> ResourceName:
    return ResourceName.from_short(API, name)


def model(name: str = "plain", family: str = "acme") -> ModelName:
    return ModelName("test", family, name)


def spec(
    name: str,
    needs: str = "",
    wants: str = "",
    *,
    settings: object = 0,
    kind: str = "plain",
    family: str = "acme",
    fault: str | None = None,
) -> Spec:
    return Spec(
        full_name(name),
        model(kind, family),
        settings,
        tuple(Reference.parse(text) for text in needs.split()),
        tuple(Reference.parse(text) for text in wants.split()),
        fault,
    )


def mutable(name: str, needs: str = "", wants: str = "", *, settings: object = 0) -> Spec:
    return spec(name, needs, wants, settings=settings, kind="mutable")


def _next_behavior(script: CallBehavior | list[CallBehavior]) -> CallBehavior:
    if isinstance(script, CallBehavior):
        return script
    return script.pop(0) if len(script) > 1 else script[0]
