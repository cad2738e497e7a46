"""Which discovered resources are planned with the configured ones."""

from __future__ import annotations

from tests.unit.graph.world import UnusedBuilder

from cogwork.graph.desired_specs import DesiredSpecs
from cogwork.graph.name import Api, ModelName, Reference, ResourceName
from cogwork.graph.node import LiveResource, Node
from cogwork.graph.provider import Offer, Unavailable
from cogwork.graph.spec import Spec

API = Api.parse("rdk:component:sensor")
MODEL = ModelName("acme", "demo", "sensor")


def name(text: str) -> ResourceName:
    return ResourceName.from_short(API, text)


def spec(text: str, *needs: str) -> Spec:
    return Spec(name(text), MODEL, needs=tuple(Reference(each) for each in needs))


def refuse(_: Spec) -> Offer | Unavailable:
    return Unavailable("no module provides it")


def divide(specs: DesiredSpecs) -> tuple[list[str], list[str]]:
    division = specs.divide(refuse, {})
    return (
        [each.short for each in division.connected],
        [each.name.short for each in division.standalone],
    )


def test_discovered_resources_that_nothing_concerns_stand_alone() -> None:
    specs = DesiredSpecs()
    specs.configure([spec("a", "far:b"), spec("d")])
    specs.discover([spec("far:b"), spec("far:c"), spec("d"), spec("far:e", "far:c")])
    assert divide(specs) == (["far:b", "far:c", "far:e"], [])
    specs.configure([spec("d")])
    specs.discover([spec("far:b"), spec("far:c"), spec("d")])
    assert divide(specs) == ([], ["far:b", "far:c"])


def test_only_some_resources_that_a_missing_dependency_may_mean_are_planned() -> None:
    specs = DesiredSpecs()
    specs.configure([spec("a", "b")])
    specs.discover([spec(f"{number}:b") for number in range(6)])
    assert divide(specs) == (["0:b", "1:b", "2:b", "3:b"], ["4:b", "5:b"])


def test_offer_of_a_configured_resource_may_refer_to_a_discovered_one() -> None:
    specs = DesiredSpecs()
    specs.configure([spec("a")])
    specs.discover([spec("far:b"), spec("far:c")])
    offer = Offer(UnusedBuilder(), needs=(Reference("far:b"),))
    division = specs.divide(lambda _: offer, {})
    assert list(division.connected) == [name("far:b")]
    assert specs.offers == {name("a"): offer}


def test_resource_that_is_still_held_is_planned_with_its_holder() -> None:
    specs = DesiredSpecs()
    specs.configure([spec("a")])
    specs.discover([spec("far:b"), spec("far:c")])
    holder = Node(spec("a"), since=0.0)
    holder.held = LiveResource(object(), holder.spec, Offer(UnusedBuilder()), 1, {name("far:b"): 1})
    division = specs.divide(refuse, {name("a"): holder})
    assert list(division.connected) == [name("far:b")]


def test_changes_of_discovered_resources_are_named() -> None:
    specs = DesiredSpecs()
    assert specs.discover([spec("far:b"), spec("far:c")]) == [name("far:b"), name("far:c")]
    assert specs.discover([spec("far:b"), spec("far:c", "far:b")]) == [name("far:c")]
    assert specs.discover([spec("far:b")]) == [name("far:c")]


def test_first_of_two_configured_resources_with_a_name_counts() -> None:
    specs = DesiredSpecs()
    first = spec("a", "b")
    specs.configure([first, spec("a")])
    assert specs.configured == {name("a"): first}
