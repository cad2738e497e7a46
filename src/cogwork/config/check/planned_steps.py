"""The steps that change a machine to another configuration, one for each resource."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from cogwork.config.check.diff import ConfigDiff
from cogwork.graph.name import ResourceName
from cogwork.graph.plan import Step


class PlannedStep(NamedTuple):
    resource: str
    action: str
    reason: str


def list_planned_steps(change: ConfigDiff) -> list[PlannedStep]:
    """Return the steps in order. A resource that is closed and built again has one step."""
    first: dict[ResourceName, Step] = {}
    for step in _iterate_steps(change):
        first.setdefault(step.name, step)
    return [
        PlannedStep(str(name), step.action.value, _explain(step, change.changed_keys.get(name)))
        for name, step in first.items()
    ]


def _iterate_steps(change: ConfigDiff) -> Iterator[Step]:
    run = change.dry_run
    yield from chain.from_iterable(run.closing)
    yield from chain.from_iterable(run.building)
    yield from run.blocked


def _explain(step: Step, changed: str | None) -> str:
    return f"{step.why} ({changed})" if changed else step.why
