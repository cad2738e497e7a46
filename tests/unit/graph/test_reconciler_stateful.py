"""Random edits, in mid-pass and between, against a naive model of what must come of them."""

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import pytest
from tests.sizes import size
from tests.unit.graph.world import (
    HANGS,
    OK,
    Deed,
    Script,
    Thing,
    World,
    fails,
    full,
    model,
    spec,
    stubborn,
    takes,
)

from cogwork.graph.name import Reference
from cogwork.graph.node import State
from cogwork.graph.plan import plan
from cogwork.graph.spec import Spec

FAMILIES = ("acme", "beta", "gamma")
EDITS = size(300, 2500)
NODES = size(60, 200)
EVENTUALLY = 5_000.0
"""Seconds on the manual clock after which everything must have come to rest."""


@dataclass(frozen=True)
class Size:
    seed: int
    edits: int
    nodes: int
    settle_every: int
    """How many edits there are between two looks at the whole, on average."""
    kinds: tuple[str, ...] = ("plain", "mutable")


# A few nodes are edited again before they are done; many make long chains and wide groups.
WALKS = [
    Size(1, EDITS, NODES, 12),
    Size(2, EDITS, NODES // 5, 6),
    Size(3, EDITS, 6, 4),
    Size(4, EDITS, 7, 5, kinds=("mutable",)),
]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: f"{walk.edits}-edits-{walk.nodes}-nodes")
async def test_random_edits(walk: Size) -> None:
    await Walk(walk).run()
    print(f"seed {walk.seed}: {walk.edits} edits over up to {walk.nodes} nodes")


class Walk:
    def __init__(self, size: Size) -> None:
        self.size = size
        self.rng = random.Random(size.seed)
        self.names = [f"n{number}" for number in range(size.nodes)]
        self.specs: dict[str, Spec] = {}
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
        ]

    async def run(self) -> None:
        trouble: list[dict[str, object]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: trouble.append(context))
        async with World(*FAMILIES[1:], seed=self.size.seed) as self.world:
            for _ in range(self.size.nodes // 2):
                self.add()
            for _ in range(self.size.edits):
                await self.edit()
                self.world.check()
                assert not trouble, trouble
                if self.rng.random() < 1 / self.size.settle_every:
                    await self.come_to_rest()
            await self.come_to_rest()
            await self.recover()
        assert not trouble, trouble

    async def edit(self) -> None:
        weights, edits = zip(*self.edits, strict=True)
        self.rng.choices(edits, weights)[0]()
        if self.rng.random() < 0.7:
            self.world.apply(*self.shuffled())
        for _ in range(self.rng.choice((0, 0, 0, 1, 2, 3, 5))):
            await asyncio.sleep(0)
        if self.rng.random() < 0.6:
            await self.world.advance(self.rng.choice((0, 0.3, 0.5, 1, 1, 2, 5, 30, 119.5)))

    def shuffled(self) -> list[Spec]:
        specs = list(self.specs.values())
        self.rng.shuffle(specs)
        return specs

    async def come_to_rest(self) -> None:
        """Wait until it is as it must be; then it has to stay so."""
        applied = self.world.apply(*self.shuffled(), revision="rest")
        end = self.world.now + EVENTUALLY
        while ((wrong := self.wrong()) or not applied.done()) and self.world.now < end:
            await self.world.advance(30)
        assert not wrong, wrong
        assert applied.done(), "the configuration is never applied"
        await self.world.advance(70)
        assert not (wrong := self.wrong()), wrong
        self.world.check()
        self.plan_twice()

    async def recover(self) -> None:
        """From wherever it is, a good configuration leads to all ready."""
        self.world.scripts.clear()
        for supplier in self.world.suppliers.values():
            if not supplier.available:
                supplier.come_back()
        self.specs = {
            name: spec(name, " ".join(self.some(self.names[:number])), settings=self.settings)
            for number, name in enumerate(self.names)
        }
        self.world.apply(*self.shuffled(), revision="good")
        await self.world.advance(200)
        assert not (wrong := self.wrong()), wrong
        assert {node.state for node in self.world.graph.nodes.values()} == {State.READY}
        assert len(self.world.graph.nodes) == len(self.names)

    def add(self) -> None:
        name = self.rng.choice(self.names)
        self.specs[name] = spec(
            name,
            " ".join(self.some(self.names)) if self.rng.random() < 0.5 else "",
            " ".join(self.some(self.names)) if self.rng.random() < 0.3 else "",
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
        self.change(needs=tuple(map(Reference, self.some(self.names))))

    def change_wants(self) -> None:
        self.change(wants=tuple(map(Reference, self.some(self.names))))

    def change_fault(self) -> None:
        self.change(fault=self.rng.choice((None, "a wrong attribute")))

    def change(self, **changes: object) -> None:
        if self.specs:
            name = self.rng.choice(list(self.specs))
            self.specs[name] = replace(self.specs[name], **changes)  # type: ignore[arg-type]

    def change_script(self) -> None:
        self.world.scripts[self.rng.choice(self.names)] = Script(
            self.deed(), self.deed(), self.deed()
        )

    def deed(self) -> Deed:
        late = self.rng.choice((0, 0.5, 3, 20))
        slow = takes(self.rng.choice((0.5, 1, 3, 20)))
        return self.rng.choice((OK, OK, OK, slow, slow, fails(after=late), HANGS, stubborn(late)))

    def move_provider(self) -> None:
        supplier = self.world.suppliers[self.rng.choice(FAMILIES)]
        if supplier.available and self.rng.random() < 0.5:
            supplier.leave()
        else:
            supplier.come_back()

    def lose(self) -> None:
        self.world.lose(self.rng.choice(self.names), "the cable was pulled")

    def some(self, names: list[str]) -> list[str]:
        """A few, near each other, so that chains and circles come up at every size."""
        if not names:
            return []
        start = self.rng.randrange(len(names))
        near = names[start : start + 8]
        return self.rng.sample(near, min(len(near), self.rng.choice((0, 1, 1, 1, 2, 3))))

    def wrong(self) -> list[str]:
        """What is not as it must be once all has come to rest."""
        world, wrong = self.world, []
        nodes = {name.short: node for name, node in world.graph.nodes.items()}
        if nodes.keys() != self.specs.keys():
            wrong.append(f"nodes {sorted(nodes)} instead of {sorted(self.specs)}")
            return wrong
        is_ready = {name for name, node in nodes.items() if node.state is State.READY}
        for name, (can, must) in self.expected(is_ready).items():
            node = nodes[name]
            if (name in is_ready and not can) or (name not in is_ready and must):
                wrong.append(f"{name} is {node.state.name}: {world.reason(name)}")
            if name not in is_ready and not (node.state is State.UNHEALTHY and world.reason(name)):
                wrong.append(f"{name} is {node.state.name} without a reason")
        if not wrong:
            wrong += self.wrong_objects(is_ready)
        return wrong

    def expected(self, is_ready: set[str]) -> dict[str, tuple[bool, bool]]:
        """Whether each can be ready, and whether it must.

        One whose constructor is bad may have an object from better times.
        """
        needs = {name: self.references(item.needs) for name, item in self.specs.items()}
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

    def wrong_objects(self, is_ready: set[str]) -> list[str]:
        world, wrong = self.world, []
        held: set[Thing] = set()
        for name in is_ready:
            thing, item = world.thing(name), self.specs[name]
            held.add(thing)
            given = {*self.references(item.needs), *self.usable_wants(name) & is_ready}
            if thing.holds != {full(other): world.thing(other) for other in given}:
                wrong.append(f"{thing} holds {thing.holds}, not {sorted(given)}")
            if (thing.settings, thing.model) != (item.settings, item.model):
                wrong.append(f"{thing} is not what was configured")
        orphans = [thing for thing in world.things if not (thing in held or self.is_late(thing))]
        if orphans or not held <= set(world.things):
            wrong.append(f"{orphans} are nobody's, {held - set(world.things)} are not there")
        wrong += [
            f"{call.what} of {call.name.short} still runs"
            for call in world.running
            if not self.is_bad(call.name.short)
        ]
        return wrong

    def is_late(self, thing: Thing) -> bool:
        return thing.late and self.is_bad(thing.name.short)

    def is_bad(self, name: str) -> bool:
        """Whether its constructor cannot succeed."""
        deed = self.world.scripts.get(name, Script()).build
        assert isinstance(deed, Deed)
        return deed.hangs or deed.error is not None

    def references(self, references: tuple[Reference, ...]) -> list[str]:
        return [reference.short for reference in references]

    def usable_wants(self, name: str) -> set[str]:
        both = {
            other: [*self.references(item.needs), *self.references(item.wants)]
            for other, item in self.specs.items()
        }
        wants = set(self.references(self.specs[name].wants)) & self.specs.keys()
        return {want for want in wants if want != name and name not in reachable(want, both)}

    def plan_twice(self) -> None:
        graph, now = self.world.graph, self.world.clock.monotonic()
        first, second = (
            plan(graph._desired, graph._nodes, self.world.providers.offer, now) for _ in range(2)
        )
        assert first == second
        assert list(first.steps) == list(second.steps)
        for name in first.steps:
            assert graph.nodes[name].state is State.UNHEALTHY, first.steps[name]


def reachable(start: str, graph: Mapping[str, list[str]]) -> set[str]:
    found: set[str] = set()
    front = list(graph.get(start, ()))
    while front:
        name = front.pop()
        if name not in found:
            found.add(name)
            front.extend(graph.get(name, ()))
    return found
