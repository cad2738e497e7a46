"""Building and closing many slow resources, against a bare `asyncio.gather` of the same sleeps.

Each round measures in sequence: 50 independent resources that take one second each; the same 50 in
three dependency groups plus one that hangs; and closing them in reverse order.

    python benchmarks/parallel_builds.py [--rounds 3]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Iterable

from cogwork.core.clock import SystemClock
from cogwork.graph.events import Event
from cogwork.graph.name import Api, ModelName, Reference, ResourceName
from cogwork.graph.node import NodeState
from cogwork.graph.provider import Dependencies, Offer, Providers
from cogwork.graph.reconciler import Reconciler
from cogwork.graph.spec import Spec

API = Api.parse("rdk:component:generic")
MODEL = ModelName.parse("slow")
MAX_RATIO = 1.3
COUNT = 50
BUILD_SECONDS = 1.0
CLOSE_SECONDS = 0.5
GROUPS = (20, 20, 10)


class SlowProvider:
    """A builder and provider whose resources are slow, and one of which hangs."""

    def offer(self, spec: Spec) -> Offer:
        del spec
        return Offer(self)

    async def build(self, spec: Spec, dependencies: Dependencies) -> object:
        del dependencies
        await (asyncio.Event().wait() if spec.settings == "hangs" else asyncio.sleep(BUILD_SECONDS))
        return object()

    async def reconfigure(self, resource: object, spec: Spec, dependencies: Dependencies) -> None:
        raise NotImplementedError

    async def close(self, resource: object) -> None:
        del resource
        await asyncio.sleep(CLOSE_SECONDS)


def ignore(event: Event) -> None:
    del event


def make_independent() -> list[Spec]:
    return [Spec(ResourceName(API, f"r{number}"), MODEL) for number in range(COUNT)]


def make_grouped() -> list[Spec]:
    specs = []
    for group, count in enumerate(GROUPS):
        before = GROUPS[group - 1] if group else 0
        needs = tuple(Reference(f"g{group - 1}-{number}") for number in range(before))
        specs += [
            Spec(ResourceName(API, f"g{group}-{number}"), MODEL, needs=needs)
            for number in range(count)
        ]
    return [*specs, Spec(ResourceName(API, "stuck"), MODEL, "hangs")]


async def wait_until_ready(reconciler: Reconciler, count: int) -> None:
    while sum(node.state is NodeState.READY for node in reconciler.nodes.values()) < count:  # noqa: ASYNC110 - as a client would
        await asyncio.sleep(0.001)


async def measure_reconciler(specs: list[Spec]) -> tuple[float, float]:
    """Return the seconds until 50 resources are ready, and until all are closed."""
    reconciler = Reconciler(Providers({"slow": SlowProvider()}), SystemClock(), observe=ignore)
    started = time.perf_counter()
    reconciler.apply(specs)
    await wait_until_ready(reconciler, COUNT)
    ready = time.perf_counter()
    left = await reconciler.aclose()
    assert not left, left
    return ready - started, time.perf_counter() - ready


async def measure_bare_gather(groups: Iterable[int], seconds: float) -> float:
    started = time.perf_counter()
    for count in groups:
        await asyncio.gather(*(asyncio.sleep(seconds) for _ in range(count)))
    return time.perf_counter() - started


async def measure(rounds: int) -> dict[str, float]:
    ratios: dict[str, list[float]] = {}
    for _ in range(rounds):
        build, _close = await measure_reconciler(make_independent())
        ratios.setdefault("50 independent", []).append(
            build / await measure_bare_gather([COUNT], BUILD_SECONDS)
        )
        build, close = await measure_reconciler(make_grouped())
        ratios.setdefault("three groups, one hanging", []).append(
            build / await measure_bare_gather(GROUPS, BUILD_SECONDS)
        )
        ratios.setdefault("closing in reverse", []).append(
            close / await measure_bare_gather(GROUPS, CLOSE_SECONDS)
        )
    return {name: statistics.median(values) for name, values in ratios.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    ratios = asyncio.run(measure(parser.parse_args().rounds))
    for name, ratio in ratios.items():
        print(f"{name:28} {ratio:.3f}x bare gather (at most {MAX_RATIO})")
    return 0 if max(ratios.values()) <= MAX_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
