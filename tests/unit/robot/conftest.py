"""A machine for every test of the robot."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.unit.robot.bench import Bench, working


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with working() as made:
        yield made
