"""Suppression of repeated messages, compared with a naive model."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from cogwork.logs.dedup import MAX_PER_WINDOW, WINDOW, Dedup, RepeatSummary

keys = st.sampled_from("abc")
pauses = st.sampled_from([0.0, 0.001, 0.5, 1.0, 3.4, 5.0, 9.999, 10.0, 10.001, 3600.0])
steps = st.lists(st.tuples(pauses, st.sampled_from(["log", "log", "log", "due"]), keys))


class NaiveDedup:
    def __init__(self) -> None:
        self.printed: dict[str, list[float]] = defaultdict(list)
        self.suppressed_counts: dict[str, int] = defaultdict(int)

    def log(self, key: str, now: float) -> tuple[bool, int]:
        recent = [moment for moment in self.printed[key] if now - moment < WINDOW]
        if len(recent) >= MAX_PER_WINDOW:
            self.suppressed_counts[key] += 1
            return False, 0
        self.printed[key].append(now)
        return True, self.suppressed_counts.pop(key, 0)

    def due(self, now: float) -> set[tuple[str, int]]:
        free = {
            key
            for key in self.suppressed_counts
            if sum(now - moment < WINDOW for moment in self.printed[key]) < MAX_PER_WINDOW
        }
        return {(key, self.suppressed_counts.pop(key)) for key in free}


@given(steps)
def test_dedup_matches_the_naive_model(steps: list[tuple[float, str, str]]) -> None:
    dedup: Dedup[str] = Dedup()
    naive = NaiveDedup()
    now = 1000.0
    for pause, what, key in steps:
        now += pause
        if what == "due":
            assert {(s.key, s.suppressed) for s in dedup.take_due(now)} == naive.due(now)
        else:
            verdict = dedup.decide(key, now)
            assert (verdict.should_print, verdict.suppressed) == naive.log(key, now)
    left = {(s.key, s.suppressed) for s in dedup.close()}
    assert left == {(key, count) for key, count in naive.suppressed_counts.items() if count}


@given(steps)
def test_every_suppressed_message_is_counted(steps: list[tuple[float, str, str]]) -> None:
    dedup: Dedup[str] = Dedup(keys=2)
    now, logged, printed, counted = 0.0, 0, 0, 0
    for pause, what, key in steps:
        now += pause
        if what == "due":
            counted += sum(summary.suppressed for summary in dedup.take_due(now))
            continue
        verdict = dedup.decide(key, now)
        logged += 1
        printed += verdict.should_print
        counted += verdict.suppressed
        if (evicted := dedup.evict_oldest()) is not None:
            counted += evicted.suppressed
    counted += sum(summary.suppressed for summary in dedup.close())
    assert logged == printed + counted


def test_frequent_message_is_limited_per_window() -> None:
    dedup: Dedup[str] = Dedup()
    # 128 times per second, because floats represent these times exactly.
    moments = [number / 128 for number in range(60 * 128)]
    printed = [moment for moment in moments if dedup.decide("a", moment).should_print]
    assert len(printed) == 18
    for moment in moments:
        assert sum(moment - WINDOW < each <= moment for each in printed) <= MAX_PER_WINDOW


def test_first_suppressed_repeat_is_marked_and_counted_later() -> None:
    dedup: Dedup[str] = Dedup()
    verdicts = [dedup.decide("a", moment) for moment in (0, 1, 2, 3, 4)]
    assert [verdict.should_print for verdict in verdicts] == [True, True, True, False, False]
    assert [verdict.is_first_suppressed for verdict in verdicts] == [
        False,
        False,
        False,
        True,
        False,
    ]
    again = dedup.decide("a", 10.0)
    assert again.should_print
    assert again.suppressed == 2


def test_size_in_bytes_is_bounded() -> None:
    dedup: Dedup[str] = Dedup(size=10_000, size_of=len)
    evicted = 0
    for number in range(100):
        dedup.decide(f"{number:03}" + "x" * 997, 0.0)
        while dedup.evict_oldest() is not None:
            evicted += 1
        assert sum(map(len, dedup._messages)) <= 10_000
    assert evicted == 90
    assert not [*dedup.take_due(WINDOW)]
    assert dedup._size == 0


def test_number_of_keys_is_bounded() -> None:
    dedup: Dedup[int] = Dedup(keys=100)
    for number in range(10_000):
        dedup.decide(number, 0.0)
        dedup.evict_oldest()
    assert len(dedup._messages) == 100
    for _ in range(5):
        dedup.decide(9_999, 0.0)
    assert list(dedup.close()) == [RepeatSummary(9_999, 3)]


def test_message_without_repeats_is_forgotten_after_the_window() -> None:
    dedup: Dedup[str] = Dedup()
    dedup.decide("a", 0.0)
    assert list(dedup.take_due(WINDOW)) == []
    assert not dedup._messages
