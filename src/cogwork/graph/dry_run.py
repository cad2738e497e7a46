"""Dry run of a configuration change: simulates the plans on a graph without resources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from cogwork.graph.name import ResourceName
from cogwork.graph.node import LiveResource, Node
from cogwork.graph.plan import Action, FindOffer, Plan, Step, plan
from cogwork.graph.spec import Spec

_MAX_ROUNDS = 10


@dataclass(frozen=True, slots=True)
class DryRun:
    closing: list[list[Step]]
    """Groups of steps that close resources, in order."""
    building: list[list[Step]]
    """Groups of steps that build, rebuild and reconfigure resources, in order."""
    blocked: list[Step]
    """Steps of nodes that cannot run, with the reasons."""
    untouched: list[ResourceName]


def dry_run(before: Iterable[Spec], after: Iterable[Spec], offers: FindOffer) -> DryRun:
    """Return the steps from `before` to `after`, assuming that every constructor succeeds."""
    nodes: dict[ResourceName, Node] = {}
    for _ in _plan_rounds(before, nodes, offers):
        pass
    running = [name for name, node in nodes.items() if node.held is not None]
    result = DryRun([], [], [], [])
    touched: set[ResourceName] = set()
    for made, closing in _plan_rounds(after, nodes, offers):
        result.closing.extend(closing)
        result.building.extend(made.building_groups())
        result.blocked.extend(
            step
            for name, step in made.steps.items()
            if step.reason is not None and name not in touched
        )
        touched |= made.steps.keys()
    result.untouched.extend(name for name in running if name not in touched)
    return result


def _plan_rounds(
    specs: Iterable[Spec], nodes: dict[ResourceName, Node], offers: FindOffer
) -> Iterator[tuple[Plan, list[list[Step]]]]:
    """Yield plans until no step is left. Simulate each plan before making the next."""
    desired: dict[ResourceName, Spec] = {}
    for spec in specs:
        desired.setdefault(spec.name, spec)
    for _ in range(_MAX_ROUNDS):
        made = plan(desired, nodes, offers, now=0.0)
        yield made, made.closing_groups(nodes)
        if all(step.action is Action.WAIT for step in made.steps.values()):
            return
        _simulate(made, desired, nodes)


def _simulate(
    made: Plan, desired: Mapping[ResourceName, Spec], nodes: dict[ResourceName, Node]
) -> None:
    youngest = max((node.held.generation for node in nodes.values() if node.held), default=0)
    for name, step in made.steps.items():
        node = nodes.setdefault(name, Node(desired[name])) if name in desired else nodes[name]
        generation = node.held.generation if node.held else 0
        if step.action.closes:
            node.held = None
        if step.action.builds:
            if step.action is not Action.RECONFIGURE:
                youngest += 1
                generation = youngest
            node.spec = desired[name]
            dependencies = (*made.edges.needs[name], *made.edges.wants[name])
            holds = {
                other: held.generation
                for other in dependencies
                if other in nodes and (held := nodes[other].held) is not None
            }
            node.held = LiveResource(None, node.spec, made.offers[name], generation, holds)
        elif step.action is Action.REMOVE:
            del nodes[name]
