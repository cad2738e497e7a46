"""From what is and what is wanted to what must be done. Pure: it reads, and returns a value."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from cogwork.graph.changes import Answers, Change, changes_of, doomed, still_right
from cogwork.graph.edges import Declared, Edges, dependencies_first, resolve
from cogwork.graph.name import ResourceName
from cogwork.graph.node import Inputs, Node, Reason
from cogwork.graph.provider import Offer, Unavailable
from cogwork.graph.spec import Spec

Offers = Callable[[Spec], Offer | Unavailable]

LATE_LIMIT = 4
"""Abandoned calls of one node that may hang at once, before no other is started."""


class Action(enum.StrEnum):
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
    changes = changes_of(desired, nodes, answers, edges, blocked)
    closed_with_others = doomed(nodes, changes)
    steps: dict[ResourceName, Step] = {}
    for name in (*edges.order, *(name for name in nodes if name not in desired)):
        step = _step(
            name,
            nodes.get(name),
            blocked.get(name),
            changes.get(name),
            closed_with_others.get(name),
        )
        if step is not None:
            steps[name] = step
    return Plan(
        steps,
        desired,
        edges,
        {name: answer for name, answer in answers.items() if isinstance(answer, Offer)},
    )


def still_wanted(plan: Plan, node: Node, nodes: Mapping[ResourceName, Node]) -> bool:
    """Whether the constructor or reconfiguration under way serves this plan."""
    name, call = node.spec.name, node.call
    if call is None or plan.steps[name].action not in (Action.BUILD, Action.RECONFIGURE):
        return False
    going = {name for name in call.holds if (s := plan.steps.get(name)) and s.action.closes}
    return not going and still_right(call, plan.specs[name], plan.offers[name], plan.edges, nodes)


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


def _declared(spec: Spec, answer: Offer | Unavailable) -> Declared:
    if isinstance(answer, Offer) and (answer.needs or answer.wants):
        return Declared(spec.name, (*spec.needs, *answer.needs), (*spec.wants, *answer.wants))
    return Declared(spec.name, spec.needs, spec.wants)


def _blocked(
    desired: Mapping[ResourceName, Spec],
    nodes: Mapping[ResourceName, Node],
    answers: Answers,
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
        return Reason(answer.reason, soon=answer.soon)
    node = nodes.get(spec.name)
    if node is None or (node.held is not None and node.held.broken is None):
        return None
    failure = node.failure
    if failure is not None and now < failure.retry_at:
        unchanged = build_inputs(spec, edges.needs[spec.name], nodes, answer) == failure.inputs
        return Reason(failure.reason) if unchanged else None
    going_on = node.call is not None and still_right(node.call, spec, answer, edges, nodes)
    if len(node.late) >= LATE_LIMIT and not going_on:
        return Reason(
            f"{len(node.late)} earlier attempts to build it still have not returned; "
            "restart the server to be rid of them"
        )
    return None


def _step(
    name: ResourceName,
    node: Node | None,
    blocked: Reason | None,
    change: Change | None,
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
