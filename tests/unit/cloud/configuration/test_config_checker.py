"""Organizations take turns when their configurations are checked."""

from __future__ import annotations

import asyncio
import threading

import pytest
from tests.support.waiting import run_others

from cogwork.cloud.configuration.config_checker import ConfigChecker
from cogwork.core.clock import SystemClock
from cogwork.wire.table.concurrency_limit import TooManyCalls


async def test_edits_of_an_organization_do_not_delay_those_of_another() -> None:
    checker, is_released = ConfigChecker(SystemClock()), threading.Event()

    def read_slowly() -> str:
        is_released.wait(30)
        return "{}"

    async with asyncio.TaskGroup() as tasks:
        try:
            for _ in range(33):  # one is checked, and the others wait
                tasks.create_task(checker.check("busy", read_slowly))
            await run_others()
            with pytest.raises(TooManyCalls, match="wait for some of them to finish"):
                await checker.check("busy", read_slowly)
            async with asyncio.timeout(30):
                await checker.check("other", lambda: "{}")
        finally:
            is_released.set()
