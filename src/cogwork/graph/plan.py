"""From what is and what is wanted to what must be done. Pure: it reads, and returns a value."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from cogwork.graph.edges import Declared, Edges, dependencies_first, resolve
from cogwork.graph.name import ResourceName
from cogwork.graph.node import Call, Held, Inputs, Node, Reason
from cogwork.graph.provider import Offer, Unavailable
from cogwork.graph.spec import Spec

Offers = Callable[[Spec], Offer | Unavailable]

LATE_LIMIT = 4
"""Abandoned calls of one node that may hang at once, before no other is started."""


class Action(enum.StrEnum):
    LEAVE = "leave"
    BUILD = "build"
    RECONFIGURE = "reconfigure"
    REBUILD = "rebuild"
    HALT = "halt"
    """Close it; it stays in the graph, unhealthy, because it cannot run."""
    WAIT = "wait"
    """It cannot run and there is nothing to close."""
    REMOVE = "remove"

    @property
    def closes(self) -> bool:
        return self in _CLOSES

    @property
    def builds(self) -> bool:
        return self in _BUILDS


_CLOSES = frozenset({Action.REBUILD, Action.HALT, Action.REMOVE})
_BUILDS = frozenset({Action.BUILD, Action.REBUILD, Action.RECONFIGURE})


@dataclass(frozen=True, slots=True)
class Step:
    name: ResourceName
    action: Action
    why: str
    reason: Reason | None = None
    """Set for HALT and WAIT: what the node's status will say."""


@dataclass(frozen=True, slots=True)
class Plan:
    steps: Mapping[ResourceName, Step]
    """Everything but what is left alone, dependencies first."""
    specs: Mapping[ResourceName, Spec]
    edges: Edges
    offers: Mapping[ResourceName, Offer]
    left: int
    """How many nodes are left alone."""

    def building_groups(self) -> list[list[Step]]:
        """What is built or changed, each group after the one before it."""
        depends_on = {
            name: (*self.edges.needs[name], *self.edges.wants[name])
            for name, step in self.steps.items()
            if step.action.builds
        }
        return _grouped(self.steps, self.edges.order, depends_on)

    def closing_groups(self, nodes: Mapping[ResourceName, Node]) -> list[list[Step]]:
        """What is closed, dependents before what they hold."""
        holders: dict[ResourceName, list[ResourceName]] = {
            name: [] for name, step in self.steps.items() if step.action.closes
        }
        for name in holders:
            held = nodes[name].held
            for dependency in held.holds if held else ():
                if dependency in holders:
                    holders[dependency].append(name)
        order, _ = dependencies_first(holders)
        return _grouped(self.steps, order, holders)


def plan(
    desired: Mapping[ResourceName, Spec],
    nodes: Mapping[ResourceName, Node],
    offers: Offers,
    now: float,
) -> Plan:
    answers = {name: offers(spec) for name, spec in desired.items()}
    edges = resolve([_declared(spec, answers[name]) for name, spec in desired.items()])
    blocked = _blocked(desired, nodes, answers, edges, now)
    changes = _changes(desired, nodes, answers, edges, blocked)
    _add_gains(changes, nodes, answers, edges)
    _rebuild_where_gains_are_younger(changes, nodes)
    doomed = _doomed(nodes, changes)
    steps: dict[ResourceName, Step] = {}
    for name in (*edges.order, *(name for name in nodes if name not in desired)):
        step = _step(name, nodes.get(name), blocked.get(name), changes.get(name), doomed.get(name))
        if step is not None:
            steps[name] = step
    return Plan(
        steps,
        desired,
        edges,
        {name: answer for name, answer in answers.items() if isinstance(answer, Offer)},
        len(desired) - sum(1 for step in steps.values() if step.action is not Action.REMOVE),
    )


def still_wanted(plan: Plan, node: Node, nodes: Mapping[ResourceName, Node]) -> bool:
    """Whether the constructor or reconfiguration under way serves this plan."""
    name, call = node.spec.name, node.call
    if call is None or plan.steps[name].action not in (Action.BUILD, Action.RECONFIGURE):
        return False
    going = {name for name in call.holds if (s := plan.steps.get(name)) and s.action.closes}
    return not going and _still_right(call, plan.specs[name], plan.offers[name], plan.edges, nodes)


def build_inputs(
    spec: Spec, needs: Iterable[ResourceName], nodes: Mapping[ResourceName, Node], offer: Offer
) -> Inputs | None:
    """What a constructor would be given now; None while a dependency is not there."""
    generations: dict[ResourceName, int] = {}
    for name in needs:
        node = nodes.get(name)
        usable = node.usable if node is not None else None
        if usable is None:
            return None
        generations[name] = usable.generation
    return Inputs(spec, generations, offer.builder, offer.incarnation)


@dataclass(frozen=True, slots=True)
class _Change:
    why: str
    in_place: bool = False
    removed: bool = False
    gains: tuple[ResourceName, ...] = ()
    """Dependencies it does not hold yet."""


def _declared(spec: Spec, answer: Offer | Unavailable) -> Declared:
    if isinstance(answer, Offer) and (answer.needs or answer.wants):
        return Declared(spec.name, (*spec.needs, *answer.needs), (*spec.wants, *answer.wants))
    return Declared(spec.name, spec.needs, spec.wants)


def _blocked(
    desired: Mapping[ResourceName, Spec],
    nodes: Mapping[ResourceName, Node],
    answers: Mapping[ResourceName, Offer | Unavailable],
    edges: Edges,
    now: float,
) -> dict[ResourceName, Reason]:
    """Who cannot run now, and why; a dependent of such a node cannot either."""
    blocked: dict[ResourceName, Reason] = {}
    for name in edges.order:
        reason = _own_obstacle(desired[name], nodes, answers[name], edges, now)
        if reason is None and blocked:
            reason = next(
                (
                    blocked[need].seen_from_dependent(need)
                    for need in edges.needs[name]
                    if need in blocked
                ),
                None,
            )
        if reason is not None:
            blocked[name] = reason
    return blocked


def _own_obstacle(
    spec: Spec,
    nodes: Mapping[ResourceName, Node],
    answer: Offer | Unavailable,
    edges: Edges,
    now: float,
) -> Reason | None:
    if spec.fault is not None:
        return Reason(spec.fault)
    if spec.name in edges.faults:
        return Reason("; ".join(fault.sentence for fault in edges.faults[spec.name]))
    if isinstance(answer, Unavailable):
        return Reason(answer.reason)
    node = nodes.get(spec.name)
    if node is None or (node.held is not None and node.held.broken is None):
        return None
    failure = node.failure
    if failure is not None and now < failure.retry_at:
        unchanged = build_inputs(spec, edges.needs[spec.name], nodes, answer) == failure.inputs
        return Reason(failure.reason) if unchanged else None
    going_on = node.call is not None and _still_right(node.call, spec, answer, edges, nodes)
    if len(node.late) >= LATE_LIMIT and not going_on:
        return Reason(
            f"{len(node.late)} earlier attempts to build it still have not returned; "
            "restart the server to be rid of them"
        )
    return None


def _changes(
    desired: Mapping[ResourceName, Spec],
    nodes: Mapping[ResourceName, Node],
    answers: Mapping[ResourceName, Offer | Unavailable],
    edges: Edges,
    blocked: Mapping[ResourceName, Reason],
) -> dict[ResourceName, _Change]:
    """What must happen to each live node for its own sake."""
    changes: dict[ResourceName, _Change] = {}
    for name, node in nodes.items():
        spec = desired.get(name)
        if spec is None:
            changes[name] = _Change("it is no longer configured", removed=True)
        elif (held := node.live) is not None:
            answer = answers[name]
            if name in blocked or isinstance(answer, Unavailable):
                change: _Change | None = _Change(blocked[name].text)
            else:
                change = _change(node, held, spec, answer, edges, nodes)
            if change is not None:
                changes[name] = change
    return changes


def _change(
    node: Node,
    held: Held,
    spec: Spec,
    offer: Offer,
    edges: Edges,
    nodes: Mapping[ResourceName, Node],
) -> _Change | None:
    if node.call is not None and _still_right(node.call, spec, offer, edges, nodes):
        return _Change("its change in place is under way", in_place=True)
    if held.broken is not None:
        return _Change(held.broken)
    if held.spec.model != spec.model:
        return _Change(f"its model changed from {held.spec.model.short} to {spec.model.short}")
    if held.offer.incarnation != offer.incarnation or held.offer.builder is not offer.builder:
        return _Change("what provides it was started anew")
    for name, generation in held.holds.items():
        if not _holds_still(nodes.get(name), generation):
            return _Change(f'"{name.short}", which it holds, is gone')
    needs, wants = edges.needs[spec.name], edges.wants[spec.name]
    gains = tuple(name for name in needs if name not in held.holds)
    if held.spec is not spec and _settings_differ(held.spec, spec):
        return _Change("its attributes changed", offer.in_place, gains=gains)
    if gains:
        return _Change(f"it is given {_quoted(gains)}", offer.in_place, gains=gains)
    lost = [name for name in held.holds if name not in needs and name not in wants]
    if lost:
        return _Change(f"it is no longer given {_quoted(lost)}", offer.in_place)
    return None


def _settings_differ(one: Spec, other: Spec) -> bool:
    return one.written != other.written or one.settings != other.settings


def _add_gains(
    changes: dict[ResourceName, _Change],
    nodes: Mapping[ResourceName, Node],
    answers: Mapping[ResourceName, Offer | Unavailable],
    edges: Edges,
) -> None:
    """Give what would be left alone the optional dependencies that are left alone, too."""
    closing = {name for name, change in changes.items() if not change.in_place}
    closing |= _doomed(nodes, changes).keys()
    for name in edges.order:
        node, answer = nodes.get(name), answers[name]
        held = node.live if node is not None else None
        if held is None or name in closing or not isinstance(answer, Offer):
            continue
        gains = tuple(
            want
            for want in edges.wants[name]
            if not (want in held.holds or want in changes or want in closing)
            and _is_usable(nodes.get(want))
        )
        if not closing.isdisjoint(held.holds):
            closing.add(name)
        elif gains and name not in changes:
            changes[name] = _Change(f"it is given {_quoted(gains)}", answer.in_place, gains=gains)
            if not answer.in_place:
                closing.add(name)


def _rebuild_where_gains_are_younger(
    changes: dict[ResourceName, _Change], nodes: Mapping[ResourceName, Node]
) -> None:
    """No object may hold a younger one: then holds never form a circle, and age is an order in
    which everything can be closed."""
    while True:
        closing = {name for name, change in changes.items() if not change.in_place}
        closing |= _doomed(nodes, changes).keys()
        younger = [
            name
            for name, change in changes.items()
            if change.in_place
            and not all(
                gain not in closing and _is_older(nodes.get(gain), nodes[name])
                for gain in change.gains
            )
        ]
        if not younger:
            return
        for name in younger:
            changes[name] = replace(changes[name], in_place=False)


def _is_older(node: Node | None, than: Node) -> bool:
    return (
        node is not None
        and node.usable is not None
        and than.held is not None
        and node.usable.generation < than.held.generation
    )


def _still_right(
    call: Call, spec: Spec, offer: Offer, edges: Edges, nodes: Mapping[ResourceName, Node]
) -> bool:
    """Whether a constructor or a reconfiguration under way is the one that is wanted."""
    needs, wants = edges.needs[spec.name], edges.wants[spec.name]
    return (
        call.inputs is not None
        and call.inputs.builder is offer.builder
        and call.inputs.incarnation == offer.incarnation
        and call.inputs.spec == spec
        and set(needs) <= call.holds.keys() <= {*needs, *wants}
        and all(_holds_still(nodes.get(name), gen) for name, gen in call.holds.items())
    )


def _doomed(
    nodes: Mapping[ResourceName, Node], changes: Mapping[ResourceName, _Change]
) -> dict[ResourceName, str]:
    """Whose object must be closed because one that it holds will be; with the words for it.

    A node that could change in place is closed too: it would hold a dead object meanwhile.
    """
    front = [name for name, change in changes.items() if not change.in_place]
    if not front:
        return {}
    holders: dict[ResourceName, list[ResourceName]] = {}
    for name, node in nodes.items():
        for dependency in node.live.holds if node.live else ():
            holders.setdefault(dependency, []).append(name)
    closing = set(front)
    doomed: dict[ResourceName, str] = {}
    while front:
        name = front.pop()
        for holder in holders.get(name, ()):
            if holder not in closing:
                closing.add(holder)
                doomed[holder] = f'it holds "{name.short}", which is closed'
                front.append(holder)
    return doomed


def _step(
    name: ResourceName,
    node: Node | None,
    blocked: Reason | None,
    change: _Change | None,
    doomed: str | None,
) -> Step | None:
    if change is not None and change.removed:
        return Step(name, Action.REMOVE, change.why)
    live = node is not None and node.live is not None
    if blocked is not None:
        return Step(name, Action.HALT if live else Action.WAIT, blocked.text, blocked)
    if not live:
        return Step(name, Action.BUILD, _why_build(node))
    if doomed is not None:
        return Step(name, Action.REBUILD, doomed)
    if change is not None:
        return Step(name, Action.RECONFIGURE if change.in_place else Action.REBUILD, change.why)
    return None


def _why_build(node: Node | None) -> str:
    if node is None or node.failure is None:
        return "it is not running yet"
    return f"attempt {node.failure.count + 1}"


def _grouped(
    steps: Mapping[ResourceName, Step],
    order: Iterable[ResourceName],
    after: Mapping[ResourceName, Iterable[ResourceName]],
) -> list[list[Step]]:
    depth: dict[ResourceName, int] = {}
    groups: list[list[Step]] = []
    for name in order:
        if name not in after:
            continue
        depth[name] = 1 + max((depth[other] for other in after[name] if other in depth), default=-1)
        if depth[name] == len(groups):
            groups.append([])
        groups[depth[name]].append(steps[name])
    return groups


def _holds_still(node: Node | None, generation: int) -> bool:
    return node is not None and node.live is not None and node.live.generation == generation


def _is_usable(node: Node | None) -> bool:
    return node is not None and node.usable is not None


def _quoted(names: Iterable[ResourceName]) -> str:
    return ", ".join(f'"{name.short}"' for name in names)
