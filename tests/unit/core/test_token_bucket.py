from __future__ import annotations

from cogwork.core.token_bucket import Rate, TokenBucket

RATE = Rate(per_second=10, burst=100)


def test_burst_passes_and_then_the_rate() -> None:
    bucket = TokenBucket(RATE, now=0.0)
    bucket.take(100)
    assert bucket.wait(RATE, now=0.0) == 0.0
    bucket.take(50)
    assert bucket.wait(RATE, now=0.0) == 5.0
    assert bucket.wait(RATE, now=4.0) == 1.0
    assert bucket.wait(RATE, now=5.0) == 0.0


def test_more_than_the_burst_passes_once_and_is_paid_back() -> None:
    bucket = TokenBucket(RATE, now=0.0)
    bucket.take(1000)
    assert bucket.wait(RATE, now=0.0) == 90.0


def test_bucket_holds_no_more_than_the_burst() -> None:
    bucket = TokenBucket(RATE, now=0.0)
    assert bucket.is_full(RATE, now=0.0)
    bucket.take(1)
    assert not bucket.is_full(RATE, now=0.0)
    assert bucket.is_full(RATE, now=3600.0)
    bucket.take(110)
    assert bucket.wait(RATE, now=3600.0) == 1.0


def test_smaller_rate_takes_the_burst_back() -> None:
    bucket, half = TokenBucket(RATE, now=0.0), RATE.scaled(0.5)
    bucket.wait(half, now=0.0)
    bucket.take(60)
    assert bucket.wait(half, now=0.0) == 2.0


def test_clock_that_goes_back_gives_nothing() -> None:
    bucket = TokenBucket(RATE, now=10.0)
    bucket.take(110)
    assert bucket.wait(RATE, now=5.0) == 1.0
