"""The history of plans, which continue after the call that started them."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

from viam.proto.common import Pose
from viam.proto.service.motion import (
    ComponentState,
    Plan,
    PlanState,
    PlanStatus,
    PlanStatusWithID,
    PlanStep,
    PlanWithStatus,
)

from cogwork.core.clock import Clock
from cogwork.core.errors import NotFound
from cogwork.resource.messages.timestamps import to_timestamp

MAX_FINISHED = 100
"""Number of finished executions to keep, in addition to the running ones."""
RETENTION = 24 * 3600.0
"""Seconds to keep a finished execution."""


@dataclass(slots=True)
class MotionExecution:
    """One move. It has a single plan, because this service does not replan."""

    component: str
    steps: Sequence[Pose]
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    plan_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    history: list[PlanStatus] = field(default_factory=list)
    """Statuses, the newest last."""

    @property
    def status(self) -> PlanStatus:
        return self.history[-1]

    @property
    def is_active(self) -> bool:
        return self.status.state == PlanState.PLAN_STATE_IN_PROGRESS

    @property
    def status_message(self) -> PlanStatusWithID:
        return PlanStatusWithID(
            plan_id=self.plan_id,
            execution_id=self.id,
            component_name=self.component,
            status=self.status,
        )

    @property
    def plan_message(self) -> PlanWithStatus:
        return PlanWithStatus(
            plan=Plan(
                id=self.plan_id,
                execution_id=self.id,
                component_name=self.component,
                steps=[
                    PlanStep(step={self.component: ComponentState(pose=pose)})
                    for pose in self.steps
                ],
            ),
            status=self.status,
            status_history=self.history[:-1],
        )


class PlanHistory:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._executions: list[MotionExecution] = []

    def begin(self, component: str, steps: Sequence[Pose]) -> MotionExecution:
        execution = MotionExecution(component, steps)
        execution.history.append(self._make_status(PlanState.PLAN_STATE_IN_PROGRESS))
        self._executions = [*self._prune(), execution]
        return execution

    def end(self, execution: MotionExecution, state: PlanState.ValueType, reason: str = "") -> None:
        """Record the end of an execution; only the first end counts."""
        if execution.is_active:
            execution.history.append(self._make_status(state, reason))

    def list_statuses(self, only_active: bool) -> list[PlanStatusWithID]:
        """Return the statuses, the oldest first."""
        known = [each for each in self._prune() if each.is_active or not only_active]
        known.sort(key=lambda each: each.status.timestamp.ToNanoseconds())
        return [each.status_message for each in known]

    def find_newest(self, component: str, execution_id: str | None = None) -> MotionExecution:
        """Return the newest execution of a component, or the execution with the given ID."""
        for each in reversed(self._prune()):
            if each.component == component and execution_id in (None, each.id):
                return each
        which = f'no execution "{execution_id}" of' if execution_id else "no plan for"
        raise NotFound(
            f'there is {which} "{component}": only move_on_map and move_on_globe create plans, and '
            f"a finished plan is dropped after {RETENTION / 3600:g} hours, or when {MAX_FINISHED} "
            "newer plans have finished"
        )

    def _prune(self) -> list[MotionExecution]:
        """Drop expired executions and return the others."""
        since = self._clock.time() - RETENTION
        finished = [
            each
            for each in self._executions
            if not each.is_active and each.status.timestamp.ToNanoseconds() / 1e9 > since
        ]
        kept = {each.id for each in finished[-MAX_FINISHED:]}
        self._executions = [each for each in self._executions if each.is_active or each.id in kept]
        return self._executions

    def _make_status(self, state: PlanState.ValueType, reason: str = "") -> PlanStatus:
        now = to_timestamp(self._clock.time())
        return PlanStatus(state=state, timestamp=now, reason=reason or None)
