"""Configurations that clients send."""

from __future__ import annotations

import pytest

from cogwork.cloud.configuration.config_text import require_config
from cogwork.config.source.config_editor import MAX_EDIT_SIZE
from cogwork.core.errors import InvalidRequest


def test_object_is_accepted() -> None:
    assert require_config('{"a": [{"b": 1}]}') == {"a": [{"b": 1}]}
    assert require_config('{"a":' * 100 + "1" + "}" * 100)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not JSON"),
        ('{"a": [NaN]}', "too large, or NaN"),
        (f'{{"a": {"1" * 400}}}', "too large, or NaN"),
        ("[]", "not a JSON object"),
        ("null", "not a JSON object"),
        ("5", "not a JSON object"),
        ('{"a":' * 101 + "1" + "}" * 101, "levels deep"),
        ('{"a":' + "[" * 200_000 + "]" * 200_000 + "}", "not JSON"),
        ('{"a": "' + "x" * MAX_EDIT_SIZE + '"}', "larger than"),
    ],
)
def test_anything_else_is_explained(text: str, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        require_config(text)
