"""The contract of generic services."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from viam.services.generic.client import GenericClient

from cogwork.contracts.contract import Contract


class GenericServiceContract(Contract):
    api = "rdk:service:generic"
    client = GenericClient

    command: ClassVar[Mapping[str, Any]] = {"ping": True}
    """A command that the service supports."""

    async def test_answers_command(self, resource: Any) -> None:
        assert isinstance(await resource.do_command(self.command), Mapping)
