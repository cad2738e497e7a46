from __future__ import annotations

from cogwork.core.token_buckets import Budget, TokenBuckets


class Buckets(TokenBuckets):
    def __init__(self, max_tracked: int = 10) -> None:
        self.now = 0.0
        super().__init__(lambda: self.now, Budget(3, 10.0), max_tracked)


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


def test_memory_is_bounded() -> None:
    buckets = Buckets(max_tracked=10)
    for number in range(100):
        buckets.take(number)
    assert sum(number in buckets for number in range(100)) == 10
