"""The contract of ML model services."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from grpclib import GRPCError
from grpclib.const import Status
from viam.proto.service.mlmodel import TensorInfo
from viam.services.mlmodel.client import MLModelClient

from cogwork.contracts.contract import Contract

_NUMPY_TYPES = {"float32": "f4", "float64": "f8"}
_DEFAULT_SIZE = 2
"""Size of dynamic dimensions in test inputs. A dynamic first dimension has the size 1 instead."""


class MLModelContract(Contract):
    api = "rdk:service:mlmodel"
    client = MLModelClient

    async def test_describes_tensors(self, resource: Any) -> None:
        metadata = await resource.metadata()
        for tensor in (*metadata.input_info, *metadata.output_info):
            assert tensor.name, "a tensor has no name"
            assert tensor.data_type, f'tensor "{tensor.name}" has no type'
        assert metadata.input_info, "the model has no inputs"

    async def test_inference_matches_metadata(self, resource: Any) -> None:
        metadata = await resource.metadata()
        outputs = await resource.infer({each.name: _zeros(each) for each in metadata.input_info})
        assert outputs
        described = {each.name for each in metadata.output_info}
        assert not described or described == set(outputs)
        again = await resource.infer({each.name: _zeros(each) for each in metadata.input_info})
        for name, tensor in outputs.items():
            assert np.array_equal(tensor, again[name], equal_nan=True), (
                f"{name} differs between two runs"
            )

    async def test_refuses_unknown_tensor(self, resource: Any) -> None:
        with pytest.raises(GRPCError) as refused:
            await resource.infer({"no such tensor": np.zeros((1, 2, 3, 4, 5, 6), np.uint8)})
        assert refused.value.status is Status.INVALID_ARGUMENT


def _zeros(tensor: TensorInfo) -> np.ndarray[Any, Any]:
    sides = [
        side if side > 0 else _DEFAULT_SIZE if place else 1
        for place, side in enumerate(tensor.shape)
    ]
    return np.zeros(sides, _NUMPY_TYPES.get(tensor.data_type, tensor.data_type))
