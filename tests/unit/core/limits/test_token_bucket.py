from __future__ import annotations

from cogwork.core.limits.token_bucket import Rate, TokenBucket, TokenBuckets

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


class Buckets(TokenBuckets):
    def __init__(self, max_tracked: int = 10) -> None:
        self.now = 0.0
        super().__init__(lambda: self.now, Rate.every(10.0, burst=3), max_tracked)


def test_bucket_is_emptied_and_refills_with_time() -> None:
    buckets = Buckets()
    assert [buckets.try_take("a") for _ in range(5)] == [True] * 3 + [False] * 2
    assert buckets.wait("a") == 10
    assert buckets.try_take("b")
    buckets.now = 10.0
    assert [buckets.try_take("a") for _ in range(2)] == [True, False]
    buckets.now = 1000.0
    assert [buckets.try_take("a") for _ in range(4)] == [True] * 3 + [False]


def test_tokens_can_be_borrowed() -> None:
    buckets = Buckets()
    for _ in range(5):
        buckets.take("a")
    assert buckets.wait("a") == 30
    buckets.refill("a")
    assert buckets.wait("a") == 0


def test_tokens_are_taken_after_a_pause() -> None:
    buckets = Buckets()
    buckets.take("a")
    buckets.now = 1000.0
    for _ in range(3):
        buckets.take("a")
    assert buckets.wait("a") == 10


def test_memory_is_bounded() -> None:
    buckets = Buckets(max_tracked=10)
    for number in range(100):
        buckets.take(number)
    assert sum(number in buckets for number in range(100)) == 10
