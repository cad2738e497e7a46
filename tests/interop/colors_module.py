"""A module with an ML model for a vision service: how red, green and blue an image is."""

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

SIDE = 320
"""A tensor of 300 kB: one that the SDK's own client takes a while to write."""


class Colors(MLModel, EasyResource):
    MODEL: ClassVar[Any] = "acme:test:colors"

    async def infer(
        self, input_tensors: dict[str, NDArray[Any]], **_: Any
    ) -> dict[str, NDArray[Any]]:
        image = input_tensors["image"]
        if image.shape != (1, SIDE, SIDE, 3) or image.dtype != np.uint8:
            raise ValueError(f"a picture of {image.shape}, {image.dtype}")
        return {"probability": (image.mean(axis=(1, 2)) / 255).astype(np.float32)}

    async def metadata(self, **_: Any) -> Metadata:
        output = TensorInfo(name="probability", data_type="float32", shape=[1, 3])
        return Metadata(
            name="colors",
            type="tflite_classifier",
            description="how much there is of each color",
            input_info=[TensorInfo(name="image", data_type="uint8", shape=[1, SIDE, SIDE, 3])],
            output_info=[output],
        )


if __name__ == "__main__":
    asyncio.run(Module.run_from_registry())
