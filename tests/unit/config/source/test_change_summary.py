from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.config.source.change_summary import summarize_change

CAMERA = {"name": "cam", "attributes": {"url": "rtsp://admin:canary@cam/"}}
LAMP = {"name": "lamp", "model": "fake"}


def items(count: int) -> dict[str, Any]:
    return {"components": [{"name": f"c{number}"} for number in range(count)]}


@pytest.mark.parametrize(
    ("before", "after", "summary"),
    [
        ({}, {"components": [LAMP]}, "added lamp"),
        ({"components": [LAMP]}, {}, "removed lamp"),
        (
            {"components": [CAMERA]},
            {"components": [{**CAMERA, "attributes": {}}, LAMP], "network": {}},
            "added lamp, network; changed cam",
        ),
        ({"debug": True}, {"debug": 1}, "changed debug"),
        ({"components": [LAMP, CAMERA]}, {"components": [CAMERA, LAMP]}, "formatting only"),
        ({"components": [LAMP]}, {"components": [LAMP, LAMP]}, "changed components"),
        ({"components": 5}, {"components": [LAMP]}, "changed components"),
        ({}, items(7), "added c0, c1, c2, c3, c4 and 2 more"),
        ({}, {"components": [{"name": "x" * 99}]}, f"added {'x' * 40}"),
    ],
)
def test_summary_names_what_changed(before: object, after: object, summary: str) -> None:
    assert summarize_change(json.dumps(before), json.dumps(after)) == summary


def test_summary_ignores_comments_and_line_breaks() -> None:
    assert (
        summarize_change('{"debug": true}', '{\n // why\n "debug": true,\n}') == "formatting only"
    )


@pytest.mark.parametrize("other", ["{", '{"debug": ${DEBUG}}', " " * (1 << 20) + "{}"])
def test_texts_that_are_not_parsed_are_compared_by_line(other: str) -> None:
    assert summarize_change("{}", other) == "lines: 1 added, 1 removed"


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_two_texts_have_a_summary_of_one_short_line(before: str, after: str) -> None:
    summary = summarize_change(before, after)
    assert summary
    assert len(summary) < 1000
