"""Fields of a log record: JSON values of bounded size."""

from __future__ import annotations

from pathlib import Path

from cogwork.logs.fields import limit_fields
from cogwork.logs.truncation import LIMIT


def test_small_fields_are_unchanged() -> None:
    fields = {"a": 1, "b": [True, None, 1.5], "c": {"d": "text"}}
    assert limit_fields(fields, str) == fields


def test_values_unknown_to_json_become_text() -> None:
    class Broken:
        def __str__(self) -> str:
            raise ValueError

    assert limit_fields({"a": Path("/x"), 7: Broken()}, str) == {
        "a": "/x",
        "7": "<Broken that cannot be formatted>",
    }


def test_total_size_of_fields_is_bounded() -> None:
    fields = {f"f{number}": "x" * 10_000 for number in range(100)}
    bounded = limit_fields(fields, str)
    assert len(str(bounded)) < LIMIT + 1000
    assert bounded["…"] == "[cut 96 fields]"
    assert bounded["f3"].endswith("characters]")
    assert limit_fields({"a": ["x" * LIMIT]}, str)["a"].endswith("… [cut 4 characters]")
