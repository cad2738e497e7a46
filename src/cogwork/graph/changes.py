"""What must happen to each live node: for its own sake, or because of what it holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from cogwork.graph.edges import Edges
from cogwork.graph.name import ResourceName
from cogwork.graph.node import Call, Held, Node, Reason
from cogwork.graph.provider import Offer, Unavailable
from cogwork.graph.spec import Spec

Answers = Mapping[ResourceName, Offer | Unavailable]


@dataclass(frozen=True, slots=True)
class Change:
    why: str
    in_place: bool = False
    removed: bool = False
    gains: tuple[ResourceName, ...] = ()
    """Dependencies it does not hold yet."""


def changes_of(
    desired: Mapping[ResourceName, Spec],
    nodes: Mapping[ResourceName, Node],
    answers: Answers,
    edges: Edges,
    blocked: Mapping[ResourceName, Reason],
) -> dict[ResourceName, Change]:
    """What must happen to each live node. `doomed` tells who has to be closed with them."""
    changes: dict[ResourceName, Change] = {}
    for name, node in nodes.items():
        spec = desired.get(name)
        if spec is None:
            changes[name] = Change("it is no longer configured", removed=True)
        elif (held := node.live) is not None:
            answer = answers[name]
            if name in blocked or isinstance(answer, Unavailable):
                change: Change | None = Change(blocked[name].text)
            else:
                change = _change(node, held, spec, answer, edges, nodes)
            if change is not None:
                changes[name] = change
    _rebuild_what_is_held_and_renewed(changes, nodes, answers)
    _add_gains(changes, nodes, answers, edges)
    _rebuild_where_gains_are_younger(changes, nodes)
    return changes


def _change(
    node: Node,
    held: Held,
    spec: Spec,
    offer: Offer,
    edges: Edges,
    nodes: Mapping[ResourceName, Node],
) -> Change | None:
    if node.call is not None and still_right(node.call, spec, offer, edges, nodes):
        return Change("its change in place is under way", in_place=True)
    if held.broken is not None:
        return Change(held.broken)
    if held.spec.model != spec.model:
        return Change(f"its model changed from {held.spec.model.short} to {spec.model.short}")
    if held.offer.incarnation != offer.incarnation or held.offer.builder is not offer.builder:
        return Change("what provides it was started anew")
    for name, generation in held.holds.items():
        if not _holds_still(nodes.get(name), generation):
            return Change(f'"{name.short}", which it holds, is gone')
    needs, wants = edges.needs[spec.name], edges.wants[spec.name]
    gains = tuple(name for name in needs if name not in held.holds)
    if held.spec is not spec and _settings_differ(held.spec, spec):
        return Change("its attributes changed", offer.in_place, gains=gains)
    if gains:
        return Change(f"it is given {_quoted(gains)}", offer.in_place, gains=gains)
    lost = [name for name in held.holds if name not in needs and name not in wants]
    if lost:
        return Change(f"it is no longer given {_quoted(lost)}", offer.in_place)
    return None


def _settings_differ(one: Spec, other: Spec) -> bool:
    return one.written != other.written or one.settings != other.settings


def _add_gains(
    changes: dict[ResourceName, Change],
    nodes: Mapping[ResourceName, Node],
    answers: Answers,
    edges: Edges,
) -> None:
    """Give what would be left alone the optional dependencies that are left alone, too."""
    closing = _closing(changes, nodes)
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
            changes[name] = Change(f"it is given {_quoted(gains)}", answer.in_place, gains=gains)
            if not answer.in_place:
                closing.add(name)


def _rebuild_what_is_held_and_renewed(
    changes: dict[ResourceName, Change], nodes: Mapping[ResourceName, Node], answers: Answers
) -> None:
    """Whoever holds it learned something of it that may not be true of the next."""
    held = {name for node in nodes.values() if node.live is not None for name in node.live.holds}
    for name, change in changes.items():
        answer = answers.get(name)
        if change.in_place and name in held and isinstance(answer, Offer) and answer.renews:
            changes[name] = replace(change, in_place=False)


def _rebuild_where_gains_are_younger(
    changes: dict[ResourceName, Change], nodes: Mapping[ResourceName, Node]
) -> None:
    """No object may hold a younger one: then holds never form a circle, and age is an order in
    which everything can be closed."""
    while True:
        closing = _closing(changes, nodes)
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


def _closing(
    changes: Mapping[ResourceName, Change], nodes: Mapping[ResourceName, Node]
) -> set[ResourceName]:
    own = {name for name, change in changes.items() if not change.in_place}
    return own | doomed(nodes, changes).keys()


def _is_older(node: Node | None, than: Node) -> bool:
    return (
        node is not None
        and node.usable is not None
        and than.held is not None
        and node.usable.generation < than.held.generation
    )


def still_right(
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


def doomed(
    nodes: Mapping[ResourceName, Node], changes: Mapping[ResourceName, Change]
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


def _holds_still(node: Node | None, generation: int) -> bool:
    return node is not None and node.live is not None and node.live.generation == generation


def _is_usable(node: Node | None) -> bool:
    return node is not None and node.usable is not None


def _quoted(names: Iterable[ResourceName]) -> str:
    return ", ".join(f'"{name.short}"' for name in names)
