"""Which machines a rollout reaches, and when it goes on or pauses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.cloud.updates.rollout import (
    Choice,
    Counts,
    Rollout,
    RolloutState,
    Trial,
    choose_version,
    is_reached,
    pause_if_failing,
    percentile_of,
    resume,
    widen,
)
from cogwork.core.clock import ManualClock
from cogwork.core.versions.product import Product
from cogwork.wire.messages.update_method import Outcome

HOUR = 3_600_000_000
PARTS = [f"part-{number}" for number in range(5000)]
NEW = Rollout(
    "new",
    *("stable", Product.SERVER, "2.0.0"),
    stages=(1, 10, 50, 100),
    stage_time=24 * HOUR,
    max_failures=5,
    stage=0,
    stage_began=0,
    reach=1,
    widened_at=0,
)
COMPLETE = replace(NEW, id="old", version="1.0.0", stage=3, reach=100, is_superseded=True)
NOT_OFFERED = Trial()


def in_stage(stage: int, rollout: Rollout = NEW) -> Rollout:
    return replace(rollout, stage=stage, reach=rollout.stages[stage])


def inside(rollout: Rollout) -> str:
    return next(each for each in PARTS if is_reached(rollout, each))


def outside(rollout: Rollout) -> str:
    return next(each for each in PARTS if not is_reached(rollout, each))


@pytest.mark.parametrize("stage", range(4))
def test_stage_has_its_share_of_the_parts(stage: int) -> None:
    rollout = in_stage(stage)
    share = sum(is_reached(rollout, each) for each in PARTS) / len(PARTS) * 100
    assert share == pytest.approx(rollout.share, abs=2)


@given(st.text(), st.text())
def test_part_of_a_stage_stays_in_all_later_ones(rollout_id: str, part: str) -> None:
    stages = [is_reached(in_stage(stage, replace(NEW, id=rollout_id)), part) for stage in range(4)]
    assert stages == sorted(stages)
    assert stages[-1]
    assert 0 <= percentile_of(rollout_id, part) < 100


def test_another_rollout_begins_with_other_parts() -> None:
    other = in_stage(1, replace(NEW, id="other"))
    first = {each for each in PARTS if is_reached(in_stage(1), each)}
    second = {each for each in PARTS if is_reached(other, each)}
    assert len(first & second) < len(first) / 4


def test_part_gets_the_version_when_its_stage_begins() -> None:
    part = next(each for each in PARTS if 10 <= percentile_of(NEW.id, each) < 50)
    chosen = [
        choose_version([(in_stage(stage), NOT_OFFERED)], part, "1.0.0").version
        for stage in range(4)
    ]
    assert chosen == ["1.0.0", "1.0.0", "2.0.0", "2.0.0"]


def test_paused_rollout_changes_nothing() -> None:
    paused = replace(in_stage(2), paused_at=1)
    part = inside(paused)
    assert choose_version([(paused, NOT_OFFERED)], part, "1.0.0") == Choice("1.0.0")
    waiting = Trial("1.0.0", Outcome.WAITING)
    assert choose_version([(paused, waiting)], part, "1.0.0") == Choice("1.0.0")
    updated = Trial("1.0.0", Outcome.GOOD)
    assert choose_version([(paused, updated)], part, "2.0.0") == Choice("2.0.0")


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.ROLLED_BACK])
@pytest.mark.parametrize("current", ["1.0.0", "2.0.0", ""])
def test_part_that_failed_goes_back_and_stays(outcome: Outcome, current: str) -> None:
    """Also if its agent did not take it back, or lost both versions."""
    trial = Trial("1.0.0", outcome)
    for rollout in (NEW, in_stage(3), replace(NEW, paused_at=1)):
        part = inside(in_stage(3))
        assert choose_version([(rollout, trial)], part, current) == Choice("1.0.0")


def test_part_that_failed_gets_the_next_version() -> None:
    failed = Trial("1.0.0", Outcome.ROLLED_BACK)
    mended = in_stage(2, replace(NEW, id="mended", version="2.0.1"))
    earlier = (replace(NEW, is_superseded=True), failed)
    chosen = choose_version([(mended, NOT_OFFERED), earlier], inside(mended), "1.0.0")
    assert chosen == Choice("2.0.1", mended)
    chosen = choose_version([(mended, NOT_OFFERED), earlier], outside(mended), "1.0.0")
    assert chosen == Choice("1.0.0")


def test_part_that_was_away_gets_the_complete_version_first() -> None:
    chosen = choose_version([(NEW, NOT_OFFERED), (COMPLETE, NOT_OFFERED)], outside(NEW), "0.9.0")
    assert chosen == Choice("1.0.0", COMPLETE)


def test_superseded_rollout_ends_unless_it_was_complete() -> None:
    half = in_stage(2, COMPLETE)
    assert half.state is RolloutState.SUPERSEDED
    part = next(each for each in PARTS if is_reached(half, each) and not is_reached(NEW, each))
    chosen = choose_version([(NEW, NOT_OFFERED), (half, NOT_OFFERED)], part, "0.9.0")
    assert chosen == Choice("0.9.0")


def test_part_without_a_version_gets_one_unless_it_is_paused() -> None:
    part = outside(NEW)
    assert choose_version([(NEW, NOT_OFFERED)], part, "") == Choice("2.0.0", NEW)
    both = [(NEW, NOT_OFFERED), (COMPLETE, NOT_OFFERED)]
    assert choose_version(both, part, "") == Choice("1.0.0", COMPLETE)
    assert choose_version([(replace(NEW, paused_at=1), NOT_OFFERED)], part, "") == Choice("")


async def test_stages_follow_each_other_in_their_time() -> None:
    clock, rollout, shares, reaches = ManualClock(0.0), NEW, [], []
    for _ in range(80):
        rollout = widen(rollout, Counts(good=40), int(clock.time() * 1e6))
        shares.append(rollout.share)
        reaches.append(rollout.reach)
        await clock.advance(3600)
    assert [shares.count(each) for each in (1, 10, 50, 100)] == [24, 24, 24, 8]
    # Within a stage, it doubles wave by wave.
    assert [*dict.fromkeys(reaches)] == [1, 2, 4, 8, 10, 20, 40, 50, 100]
    assert rollout.state is RolloutState.COMPLETE


@pytest.mark.parametrize(
    ("wave", "goes_on"),
    [
        (Counts(), True),  # a small fleet has no machine in the first stage
        (Counts(good=1), True),
        (Counts(good=1, waiting=1), False),
        (Counts(waiting=2), False),
        (Counts(good=3, waiting=3), True),
        (Counts(good=3, waiting=4), False),
        (Counts(good=99, failed=5), True),
    ],
)
def test_next_stage_needs_enough_good_reports(wave: Counts, goes_on: bool) -> None:
    assert widen(NEW, wave, 24 * HOUR).stage == int(goes_on)
    assert widen(NEW, wave, 24 * HOUR - 1).stage == 0


def test_next_wave_waits_for_reports_and_time() -> None:
    widening = replace(in_stage(1), reach=4, widened_at=HOUR)
    assert widening.state is RolloutState.RUNNING
    assert widen(widening, Counts(good=3, waiting=4), 2 * HOUR) == widening
    assert widen(widening, Counts(good=4, waiting=4), HOUR + 299_999_999) == widening
    wider = widen(widening, Counts(good=4, waiting=4), HOUR + 300_000_000)
    assert (wider.stage, wider.reach, wider.widened_at) == (1, 8, HOUR + 300_000_000)
    assert replace(in_stage(3), reach=50).state is RolloutState.RUNNING


@pytest.mark.parametrize("changes", [{"paused_at": 1}, {"is_superseded": True}])
def test_rollout_that_ended_is_not_widened(changes: dict[str, Any]) -> None:
    ended = replace(NEW, **changes)
    assert widen(ended, Counts(good=100), 100 * HOUR) == ended


@pytest.mark.parametrize(
    ("counts", "pauses"),
    [
        (Counts(failed=1), True),  # all of them
        (Counts(failed=1, waiting=1), False),
        (Counts(failed=2, waiting=10), False),
        (Counts(good=2, failed=1, waiting=10), True),
        (Counts(good=19, failed=1), False),
        (Counts(good=18, failed=1), True),
        (Counts(good=1000), False),
    ],
)
@pytest.mark.parametrize("stage", [0, 3])
def test_too_many_failures_pause(stage: int, counts: Counts, pauses: bool) -> None:
    judged = pause_if_failing(in_stage(stage), counts, HOUR)
    assert (judged.state is RolloutState.PAUSED) == pauses
    assert judged.paused_at == (HOUR if pauses else None)


def test_pause_says_why_and_stays_until_it_is_resumed() -> None:
    paused = pause_if_failing(NEW, Counts(good=18, failed=2), HOUR)
    assert paused.pause_reason == "2 of 20 machines failed (10.0 %, and 5 % are allowed)"
    assert pause_if_failing(paused, Counts(failed=1000), 100 * HOUR) == paused
    resumed = resume(paused, 100 * HOUR)
    assert (resumed.state, resumed.counted_from) == (RolloutState.RUNNING, 100 * HOUR)
    assert widen(resumed, Counts(), 101 * HOUR).stage == 0
    assert widen(resumed, Counts(), 124 * HOUR).stage == 1
