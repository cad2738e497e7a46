"""Long texts are truncated between characters, with a mark."""

from __future__ import annotations

import re
import time

from hypothesis import given
from hypothesis import strategies as st

from cogwork.logs.truncation import LIMIT, truncate

MARK = re.compile(r"… \[cut ([\d,]+) characters\]$")


@given(st.text(st.characters(codec=None), max_size=60), st.integers(1, 60))
def test_truncation_mark_counts_the_cut_characters(text: str, limit: int) -> None:
    cut = truncate(text, limit=limit)
    if len(text.encode(errors="surrogatepass")) <= limit:
        assert cut == text
        return
    mark = MARK.search(cut)
    assert mark is not None
    kept = cut[: mark.start()]
    assert text.startswith(kept)
    assert limit - 4 < len(kept.encode(errors="surrogatepass")) <= limit
    assert int(mark[1].replace(",", "")) == len(text) - len(kept)


def test_text_at_the_limit_is_not_truncated() -> None:
    assert truncate("x" * LIMIT) == "x" * LIMIT
    assert truncate("x" * (LIMIT + 1)) == "x" * LIMIT + "… [cut 1 characters]"


def test_truncation_time_does_not_grow_with_the_text() -> None:
    assert _seconds("\N{PILE OF POO}" * (8 << 20)) < 20 * _seconds("\N{PILE OF POO}" * (64 << 10))


def _seconds(text: str) -> float:
    started = time.perf_counter()
    for _ in range(100):
        truncate(text)
    return time.perf_counter() - started
