"""A module that records the calls it gets, in order; `acme:test:counted` returns them."""

# The SDK's own classes are not all typed.
# mypy: disable-error-code="no-untyped-call,misc"

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from viam.components.generic import Generic
from viam.module.module import Module
from viam.proto.app.robot import ComponentConfig
from viam.proto.common import ResourceName
from viam.proto.module import (
    AddResourceRequest,
    ReconfigureResourceRequest,
    RemoveResourceRequest,
)
from viam.resource.base import ResourceBase
from viam.resource.easy_resource import EasyResource
from viam.utils import struct_to_dict

CALLS: list[str] = []


class CountingModule(Module):
    async def add_resource(self, request: AddResourceRequest, *, deadline: Any = None) -> None:
        # The SDK reconfigures a resource by adding it once more.
        if CALLS[-1:] != [f"reconfigure {request.config.name}"]:
            CALLS.append(f"add {request.config.name}")
        await super().add_resource(request, deadline=deadline)

    async def reconfigure_resource(self, request: ReconfigureResourceRequest) -> None:
        CALLS.append(f"reconfigure {request.config.name}")
        await super().reconfigure_resource(request)

    async def remove_resource(self, request: RemoveResourceRequest) -> None:
        CALLS.append(f"remove {request.name.rpartition('/')[2]}")
        await super().remove_resource(request)


class Counted(Generic, EasyResource):
    """`needs`: names of its dependencies; `fails`: the error of its constructor."""

    MODEL: ClassVar[Any] = "acme:test:counted"

    about: Mapping[str, Any]

    @classmethod
    def validate_config(cls, config: ComponentConfig) -> tuple[Sequence[str], Sequence[str]]:
        attributes: Mapping[str, Any] = struct_to_dict(config.attributes)
        return attributes.get("needs", []), []

    @classmethod
    def new(
        cls, config: ComponentConfig, dependencies: Mapping[ResourceName, ResourceBase]
    ) -> Counted:
        attributes: Mapping[str, Any] = struct_to_dict(config.attributes)
        if "fails" in attributes:
            raise RuntimeError(str(attributes["fails"]))
        counted = cls(config.name)
        counted.about = {
            "attributes": attributes,
            "dependencies": sorted(each.name for each in dependencies),
            "pid": os.getpid(),
        }
        return counted

    async def do_command(self, command: Mapping[str, Any], **_: Any) -> Mapping[str, Any]:
        """Return the calls since the last time, and a description of itself."""
        calls = list(CALLS)
        CALLS.clear()
        return {"calls": calls, **self.about}


if __name__ == "__main__":
    asyncio.run(CountingModule.run_from_registry())
