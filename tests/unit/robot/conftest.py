"""A machine for every test of the robot."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.unit.robot.bench import Bench, running_bench


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with running_bench() as bench:
        yield bench
