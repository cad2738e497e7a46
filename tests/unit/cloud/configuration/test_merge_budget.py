"""Merging fragments takes linear time and bounded memory, whatever is written in them."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from cogwork.cloud.configuration.fragment_merge import (
    MAX_OVERRIDES,
    MAX_PREFIX,
    Merged,
    Mistake,
    MistakeType,
    merge_fragments,
)
from cogwork.cloud.configuration.fragment_use import MAX_USES, FragmentUse
from cogwork.cloud.configuration.merge_budget import MAX_NESTING, MAX_SIZE, MAX_STEPS

Json = dict[str, Any]
Shape = Callable[[int], tuple[Json, Json]]
"""Returns a configuration of a size, and its fragments by ID."""

GROWTH = 8
MAX_RATIO = 3.0
"""How much more than linear the time may grow: quadratic time would grow by `GROWTH`."""
MAX_TEXT = 2 << 20
"""Bytes of a configuration or a fragment that can be saved."""


def merge(config: Json, fragments: Json) -> Merged:
    texts = {name: json.dumps(each) for name, each in fragments.items()}
    return merge_fragments(config, lambda use: texts[use.id])


def components(count: int, name: str = "c") -> list[Json]:
    return [{"name": f"{name}{number}", "attributes": {"x": 1}} for number in range(count)]


def use_with_overrides(mods: list[Json]) -> Json:
    return {"fragments": ["f"], "fragment_mods": [{"fragment_id": "f", "mods": mods}]}


def own_components_and_uses(size: int) -> tuple[Json, Json]:
    uses = [{"id": "f", "prefix": str(number)} for number in range(MAX_USES)]
    return {"components": components(50 * size), "fragments": uses}, {"f": {"components": []}}


def overrides_and_components(size: int) -> tuple[Json, Json]:
    mods = [{"$set": {f"components.c{number}.attributes.x": 2}} for number in range(50 * size)]
    return use_with_overrides(mods), {"f": {"components": components(50 * size)}}


def new_items_and_changes(size: int) -> tuple[Json, Json]:
    mods = [{"$push": {"tags": number}} for number in range(50 * size)]
    mods += [{"$inc": {f"components.c{number}.attributes.x": 1}} for number in range(50 * size)]
    return use_with_overrides(mods), {"f": {"tags": [], "components": components(50 * size)}}


def names_in_attributes(size: int) -> tuple[Json, Json]:
    names = [f"c{number}" for number in range(20 * size)]
    fragment = {"components": [{"name": each, "depends_on": names[:5]} for each in names]}
    return {"fragments": [{"id": "f", "prefix": "p" * MAX_PREFIX}]}, {"f": fragment}


def variables(size: int) -> tuple[Json, Json]:
    items = [{"name": f"c{number}", "x": {"$variable": {"name": "v"}}} for number in range(size)]
    use = {"id": "f", "variables": {"v": [1] * 10}}
    return {"fragments": [use]}, {"f": {"components": items}}


@pytest.mark.parametrize(
    "shape",
    [
        own_components_and_uses,
        overrides_and_components,
        new_items_and_changes,
        names_in_attributes,
        variables,
    ],
)
def test_time_is_linear(shape: Shape) -> None:
    times = []
    for size in (5, 5 * GROWTH):
        config, fragments = shape(size)
        assert merge(config, fragments).mistakes == []
        times.append(min(measure(config, fragments) for _ in range(3)))
    assert times[1] / times[0] < GROWTH * MAX_RATIO


def measure(config: Json, fragments: Json) -> float:
    before = time.thread_time()
    merge(config, fragments)
    return time.thread_time() - before


def hostile_uses() -> tuple[Json, Json]:
    overrides = [{"fragment_id": "a", "mods": []}] * 14_000
    return {"fragments": ["x"] * 100_000, "fragment_mods": overrides}, {"x": {}}


def hostile_prefix() -> tuple[Json, Json]:
    names = [f"c{number}" for number in range(2500)]
    fragment = {"components": [{"name": each, "depends_on": names[:5]} for each in names]}
    return {"fragments": [{"id": "f", "prefix": "p" * 400_000}]}, {"f": fragment}


def hostile_removals() -> tuple[Json, Json]:
    """Each removal moves the positions of all items after it."""
    mods = [{"$unset": {f"components.c{number}": 0}} for number in range(20_000)]
    return use_with_overrides(mods), {"f": {"components": components(20_000)}}


def hostile_sets() -> tuple[Json, Json]:
    """Each value is compared with all others, to its end."""
    value = [1] * 50
    mods = [{"$addToSet": {"x": [*value, number]}} for number in range(5000)]
    return use_with_overrides(mods), {"f": {"x": []}}


def hostile_uses_with_overrides() -> tuple[Json, Json]:
    uses = [{"id": "f", "prefix": str(number)} for number in range(MAX_USES)]
    overrides = [{"fragment_id": "f", "mods": [{"$set": {"x": 1}}] * 50}] * MAX_OVERRIDES
    return {"fragments": uses, "fragment_mods": overrides}, {"f": {"y": [1] * 1000}}


def hostile_text() -> tuple[Json, Json]:
    uses = [{"id": "f", "prefix": str(number)} for number in range(MAX_USES)]
    return {"fragments": uses}, {"f": {"debug": "x" * (MAX_TEXT // 2)}}


def hostile_nesting() -> tuple[Json, Json]:
    """Each rename puts all that there is deeper."""
    mods: list[Json] = [{"$set": {"a": 1}}]
    for number in range(400):
        old, new = "ab" if number % 2 == 0 else "ba"
        mods.append({"$rename": {old: ".".join(new * 60)}})
    return use_with_overrides(mods), {"f": {}}


def hostile_variables() -> tuple[Json, Json]:
    """Each fragment passes its variable on, inside of as many lists as there may be."""
    passed: Any = {"$variable": {"name": "v"}}
    for _ in range(MAX_NESTING - 5):
        passed = [passed]
    chain = {
        f"f{depth}": {"fragments": [{"id": f"f{depth + 1}", "variables": {"v": passed}}]}
        for depth in range(9)
    }
    last = {"debug": {"$variable": {"name": "v"}}}
    return {"fragments": [{"id": "f0", "variables": {"v": 1}}]}, {**chain, "f9": last}


@pytest.mark.parametrize(
    "shape",
    [
        hostile_uses,
        hostile_prefix,
        hostile_removals,
        hostile_sets,
        hostile_uses_with_overrides,
        hostile_text,
        hostile_nesting,
        hostile_variables,
    ],
)
def test_hostile_fragments_are_bounded_and_explained(
    shape: Callable[[], tuple[Json, Json]],
) -> None:
    config, fragments = shape()
    before = time.thread_time()
    merged = merge({"debug": "mine", **config}, fragments)
    taken = time.thread_time() - before
    assert taken < 10, "the budget takes about a second"
    assert merged.config["debug"] == "mine"
    assert any(
        each.type in (MistakeType.TOO_LARGE, MistakeType.INVALID) for each in merged.mistakes
    )
    assert len(merged.mistakes) < 100
    assert max(len(str(each)) for each in merged.mistakes) < 500
    assert len(json.dumps(merged.config)) < MAX_SIZE


@pytest.mark.parametrize("shape", [hostile_prefix, hostile_text])
def test_memory_is_bounded(shape: Callable[[], tuple[Json, Json]]) -> None:
    config, fragments = shape()
    tracemalloc.start()
    merge(config, fragments)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 * MAX_SIZE


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"fragments": ["f"] * 201}, "fragments has 201 entries, of which 200 are used"),
        (
            {"fragments": ["f"], "fragment_mods": [{"fragment_id": "f", "mods": []}] * 1001},
            "fragment_mods has 1001 entries, and none is applied; use at most 1000",
        ),
        (
            {"fragments": [{"id": "f", "prefix": "p" * 61}]},
            "fragment f: its prefix has 61 characters; use at most 60",
        ),
        (
            {"fragments": [{"id": "f", "variables": {"v": "x" * MAX_SIZE}}]},
            "fragment f: it is left out, because with it, the fragments add more than 4 MiB to the "
            "configuration; use less of them",
        ),
        (
            use_with_overrides([{"$pull": {"x": [1] * 1000}}] * 2),
            f"fragment f: no override is applied, because the fragments take more than "
            f"{MAX_STEPS:,} steps to merge; use fewer overrides",
        ),
    ],
)
def test_sentence_says_which_bound_and_what_to_do(config: Json, expected: str) -> None:
    fragment = {"x": list(range(1000)), "debug": {"$variable": {"name": "v", "default_value": 1}}}
    found = merge(config, {"f": fragment}).mistakes
    assert any(str(each).startswith(expected) for each in found), found


def test_mistakes_of_one_kind_are_counted() -> None:
    items = [{"name": "x" * 10_000, "a": {"$variable": {"name": "y" * 10_000}}}] * 50
    found = merge({"fragments": ["f"]}, {"f": {"components": items}}).mistakes
    assert len(found) == 6
    assert found[-1] == Mistake(MistakeType.VARIABLE, "f", "and 45 more mistakes of this kind")


def test_long_names_are_not_looked_up() -> None:
    asked: list[FragmentUse] = []

    def find(use: FragmentUse) -> str:
        asked.append(use)
        return "{}"

    uses = ["x" * 101, {"id": "f", "version": "1" * 101}, "f"]
    found = merge_fragments({"fragments": uses}, find)
    assert asked == [FragmentUse("f")]
    assert [each.type for each in found.mistakes] == [MistakeType.INVALID] * 2
