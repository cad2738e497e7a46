"""Quotas of parts and organizations for log lines, with a clock that the test advances."""

from __future__ import annotations

import pytest

from cogwork.cloud.machine import log_quota
from cogwork.cloud.machine.log_quota import LogQuota, part_rates

LINE = 300
"""Bytes."""


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def quota(time: Time) -> LogQuota:
    return LogQuota(time)


def send(
    quota: LogQuota, time: Time, seconds: float, part: str = "p", organization: str = "o"
) -> int:
    """Send 100 lines five times a second, and return how many are admitted."""
    admitted, end = 0, time.now + seconds
    while time.now < end:
        if quota.admit(part, organization, 100, 100 * LINE).is_admitted:
            admitted += 100
        time.now += 0.2
    return admitted


def test_flood_is_slowed_down_and_then_refused(quota: LogQuota, time: Time) -> None:
    first = send(quota, time, 60)
    assert 60 * 250 <= first <= 60 * 250 + 3000, "as fast as the peak allows"
    burst = part_rates().sustained_lines.burst
    assert first + send(quota, time, 1140) <= burst + 1200 * 20 + 1000
    admitted = send(quota, time, 300)
    assert 0.8 * 300 * 20 <= admitted <= 300 * 20 + 1000
    while (verdict := quota.admit("p", "o", 1, LINE)).is_admitted:
        pass
    assert verdict.holder == "part"
    assert 0 < verdict.seconds <= 1000 / 20


def test_part_beside_a_flood_is_admitted_at_once(quota: LogQuota, time: Time) -> None:
    for _ in range(200):
        send(quota, time, 1, part="flood")
        verdict = quota.admit("quiet", "o", 1, LINE)
        assert verdict.is_admitted
        assert verdict.seconds == 0


def test_full_spool_of_a_machine_passes(quota: LogQuota, time: Time) -> None:
    """A machine that was offline for a week sends 64 MiB, in batches of 1 MiB."""
    for _ in range(64):
        verdict = quota.admit("p", "o", 100, 1 << 20)
        assert verdict.is_admitted
        time.now += verdict.seconds
    assert time.now < 20


def test_many_bytes_count_as_well_as_many_lines(quota: LogQuota, time: Time) -> None:
    admitted = 0
    while (verdict := quota.admit("p", "o", 10, 4 << 20)).is_admitted:
        admitted += 4 << 20
        time.now += verdict.seconds
    assert admitted <= 150 << 20


def test_many_parts_share_what_their_organization_may_send(quota: LogQuota, time: Time) -> None:
    admitted = 0
    for _ in range(100):
        for part in range(20):
            admitted += quota.admit(f"p{part}", "o", 1000, 1000 * LINE).is_admitted * 1000
        time.now += 1
    rates = log_quota.organization_rates(part_rates())
    assert admitted <= 100 * rates.peak_lines.per_second + rates.peak_lines.burst + 2 * 20_000
    assert quota.admit("q", "other", 1, LINE) == (True, 0.0, "part")


def test_low_disk_leaves_less_for_those_that_log_much(quota: LogQuota, time: Time) -> None:
    for share in (0.5, 0.1, 0.02, 0.0):
        admitted = 0
        for _ in range(1000):
            admitted += quota.admit("flood", "o", 1000, 1000 * LINE, share).is_admitted * 1000
            time.now += 1
            if time.now % 10 == 0:
                assert quota.admit("quiet", "o", 1, LINE, share).is_admitted
        rate = part_rates().sustained_lines.scaled(max(share, 0.01))
        assert admitted <= rate.burst + 1000 * rate.per_second + 1000


def test_parts_that_log_little_are_forgotten(quota: LogQuota, time: Time) -> None:
    for number in range(2 * log_quota._MAX_TRACKED):
        quota.admit(f"p{number}", f"o{number}", 1, LINE)
        time.now += 1
    assert len(quota._parts._found) <= log_quota._MAX_TRACKED
