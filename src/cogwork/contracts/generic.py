"""The contract of generic components."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from viam.components.generic.client import GenericClient

from cogwork.contracts.contract import Contract, allow_refusal


class GenericContract(Contract):
    api = "rdk:component:generic"
    client = GenericClient

    command: ClassVar[Mapping[str, Any]] = {"ping": True}
    """A command that the component supports."""

    async def test_answers_command(self, resource: Any) -> None:
        assert isinstance(await resource.do_command(self.command), Mapping)

    async def test_reports_geometries(self, resource: Any) -> None:
        with allow_refusal("GetGeometries"):
            assert isinstance(await resource.get_geometries(), list)
