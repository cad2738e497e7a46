"""Fixtures of the tests of the fleet client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.interop.app_client.owner import Owner, run_owner


@pytest.fixture
async def owner(tmp_path: Path) -> AsyncIterator[Owner]:
    async with run_owner(tmp_path) as running:
        yield running
