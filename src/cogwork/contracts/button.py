"""The contract of buttons."""

from __future__ import annotations

import asyncio
from typing import Any

from viam.components.button.client import ButtonClient

from cogwork.contracts.contract import TIMEOUT, Contract


class ButtonContract(Contract):
    api = "rdk:component:button"
    client = ButtonClient

    async def test_can_be_pushed_repeatedly(self, resource: Any) -> None:
        for _ in range(2):
            await resource.push(timeout=TIMEOUT)

    async def test_can_be_pushed_concurrently(self, resource: Any) -> None:
        await asyncio.gather(resource.push(timeout=TIMEOUT), resource.push(timeout=TIMEOUT))
