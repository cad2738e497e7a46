"""Repeated edits of one attribute in a machine of 1,000 resources.

Print the time of a change from text to ready, relative to parse + validate + plan in the same
run, and check that only the edited resource and its dependents are replaced.

    python benchmarks/reconfigure.py [--resources 1000] [--edits 200]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cogwork.config.check.checker import check
from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.loader import LoadedConfig, load
from cogwork.config.schema.fields import Attributes
from cogwork.config.text.json_reader import read_json
from cogwork.config.text.positions import Json
from cogwork.config.text.substitution import substitute
from cogwork.core.clock import SystemClock
from cogwork.graph.events import Event
from cogwork.graph.name import Api, ModelName, ResourceName
from cogwork.graph.plan import plan
from cogwork.graph.provider import Dependencies, Providers
from cogwork.graph.reconciler import Applied, Reconciler
from cogwork.resource.model import Model
from cogwork.resource.registry import Registry

API = Api.parse("rdk:component:generic")
MAX_OVERALL_RATIO = 3.0
MAX_PLAN_RATIO = 0.5


class PartAttributes(Attributes):
    width_px: int
    height_px: int
    rate: float
    label: str
    enabled: bool
    limits: list[float]


class BenchmarkPart:
    @classmethod
    async def new(
        cls, name: ResourceName, attributes: PartAttributes, dependencies: Dependencies
    ) -> BenchmarkPart:
        del name, attributes, dependencies
        return cls()


@dataclass(slots=True)
class Times:
    parse: list[float] = field(default_factory=list)
    validate: list[float] = field(default_factory=list)
    plan: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)


def build_config(resources: int) -> dict[str, Json]:
    """Return groups of ten: nine resources depend on the first, one of them indirectly."""
    components: list[Json] = []
    for number in range(resources):
        family, place = divmod(number, 10)
        depends: list[Json] = []
        if place == 9:
            depends = [f"part-{family * 10 + 8}"]
        elif place:
            depends = [f"part-{family * 10}"]
        attributes: dict[str, Json] = {
            "width_px": 640,
            "height_px": 480,
            "rate": 29.97,
            "label": f"part number {number}",
            "enabled": True,
            "limits": [0.5, 1.5, 2.5],
        }
        components.append(
            {
                "name": f"part-{number}",
                "api": str(API),
                "model": "part",
                "depends_on": depends,
                "attributes": attributes,
            }
        )
    return {"components": components, "revision": "0"}


def edit_config(config: dict[str, Json], number: int, value: int) -> str:
    components = config["components"]
    assert isinstance(components, list)
    component = components[number]
    assert isinstance(component, dict)
    attributes = component["attributes"]
    assert isinstance(attributes, dict)
    attributes["width_px"] = value
    config["revision"] = str(value)
    return json.dumps(config, indent=2)


def ignore(event: Event) -> None:
    del event


async def run(resources: int, edits: int) -> bool:
    registry = Registry([Model(API, ModelName.parse("part"), PartAttributes, BenchmarkPart.new)])
    around = LoadContext(registry, Path("/nonexistent"), {})
    providers = Providers({"built-in": registry})
    reconciler = Reconciler(providers, SystemClock(), observe=ignore)
    config = build_config(resources)
    text = json.dumps(config, indent=2)
    cold = await apply_change(reconciler, text, around)
    print(f"{resources} resources, {len(text) // 1024} KiB; cold start {cold * 1e3:.0f} ms")

    times = Times()
    random.seed(1)
    for edit in range(edits):
        number = random.randrange(resources)
        text = edit_config(config, number, 1000 + edit)
        before = {name: node.held for name, node in reconciler.nodes.items()}
        measure_stages(times, text, around, reconciler, providers)
        times.whole.append(await apply_change(reconciler, text, around))
        check_others_untouched(before, reconciler, number, resources)
    await reconciler.aclose()
    return print_report(times)


async def apply_change(reconciler: Reconciler, text: str, around: LoadContext) -> float:
    """Apply a change like the server: load in a thread, apply on the event loop."""
    started = time.perf_counter()
    loaded: LoadedConfig = await asyncio.to_thread(load, text, around)
    outcome = await reconciler.apply(loaded.result.specs, loaded.result.config.revision)
    elapsed = time.perf_counter() - started
    assert isinstance(outcome, Applied), outcome
    assert outcome.unhealthy == 0, outcome
    return elapsed


def measure_stages(
    times: Times,
    text: str,
    around: LoadContext,
    reconciler: Reconciler,
    providers: Providers,
) -> None:
    start = time.perf_counter()
    document = read_json(substitute(text, around.environment).text)
    parsed = time.perf_counter()
    checked = check(document.value, around)
    validated = time.perf_counter()
    desired = {spec.name: spec for spec in checked.specs}
    plan(desired, reconciler.nodes, providers.offer, now=0.0)
    planned = time.perf_counter()
    times.parse.append(parsed - start)
    times.validate.append(validated - parsed)
    times.plan.append(planned - validated)


def check_others_untouched(
    before: Mapping[ResourceName, object], reconciler: Reconciler, number: int, resources: int
) -> None:
    changed = {
        int(n.name.split("-")[1])
        for n, node in reconciler.nodes.items()
        if node.held is not before[n]
    }
    family, place = divmod(number, 10)
    if place == 0:
        expected = set(range(family * 10, min(family * 10 + 10, resources)))
    elif place == 8:
        expected = {number, number + 1} & set(range(resources))
    else:
        expected = {number}
    assert changed == expected, (number, changed, expected)


def print_report(times: Times) -> bool:
    parse, validate, planned, whole = (
        statistics.median(values) * 1e3
        for values in (times.parse, times.validate, times.plan, times.whole)
    )
    p99 = sorted(times.whole)[int(len(times.whole) * 0.99)] * 1e3
    overall = whole / (parse + validate + planned)
    plan_share = planned / (parse + validate)
    print(f"parse {parse:.1f} ms, validate {validate:.1f} ms, plan {planned:.1f} ms (medians)")
    print(f"change read to ready: median {whole:.1f} ms, p99 {p99:.1f} ms")
    print(f"whole / (parse + validate + plan) = {overall:.2f} (at most {MAX_OVERALL_RATIO})")
    print(f"plan / (parse + validate)         = {plan_share:.2f} (at most {MAX_PLAN_RATIO})")
    return overall <= MAX_OVERALL_RATIO and plan_share <= MAX_PLAN_RATIO


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--resources", type=int, default=1000)
    parser.add_argument("--edits", type=int, default=200)
    arguments = parser.parse_args()
    return 0 if asyncio.run(run(arguments.resources, arguments.edits)) else 1


if __name__ == "__main__":
    sys.exit(main())
