from __future__ import annotations

import pytest

from cogwork.core.versions.named_version import NAMED_VERSION, is_another_make


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        ({}, False),
        ({"software": {}, "notices": []}, False),
        ({"host": "press", "version": NAMED_VERSION}, False),
        ({"host": "press", "version": "0.1.3"}, False),
        ({"host": "press", "version": "0.99.0"}, True),
        ({"host": "press", "os": "linux"}, True),
    ],
)
def test_make_is_known_by_the_version(machine: dict[str, object], expected: bool) -> None:
    assert is_another_make(machine) == expected
