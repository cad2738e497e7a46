"""Configurations that clients send."""

from __future__ import annotations

import pytest

from cogwork.cloud.config_text import MAX_SIZE, require_config
from cogwork.core.errors import InvalidRequest


def test_object_is_accepted() -> None:
    assert require_config('{"a": [{"b": 1}]}') == {"a": [{"b": 1}]}
    assert require_config('{"a":' * 100 + "1" + "}" * 100)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not JSON"),
        ('{"a": NaN}', "NaN is not a number"),
        (f'{{"a": {"1" * 301}}}', "more than 300 digits"),
        ("[]", "not a JSON object"),
        ("null", "not a JSON object"),
        ("5", "not a JSON object"),
        ('{"a":' * 101 + "1" + "}" * 101, "levels deep"),
        ('{"a":' + "[" * 200_000 + "]" * 200_000 + "}", "levels deep"),
        ('{"a": "' + "x" * MAX_SIZE + '"}', "larger than"),
    ],
)
def test_anything_else_is_explained(text: str, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        require_config(text)
