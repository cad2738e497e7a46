"""Random edits during and between plans, checked against a naive model of the result."""

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pytest
from tests.support.sizes import size
from tests.support.waiting import run_others
from tests.unit.graph.world import (
    HANGS,
    OK,
    CallBehavior,
    Script,
    Thing,
    World,
    fails,
    full_name,
    model,
    spec,
    stubborn,
    takes,
)

from cogwork.graph.name import Reference
from cogwork.graph.node import NodeState
from cogwork.graph.plan import plan
from cogwork.graph.reconciler import Outcome
from cogwork.graph.spec import Spec

FAMILIES = ("acme", "beta", "gamma")
EDITS = size(300, 2500)
NODES = size(60, 200)
SETTLE_SECONDS = 5_000.0
"""Seconds on the manual clock after which everything must have settled."""


@dataclass(frozen=True)
class WalkConfig:
    seed: int
    edits: int
    nodes: int
    settle_every: int
    """Average number of edits between two checks of the whole state."""
    kinds: tuple[str, ...] = ("plain", "mutable")
    discovers: bool = False
    """Whether some resources are discovered instead of configured."""


# With few nodes, edits hit nodes under construction; many make long chains and wide groups.
WALK_CONFIGS = [
    WalkConfig(1, EDITS, NODES, 12),
    WalkConfig(2, EDITS, NODES // 5, 6),
    WalkConfig(3, EDITS, 6, 4),
    WalkConfig(4, EDITS, 7, 5, kinds=("mutable",)),
    WalkConfig(5, EDITS, NODES, 12, discovers=True),
    WalkConfig(6, EDITS, 7, 5, discovers=True),
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "walk", WALK_CONFIGS, ids=lambda walk: f"{walk.seed}-{walk.edits}-edits-{walk.nodes}-nodes"
)
async def test_random_edits_settle_in_the_expected_state(walk: WalkConfig) -> None:
    await RandomWalk(walk).run()
    print(f"seed {walk.seed}: {walk.edits} edits over up to {walk.nodes} nodes")


class RandomWalk:
    def __init__(self, size: WalkConfig) -> None:
        self.size = size
        self.rng = random.Random(size.seed)
        self.names = [f"n{number}" for number in range(size.nodes)]
        self.specs: dict[str, Spec] = {}
        self.discovered: set[str] = set()
        self.settings = 0
        self.edits: list[tuple[int, Callable[[], None]]] = [
            (8, self.add),
            (3, self.remove),
            (6, self.change_settings),
            (2, self.change_model),
            (4, self.change_needs),
            (4, self.change_wants),
            (1, self.change_fault),
            (6, self.change_script),
            (2, self.move_provider),
            (4, self.lose),
            (6 if size.discovers else 0, self.discover),
        ]

    async def run(self) -> None:
        unhandled_errors: list[dict[str, object]] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: unhandled_errors.append(context)
        )
        async with World(*FAMILIES[1:], seed=self.size.seed) as self.world:
            for _ in range(self.size.nodes // 2):
                self.add()
            for _ in range(self.size.edits):
                await self.edit()
                self.world.check()
                assert not unhandled_errors, unhandled_errors
                if self.rng.random() < 1 / self.size.settle_every:
                    await self.settle()
            await self.settle()
            await self.recover()
        assert not unhandled_errors, unhandled_errors

    async def edit(self) -> None:
        weights, edits = zip(*self.edits, strict=True)
        self.rng.choices(edits, weights)[0]()
        if self.rng.random() < 0.7:
            self.apply()
        await run_others(self.rng.choice((0, 0, 0, 1, 2, 3, 5)))
        if self.rng.random() < 0.6:
            await self.world.advance(self.rng.choice((0, 0.3, 0.5, 1, 1, 2, 5, 30, 119.5)))

    def apply(self, revision: str = "") -> asyncio.Future[Outcome]:
        specs = self.shuffle_specs()
        discovered = [each for each in specs if each.name.short in self.discovered]
        configured = [each for each in specs if each.name.short not in self.discovered]
        self.world.graph.set_discovered(discovered)
        return self.world.apply(*configured, revision=revision)

    def shuffle_specs(self) -> list[Spec]:
        specs = list(self.specs.values())
        self.rng.shuffle(specs)
        return specs

    async def settle(self) -> None:
        """Wait until the state is as expected and check that it stays so."""
        applied = self.apply("rest")
        end = self.world.now + SETTLE_SECONDS
        while (
            (mismatches := self.find_mismatches()) or not applied.done()
        ) and self.world.now < end:
            await self.world.advance(30)
        assert not mismatches, mismatches
        assert applied.done(), "the configuration is never applied"
        await self.world.advance(70)
        assert not (mismatches := self.find_mismatches()), mismatches
        self.world.check()
        self.plan_twice()

    async def recover(self) -> None:
        """Check that a valid configuration makes all nodes ready from any state."""
        self.world.scripts.clear()
        for supplier in self.world.suppliers.values():
            if not supplier.available:
                supplier.come_back()
        self.specs = {
            name: spec(
                name, " ".join(self.sample_names(self.names[:number])), settings=self.settings
            )
            for number, name in enumerate(self.names)
        }
        self.apply("good")
        await self.world.advance(200)
        assert not (mismatches := self.find_mismatches()), mismatches
        assert {node.state for node in self.world.graph.nodes.values()} == {NodeState.READY}
        assert len(self.world.graph.nodes) == len(self.names)

    def add(self) -> None:
        name = self.rng.choice(self.names)
        self.specs[name] = spec(
            name,
            " ".join(self.sample_names(self.names)) if self.rng.random() < 0.5 else "",
            " ".join(self.sample_names(self.names)) if self.rng.random() < 0.3 else "",
            settings=self.settings,
            kind=self.rng.choice(self.size.kinds),
            family=self.rng.choice(FAMILIES),
        )

    def remove(self) -> None:
        if self.specs:
            del self.specs[self.rng.choice(list(self.specs))]

    def change_settings(self) -> None:
        self.settings += 1
        self.change(settings=self.settings if self.rng.random() < 0.8 else 0)

    def change_model(self) -> None:
        self.change(model=model(self.rng.choice(self.size.kinds), self.rng.choice(FAMILIES)))

    def change_needs(self) -> None:
        self.change(needs=tuple(map(Reference, self.sample_names(self.names))))

    def change_wants(self) -> None:
        self.change(wants=tuple(map(Reference, self.sample_names(self.names))))

    def change_fault(self) -> None:
        self.change(fault=self.rng.choice((None, "a wrong attribute")))

    def change(self, **changes: object) -> None:
        if self.specs:
            name = self.rng.choice(list(self.specs))
            self.specs[name] = replace(self.specs[name], **changes)  # type: ignore[arg-type]

    def change_script(self) -> None:
        self.world.scripts[self.rng.choice(self.names)] = Script(
            self.behavior(), self.behavior(), self.behavior()
        )

    def behavior(self) -> CallBehavior:
        late = self.rng.choice((0, 0.5, 3, 20))
        slow = takes(self.rng.choice((0.5, 1, 3, 20)))
        return self.rng.choice((OK, OK, OK, slow, slow, fails(after=late), HANGS, stubborn(late)))

    def move_provider(self) -> None:
        supplier = self.world.suppliers[self.rng.choice(FAMILIES)]
        if supplier.available and self.rng.random() < 0.5:
            supplier.leave()
        else:
            supplier.come_back()

    def discover(self) -> None:
        """Let a resource that was configured be discovered, or the other way round."""
        self.discovered ^= {self.rng.choice(self.names)}
        if self.rng.random() < 0.5:
            self.apply()

    def lose(self) -> None:
        self.world.lose(self.rng.choice(self.names), "the cable was pulled")

    def sample_names(self, names: list[str]) -> list[str]:
        """Return a few names near each other, so that chains and cycles occur at every size."""
        if not names:
            return []
        start = self.rng.randrange(len(names))
        near = names[start : start + 8]
        return self.rng.sample(near, min(len(near), self.rng.choice((0, 1, 1, 1, 2, 3))))

    def find_mismatches(self) -> list[str]:
        """Return what differs from the expected settled state."""
        world, mismatches = self.world, []
        nodes = {name.short: node for name, node in world.graph.nodes.items()}
        if nodes.keys() != self.specs.keys():
            mismatches.append(f"nodes {sorted(nodes)} instead of {sorted(self.specs)}")
            return mismatches
        is_ready = {name for name, node in nodes.items() if node.state is NodeState.READY}
        for name, (can, must) in self.expected_readiness(is_ready).items():
            node = nodes[name]
            if (name in is_ready and not can) or (name not in is_ready and must):
                mismatches.append(f"{name} is {node.state.name}: {world.reason(name)}")
            if name not in is_ready and not (
                node.state is NodeState.UNHEALTHY and world.reason(name)
            ):
                mismatches.append(f"{name} is {node.state.name} without a reason")
        if not mismatches:
            mismatches += self.find_object_mismatches(is_ready)
        return mismatches

    def expected_readiness(self, is_ready: set[str]) -> dict[str, tuple[bool, bool]]:
        """Return whether each node can be ready and whether it must be.

        A node whose constructor now fails may still have an earlier object.
        """
        needs = {name: self.short_names(item.needs) for name, item in self.specs.items()}
        expected: dict[str, tuple[bool, bool]] = {}
        for name, item in self.specs.items():
            can = (
                item.fault is None
                and self.world.suppliers[item.model.family].available
                and all(need in is_ready for need in needs[name])
                and name not in reachable(name, needs)
            )
            expected[name] = (can, can and not self.is_bad(name))
        return expected

    def find_object_mismatches(self, is_ready: set[str]) -> list[str]:
        world, mismatches = self.world, []
        held: set[Thing] = set()
        for name in is_ready:
            thing, item = world.thing(name), self.specs[name]
            held.add(thing)
            given = {*self.short_names(item.needs), *self.usable_wants(name) & is_ready}
            if thing.holds != {full_name(other): world.thing(other) for other in given}:
                mismatches.append(f"{thing} holds {thing.holds}, not {sorted(given)}")
            if (thing.settings, thing.model) != (item.settings, item.model):
                mismatches.append(f"{thing} is not what was configured")
        orphans = [thing for thing in world.things if not (thing in held or self.is_late(thing))]
        if orphans or not held <= set(world.things):
            mismatches.append(f"{orphans} are nobody's, {held - set(world.things)} are not there")
        mismatches += [
            f"{call.what} of {call.name.short} still runs"
            for call in world.running
            if not self.is_bad(call.name.short)
        ]
        return mismatches

    def is_late(self, thing: Thing) -> bool:
        return thing.late and self.is_bad(thing.name.short)

    def is_bad(self, name: str) -> bool:
        """Return whether the constructor of the name cannot succeed."""
        build_behavior = self.world.scripts.get(name, Script()).build
        assert isinstance(build_behavior, CallBehavior)
        return build_behavior.hangs or build_behavior.error is not None

    def short_names(self, references: tuple[Reference, ...]) -> list[str]:
        return [reference.short for reference in references]

    def usable_wants(self, name: str) -> set[str]:
        both = {
            other: [*self.short_names(item.needs), *self.short_names(item.wants)]
            for other, item in self.specs.items()
        }
        wants = set(self.short_names(self.specs[name].wants)) & self.specs.keys()
        return {want for want in wants if want != name and name not in reachable(want, both)}

    def plan_twice(self) -> None:
        graph, now = self.world.graph, self.world.clock.monotonic()
        desired = {**graph._desired, **graph._standalone._specs}
        first, second = (
            plan(desired, graph._nodes, self.world.providers.offer, now) for _ in range(2)
        )
        assert first == second
        assert list(first.steps) == list(second.steps)
        for name in first.steps:
            assert graph.nodes[name].state is NodeState.UNHEALTHY, first.steps[name]


def reachable(start: str, graph: Mapping[str, list[str]]) -> set[str]:
    found: set[str] = set()
    front = list(graph.get(start, ()))
    while front:
        name = front.pop()
        if name not in found:
            found.add(name)
            front.extend(graph.get(name, ()))
    return found
