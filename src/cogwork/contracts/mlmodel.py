"""What a machine-learning model keeps to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from grpclib import GRPCError
from grpclib.const import Status
from viam.proto.service.mlmodel import TensorInfo
from viam.services.mlmodel.client import MLModelClient

from cogwork.contracts.contract import Contract

_TYPES = {"float32": "f4", "float64": "f8"}
_DEFAULT_SIZE = 2
"""For a side that the model leaves open, after the first, which is one."""


class MLModelContract(Contract):
    api = "rdk:service:mlmodel"
    client = MLModelClient

    async def test_it_describes_its_tensors(self, it: Any) -> None:
        metadata = await it.metadata()
        for tensor in (*metadata.input_info, *metadata.output_info):
            assert tensor.name, "a tensor without a name"
            assert tensor.data_type, f'tensor "{tensor.name}" without a type'
        assert metadata.input_info, "no input"

    async def test_it_infers_what_it_describes(self, it: Any) -> None:
        metadata = await it.metadata()
        outputs = await it.infer({each.name: _nothing(each) for each in metadata.input_info})
        assert outputs
        described = {each.name for each in metadata.output_info}
        assert not described or described == set(outputs)
        again = await it.infer({each.name: _nothing(each) for each in metadata.input_info})
        for name, tensor in outputs.items():
            assert np.array_equal(tensor, again[name], equal_nan=True), f"{name} is not the same"

    async def test_a_tensor_that_fits_nothing_is_refused(self, it: Any) -> None:
        with pytest.raises(GRPCError) as refused:
            await it.infer({"no such tensor": np.zeros((1, 2, 3, 4, 5, 6), np.uint8)})
        assert refused.value.status is Status.INVALID_ARGUMENT


def _nothing(tensor: TensorInfo) -> np.ndarray[Any, Any]:
    sides = [
        side if side > 0 else _DEFAULT_SIZE if place else 1
        for place, side in enumerate(tensor.shape)
    ]
    return np.zeros(sides, _TYPES.get(tensor.data_type, tensor.data_type))
