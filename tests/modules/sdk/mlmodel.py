"""A module with an ML model that doubles what it is given."""

# The SDK's own classes are not all typed.
# mypy: disable-error-code="no-untyped-call,misc"

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from viam.module.module import Module
from viam.proto.service.mlmodel import Metadata, TensorInfo
from viam.resource.easy_resource import EasyResource
from viam.services.mlmodel import MLModel


class Doubler(MLModel, EasyResource):
    """Takes `input`, any number of float32, and gives `output`."""

    MODEL: ClassVar[Any] = "acme:test:doubler"

    async def infer(
        self, input_tensors: dict[str, NDArray[Any]], **_: Any
    ) -> dict[str, NDArray[Any]]:
        return {"output": input_tensors["input"].astype(np.float32) * np.float32(2)}

    async def metadata(self, **_: Any) -> Metadata:
        return Metadata(
            name="doubler",
            type="other",
            description="twice its input",
            input_info=[TensorInfo(name="input", data_type="float32", shape=[-1])],
            output_info=[TensorInfo(name="output", data_type="float32", shape=[-1])],
        )


if __name__ == "__main__":
    asyncio.run(Module.run_from_registry())
