"""What a change would do, before anybody makes it: plans on a graph that is only imagined."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from cogwork.graph.name import ResourceName
from cogwork.graph.node import Held, Node
from cogwork.graph.plan import Action, Offers, Plan, Step, plan
from cogwork.graph.spec import Spec

_ROUNDS = 10


@dataclass(frozen=True, slots=True)
class Foresight:
    closing: list[list[Step]]
    """Groups, each closed after the one before it."""
    building: list[list[Step]]
    """Groups of what is built, rebuilt and reconfigured, each after the one before it."""
    stuck: list[Step]
    """What cannot run, and why."""
    untouched: list[ResourceName]


def foresee(before: Iterable[Spec], after: Iterable[Spec], offers: Offers) -> Foresight:
    """Assumes that every constructor succeeds."""
    nodes: dict[ResourceName, Node] = {}
    for _ in _rounds(before, nodes, offers):
        pass
    running = [name for name, node in nodes.items() if node.held is not None]
    seen = Foresight([], [], [], [])
    touched: set[ResourceName] = set()
    for made, closing in _rounds(after, nodes, offers):
        seen.closing.extend(closing)
        seen.building.extend(made.building_groups())
        seen.stuck.extend(
            step
            for name, step in made.steps.items()
            if step.reason is not None and name not in touched
        )
        touched |= made.steps.keys()
    seen.untouched.extend(name for name in running if name not in touched)
    return seen


def _rounds(
    specs: Iterable[Spec], nodes: dict[ResourceName, Node], offers: Offers
) -> Iterator[tuple[Plan, list[list[Step]]]]:
    """Plan after plan until nothing is left to do, each imagined to have come about."""
    desired: dict[ResourceName, Spec] = {}
    for spec in specs:
        desired.setdefault(spec.name, spec)
    for _ in range(_ROUNDS):
        made = plan(desired, nodes, offers, now=0.0)
        yield made, made.closing_groups(nodes)
        if all(step.action is Action.WAIT for step in made.steps.values()):
            return
        _imagine(made, desired, nodes)


def _imagine(
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
            node.held = Held(None, node.spec, made.offers[name], generation, holds)
        elif step.action is Action.REMOVE:
            del nodes[name]
