from __future__ import annotations

import pytest

from cogwork.modules.context import Deadlines, read_deadlines


def test_deadlines_are_read_from_the_environment() -> None:
    found = read_deadlines(
        {
            "VIAM_MODULE_STARTUP_TIMEOUT": "1m30s",
            "VIAM_RESOURCE_CONFIGURATION_TIMEOUT": "10s",
        }
    )
    assert (found.start, found.add) == (90, 10)


@pytest.mark.parametrize("text", ["", "soon", "-5s", "0s"])
def test_invalid_deadline_has_no_effect(text: str) -> None:
    assert read_deadlines({"VIAM_MODULE_STARTUP_TIMEOUT": text}) == Deadlines()
