from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cogwork.helpers.message_stream import MessageSplitter, join_messages


@given(st.lists(st.binary(max_size=300)), st.integers(1, 50))
def test_messages_survive_any_division(messages: list[bytes], size: int) -> None:
    data = join_messages(messages)
    splitter = MessageSplitter()
    found = []
    for start in range(0, len(data), size):
        found += splitter.feed(data[start : start + size])
    assert found == messages
