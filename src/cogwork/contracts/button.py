"""What a button keeps to."""

from __future__ import annotations

import asyncio
from typing import Any

from viam.components.button.client import ButtonClient

from cogwork.contracts.contract import PATIENCE, Contract


class ButtonContract(Contract):
    api = "rdk:component:button"
    client = ButtonClient

    async def test_it_can_be_pushed_again(self, it: Any) -> None:
        for _ in range(2):
            await it.push(timeout=PATIENCE)

    async def test_it_can_be_pushed_by_two_at_once(self, it: Any) -> None:
        await asyncio.gather(it.push(timeout=PATIENCE), it.push(timeout=PATIENCE))
