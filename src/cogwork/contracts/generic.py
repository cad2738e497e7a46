"""What a generic component keeps to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from viam.components.generic.client import GenericClient

from cogwork.contracts.contract import Contract, explained


class GenericContract(Contract):
    api = "rdk:component:generic"
    client = GenericClient

    command: ClassVar[Mapping[str, Any]] = {"ping": True}
    """One that it answers: there is nothing else that it is for."""

    async def test_it_answers_a_command(self, it: Any) -> None:
        assert isinstance(await it.do_command(self.command), Mapping)

    async def test_it_says_what_room_it_takes(self, it: Any) -> None:
        with explained("GetGeometries"):
            assert isinstance(await it.get_geometries(), list)
