"""What a generic service keeps to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from viam.services.generic.client import GenericClient

from cogwork.contracts.contract import Contract


class GenericServiceContract(Contract):
    api = "rdk:service:generic"
    client = GenericClient

    command: ClassVar[Mapping[str, Any]] = {"ping": True}
    """One that it answers: there is nothing else that it is for."""

    async def test_it_answers_a_command(self, it: Any) -> None:
        assert isinstance(await it.do_command(self.command), Mapping)
