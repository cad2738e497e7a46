"""Finds the changes of live nodes: their own changes, and those that their dependencies cause."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from cogwork.graph.edges import Edges
from cogwork.graph.name import ResourceName
from cogwork.graph.node import LifecycleCall, LiveResource, Node, Reason
from cogwork.graph.provider import Offer, Unavailable
from cogwork.graph.spec import Spec

OfferMap = Mapping[ResourceName, Offer | Unavailable]


@dataclass(frozen=True, slots=True)
class Change:
    why: str
    in_place: bool = False
    is_removed: bool = False
    gains: tuple[ResourceName, ...] = ()
    """Dependencies that the resource does not hold yet."""


def find_changes(
    desired: Mapping[ResourceName, Spec],
    nodes: Mapping[ResourceName, Node],
    answers: OfferMap,
    edges: Edges,
    blocked: Mapping[ResourceName, Reason],
) -> dict[ResourceName, Change]:
    """Return the changes of the live nodes that need a change.

    `find_dependents_to_close` returns the nodes that must be closed with these nodes.
    """
    changes: dict[ResourceName, Change] = {}
    for name, node in nodes.items():
        spec = desired.get(name)
        if spec is None:
            changes[name] = Change("it is no longer configured", is_removed=True)
        elif (held := node.live) is not None:
            answer = answers[name]
            if name in blocked or isinstance(answer, Unavailable):
                change: Change | None = Change(blocked[name].text)
            else:
                change = _find_change(node, held, spec, answer, edges, nodes)
            if change is not None:
                changes[name] = change
    _rebuild_if_invalidating(changes, nodes, answers)
    _add_gains(changes, nodes, answers, edges)
    _rebuild_for_younger_gains(changes, nodes)
    return changes


def _find_change(
    node: Node,
    held: LiveResource,
    spec: Spec,
    offer: Offer,
    edges: Edges,
    nodes: Mapping[ResourceName, Node],
) -> Change | None:
    if node.call is not None and call_matches(node.call, spec, offer, edges, nodes):
        return Change("its reconfiguration is in progress", in_place=True)
    if held.broken_reason is not None:
        return Change(held.broken_reason)
    if held.spec.model != spec.model:
        return Change(f"its model changed from {held.spec.model.short} to {spec.model.short}")
    if (
        held.offer.provider_session != offer.provider_session
        or held.offer.builder is not offer.builder
    ):
        return Change("its provider restarted")
    for name, generation in held.holds.items():
        if not _is_same_generation(nodes.get(name), generation):
            return Change(f'"{name.short}", which it holds, no longer exists')
    needs, wants = edges.needs[spec.name], edges.wants[spec.name]
    gains = tuple(name for name in needs if name not in held.holds)
    if held.spec is not spec and _settings_differ(held.spec, spec):
        return Change("its attributes changed", offer.in_place, gains=gains)
    if gains:
        return Change(f"it now depends on {_quote_names(gains)}", offer.in_place, gains=gains)
    lost = [name for name in held.holds if name not in needs and name not in wants]
    if lost:
        return Change(f"it no longer depends on {_quote_names(lost)}", offer.in_place)
    return None


def _settings_differ(one: Spec, other: Spec) -> bool:
    return one.settings_text != other.settings_text or one.settings != other.settings


def _add_gains(
    changes: dict[ResourceName, Change],
    nodes: Mapping[ResourceName, Node],
    answers: OfferMap,
    edges: Edges,
) -> None:
    """Add changes that give nodes the optional dependencies that have become usable. Nodes and
    dependencies that already change are skipped."""
    closing = _find_closing(changes, nodes)
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
            changes[name] = Change(
                f"it now depends on {_quote_names(gains)}", answer.in_place, gains=gains
            )
            if not answer.in_place:
                closing.add(name)


def _rebuild_if_invalidating(
    changes: dict[ResourceName, Change], nodes: Mapping[ResourceName, Node], answers: OfferMap
) -> None:
    """Rebuild instead of reconfiguring if the change invalidates facts on which dependents rely."""
    held = {name for node in nodes.values() if node.live is not None for name in node.live.holds}
    for name, change in changes.items():
        answer = answers.get(name)
        if (
            change.in_place
            and name in held
            and isinstance(answer, Offer)
            and answer.invalidates_holders
        ):
            changes[name] = replace(change, in_place=False)


def _rebuild_for_younger_gains(
    changes: dict[ResourceName, Change], nodes: Mapping[ResourceName, Node]
) -> None:
    """Rebuild nodes whose object would otherwise hold a younger object.

    Every object then holds only older objects, so holds never form a cycle, and all objects can be
    closed in the order of their age.
    """
    while True:
        closing = _find_closing(changes, nodes)
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


def _find_closing(
    changes: Mapping[ResourceName, Change], nodes: Mapping[ResourceName, Node]
) -> set[ResourceName]:
    own = {name for name, change in changes.items() if not change.in_place}
    return own | find_dependents_to_close(nodes, changes).keys()


def _is_older(node: Node | None, than: Node) -> bool:
    return (
        node is not None
        and node.usable is not None
        and than.held is not None
        and node.usable.generation < than.held.generation
    )


def call_matches(
    call: LifecycleCall, spec: Spec, offer: Offer, edges: Edges, nodes: Mapping[ResourceName, Node]
) -> bool:
    """Return whether a running constructor or reconfiguration has the desired inputs."""
    needs, wants = edges.needs[spec.name], edges.wants[spec.name]
    return (
        call.inputs is not None
        and call.inputs.builder is offer.builder
        and call.inputs.provider_session == offer.provider_session
        and call.inputs.spec == spec
        and set(needs) <= call.holds.keys() <= {*needs, *wants}
        and all(_is_same_generation(nodes.get(name), gen) for name, gen in call.holds.items())
    )


def find_dependents_to_close(
    nodes: Mapping[ResourceName, Node], changes: Mapping[ResourceName, Change]
) -> dict[ResourceName, str]:
    """Return the nodes to close because a resource that they hold is closed, with the reasons.

    Nodes that could be reconfigured are closed too: they would hold a closed object meanwhile.
    """
    frontier = [name for name, change in changes.items() if not change.in_place]
    if not frontier:
        return {}
    holders: dict[ResourceName, list[ResourceName]] = {}
    for name, node in nodes.items():
        for dependency in node.live.holds if node.live else ():
            holders.setdefault(dependency, []).append(name)
    closing = set(frontier)
    reasons: dict[ResourceName, str] = {}
    while frontier:
        name = frontier.pop()
        for holder in holders.get(name, ()):
            if holder not in closing:
                closing.add(holder)
                reasons[holder] = f'it holds "{name.short}", which is closed'
                frontier.append(holder)
    return reasons


def _is_same_generation(node: Node | None, generation: int) -> bool:
    return node is not None and node.live is not None and node.live.generation == generation


def _is_usable(node: Node | None) -> bool:
    return node is not None and node.usable is not None


def _quote_names(names: Iterable[ResourceName]) -> str:
    return ", ".join(f'"{name.short}"' for name in names)
