"""What became of the moves that go on after their call: who asked for what, and how it went."""

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
from cogwork.resource.moments import timestamp

MOST = 100
"""Executions that are remembered, beside those that are under way."""
REMEMBERED = 24 * 3600.0
"""Seconds for which an execution can be asked about, once it is over."""


@dataclass(slots=True)
class Execution:
    """One move. It has a single plan, since nothing here plans again."""

    component: str
    steps: Sequence[Pose]
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    plan_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    history: list[PlanStatus] = field(default_factory=list)
    """The newest status last."""

    @property
    def status(self) -> PlanStatus:
        return self.history[-1]

    @property
    def is_active(self) -> bool:
        return self.status.state == PlanState.PLAN_STATE_IN_PROGRESS

    @property
    def listed(self) -> PlanStatusWithID:
        return PlanStatusWithID(
            plan_id=self.plan_id,
            execution_id=self.id,
            component_name=self.component,
            status=self.status,
        )

    @property
    def told(self) -> PlanWithStatus:
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


class Plans:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._executions: list[Execution] = []

    def begin(self, component: str, steps: Sequence[Pose]) -> Execution:
        execution = Execution(component, steps)
        execution.history.append(self._status(PlanState.PLAN_STATE_IN_PROGRESS))
        self._executions = [*self._remembered(), execution]
        return execution

    def end(self, execution: Execution, state: PlanState.ValueType, reason: str = "") -> None:
        """The first end counts."""
        if execution.is_active:
            execution.history.append(self._status(state, reason))

    def listed(self, only_active: bool) -> list[PlanStatusWithID]:
        """The oldest status first."""
        known = [each for each in self._remembered() if each.is_active or not only_active]
        known.sort(key=lambda each: each.status.timestamp.ToNanoseconds())
        return [each.listed for each in known]

    def newest(self, component: str, execution_id: str | None = None) -> Execution:
        """The newest of a component, or the one with that id."""
        for each in reversed(self._remembered()):
            if each.component == component and execution_id in (None, each.id):
                return each
        which = f'no execution "{execution_id}" of' if execution_id else "no plan for"
        raise NotFound(
            f'there is {which} "{component}": move_on_map and move_on_globe begin them, and one '
            f"that is over is forgotten after {REMEMBERED / 3600:g} hours or {MOST} others"
        )

    def _remembered(self) -> list[Execution]:
        """Without those that are long over, which are forgotten here."""
        since = self._clock.time() - REMEMBERED
        over = [
            each
            for each in self._executions
            if not each.is_active and each.status.timestamp.ToNanoseconds() / 1e9 > since
        ]
        kept = {each.id for each in over[-MOST:]}
        self._executions = [each for each in self._executions if each.is_active or each.id in kept]
        return self._executions

    def _status(self, state: PlanState.ValueType, reason: str = "") -> PlanStatus:
        now = timestamp(self._clock.time())
        return PlanStatus(state=state, timestamp=now, reason=reason or None)
