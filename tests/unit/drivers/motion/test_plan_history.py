from __future__ import annotations

import pytest
from viam.proto.common import Pose
from viam.proto.service.motion import PlanState

from cogwork.core.clock import ManualClock
from cogwork.core.errors import NotFound
from cogwork.drivers.motion.plan_history import MAX_FINISHED, RETENTION, PlanHistory

SUCCEEDED = PlanState.PLAN_STATE_SUCCEEDED
STOPPED = PlanState.PLAN_STATE_STOPPED


@pytest.fixture
def plans(clock: ManualClock) -> PlanHistory:
    return PlanHistory(clock)


async def test_finished_plans_are_dropped_after_a_day(
    plans: PlanHistory, clock: ManualClock
) -> None:
    under_way, over = plans.begin("one", [Pose()]), plans.begin("other", [Pose()])
    await clock.advance(60)
    plans.end(over, SUCCEEDED)
    await clock.advance(RETENTION - 1)
    assert len(plans.list_statuses(only_active=False)) == 2
    await clock.advance(1)
    assert [each.execution_id for each in plans.list_statuses(only_active=False)] == [under_way.id]
    with pytest.raises(NotFound, match='no plan for "other"'):
        plans.find_newest("other")


async def test_number_of_finished_plans_is_limited(plans: PlanHistory) -> None:
    first = plans.begin("base", [])
    for _ in range(MAX_FINISHED + 10):
        plans.end(plans.begin("base", []), STOPPED)
    listed = plans.list_statuses(only_active=False)
    assert len(listed) == MAX_FINISHED + 1
    assert first.id in {each.execution_id for each in listed}


async def test_plans_are_listed_by_their_last_change(
    plans: PlanHistory, clock: ManualClock
) -> None:
    first, second = plans.begin("one", []), plans.begin("other", [])
    await clock.advance(1)
    plans.end(first, SUCCEEDED)
    assert [each.execution_id for each in plans.list_statuses(only_active=False)] == [
        second.id,
        first.id,
    ]


async def test_first_end_of_a_plan_is_final(plans: PlanHistory) -> None:
    execution = plans.begin("base", [Pose(x=1)])
    plans.end(execution, STOPPED, "somebody stopped it")
    plans.end(execution, SUCCEEDED)
    told = execution.plan_message
    assert (told.status.state, told.status.reason) == (STOPPED, "somebody stopped it")
    assert [each.state for each in told.status_history] == [PlanState.PLAN_STATE_IN_PROGRESS]
    assert told.plan.steps[0].step["base"].pose == Pose(x=1)
