"""Computes the steps from the current state to the desired state. Pure: values in, values out."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from cogwork.graph.changes import (
    Change,
    OfferMap,
    call_matches,
    find_changes,
    find_dependents_to_close,
)
from cogwork.graph.edges import DeclaredDependencies, Edges, resolve, topological_order
from cogwork.graph.name import ResourceName
from cogwork.graph.node import BuildInputs, Node, Reason
from cogwork.graph.provider import Offer, Unavailable
from cogwork.graph.spec import Spec

FindOffer = Callable[[Spec], Offer | Unavailable]

MAX_ABANDONED = 4
"""Maximum abandoned calls of one node. While this many calls hang, no further call is started."""


class Action(enum.StrEnum):
    BUILD = "build"
    RECONFIGURE = "reconfigure"
    REBUILD = "rebuild"
    HALT = "halt"
    """Close the resource, because it cannot run. The node stays in the graph, with the reason."""
    WAIT = "wait"
    """Do nothing: the node cannot run and has no resource to close."""
    REMOVE = "remove"

    @property
    def closes(self) -> bool:
        return self in _CLOSING_ACTIONS

    @property
    def builds(self) -> bool:
        return self in _BUILDING_ACTIONS


_CLOSING_ACTIONS = frozenset({Action.REBUILD, Action.HALT, Action.REMOVE})
_BUILDING_ACTIONS = frozenset({Action.BUILD, Action.REBUILD, Action.RECONFIGURE})


@dataclass(frozen=True, slots=True)
class Step:
    name: ResourceName
    action: Action
    why: str
    reason: Reason | None = None
    """The reason in the node's status; set for HALT and WAIT."""


@dataclass(frozen=True, slots=True)
class Plan:
    steps: Mapping[ResourceName, Step]
    """The steps of all nodes that change, dependencies first."""
    specs: Mapping[ResourceName, Spec]
    edges: Edges
    offers: Mapping[ResourceName, Offer]

    def building_groups(self) -> list[list[Step]]:
        """Return the steps that build or reconfigure, in groups that run one after the other."""
        depends_on = {
            name: (*self.edges.needs[name], *self.edges.wants[name])
            for name, step in self.steps.items()
            if step.action.builds
        }
        return _group_by_depth(self.steps, self.edges.order, depends_on)

    def closing_groups(self, nodes: Mapping[ResourceName, Node]) -> list[list[Step]]:
        """Return the steps that close, in groups, dependents before their dependencies."""
        holders: dict[ResourceName, list[ResourceName]] = {
            name: [] for name, step in self.steps.items() if step.action.closes
        }
        for name in holders:
            held = nodes[name].held
            for dependency in held.holds if held else ():
                if dependency in holders:
                    holders[dependency].append(name)
        order, _ = topological_order(holders)
        return _group_by_depth(self.steps, order, holders)


def plan(
    desired: Mapping[ResourceName, Spec],
    nodes: Mapping[ResourceName, Node],
    offers: FindOffer,
    now: float,
) -> Plan:
    answers = {name: offers(spec) for name, spec in desired.items()}
    edges = resolve([_merge_dependencies(spec, answers[name]) for name, spec in desired.items()])
    blocked = _find_blocked(desired, nodes, answers, edges, now)
    changes = find_changes(desired, nodes, answers, edges, blocked)
    closed_with_others = find_dependents_to_close(nodes, changes)
    steps: dict[ResourceName, Step] = {}
    for name in (*edges.order, *(name for name in nodes if name not in desired)):
        step = _make_step(
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


def call_serves_plan(plan: Plan, node: Node, nodes: Mapping[ResourceName, Node]) -> bool:
    """Return whether the running constructor or reconfiguration is the one that the plan needs."""
    name, call = node.spec.name, node.call
    if call is None or plan.steps[name].action not in (Action.BUILD, Action.RECONFIGURE):
        return False
    closing = {name for name in call.holds if (s := plan.steps.get(name)) and s.action.closes}
    return not closing and call_matches(
        call, plan.specs[name], plan.offers[name], plan.edges, nodes
    )


def build_inputs(
    spec: Spec, needs: Iterable[ResourceName], nodes: Mapping[ResourceName, Node], offer: Offer
) -> BuildInputs | None:
    """Return the inputs that a constructor would get now; None while a dependency is not ready."""
    generations: dict[ResourceName, int] = {}
    for name in needs:
        node = nodes.get(name)
        usable = node.usable if node is not None else None
        if usable is None:
            return None
        generations[name] = usable.generation
    return BuildInputs(spec, generations, offer.builder, offer.provider_session)


def _merge_dependencies(spec: Spec, answer: Offer | Unavailable) -> DeclaredDependencies:
    if isinstance(answer, Offer) and (answer.needs or answer.wants):
        needs, wants = (*spec.needs, *answer.needs), (*spec.wants, *answer.wants)
        return DeclaredDependencies(spec.name, needs, wants, spec.is_default)
    return DeclaredDependencies(spec.name, spec.needs, spec.wants, spec.is_default)


def _find_blocked(
    desired: Mapping[ResourceName, Spec],
    nodes: Mapping[ResourceName, Node],
    answers: OfferMap,
    edges: Edges,
    now: float,
) -> dict[ResourceName, Reason]:
    """Return the nodes that cannot run now, including their dependents, with the reasons."""
    blocked: dict[ResourceName, Reason] = {}
    for name in edges.order:
        reason = _find_obstacle(desired[name], nodes, answers[name], edges, now)
        if reason is None and blocked:
            reason = next(
                (
                    blocked[need].for_dependent(need)
                    for need in edges.needs[name]
                    if need in blocked
                ),
                None,
            )
        if reason is not None:
            blocked[name] = reason
    return blocked


def _find_obstacle(
    spec: Spec,
    nodes: Mapping[ResourceName, Node],
    answer: Offer | Unavailable,
    edges: Edges,
    now: float,
) -> Reason | None:
    if spec.fault is not None:
        return Reason(spec.fault)
    if spec.name in edges.faults:
        return Reason("; ".join(fault.message for fault in edges.faults[spec.name]))
    if isinstance(answer, Unavailable):
        return Reason(answer.reason, is_temporary=answer.is_temporary)
    node = nodes.get(spec.name)
    if node is None or (node.held is not None and node.held.broken_reason is None):
        return None
    failure = node.failure
    if failure is not None and now < failure.retry_at:
        unchanged = build_inputs(spec, edges.needs[spec.name], nodes, answer) == failure.inputs
        return Reason(failure.reason) if unchanged else None
    is_running = node.call is not None and call_matches(node.call, spec, answer, edges, nodes)
    if len(node.abandoned) >= MAX_ABANDONED and not is_running:
        return Reason(
            f"{len(node.abandoned)} earlier attempts to build it have not returned yet; "
            "restart the server to end them"
        )
    return None


def _make_step(
    name: ResourceName,
    node: Node | None,
    blocked: Reason | None,
    change: Change | None,
    closed_because: str | None,
) -> Step | None:
    if change is not None and change.is_removed:
        return Step(name, Action.REMOVE, change.why)
    live = node is not None and node.live is not None
    if blocked is not None:
        return Step(name, Action.HALT if live else Action.WAIT, blocked.text, blocked)
    if not live:
        return Step(name, Action.BUILD, _build_reason(node))
    if closed_because is not None:
        return Step(name, Action.REBUILD, closed_because)
    if change is not None:
        return Step(name, Action.RECONFIGURE if change.in_place else Action.REBUILD, change.why)
    return None


def _build_reason(node: Node | None) -> str:
    if node is None or node.failure is None:
        return "it is not running yet"
    return f"attempt {node.failure.count + 1}"


def _group_by_depth(
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
