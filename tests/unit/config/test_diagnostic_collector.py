from __future__ import annotations

import json

import pytest
from tests.unit.config.workshop import sensor, surroundings

from cogwork.config.diagnostic_collector import CheckCancelled
from cogwork.config.loader import load


def test_a_check_ends_soon_after_its_result_is_not_wanted() -> None:
    text = json.dumps({"components": [sensor(f"s{n}") for n in range(100)]})
    asked = 0

    def abandoned() -> bool:
        nonlocal asked
        asked += 1
        return asked > 20

    with pytest.raises(CheckCancelled):
        load(text, surroundings(), abandoned)
    assert asked == 21
