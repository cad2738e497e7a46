"""The contract of SLAM services."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from viam.proto.service.slam import MappingMode
from viam.services.slam.client import SLAMClient

from cogwork.contracts.contract import TIMEOUT, Contract, allow_refusal
from cogwork.wire.transports.grpc_options import MAX_MESSAGE_SIZE


class SlamContract(Contract):
    api = "rdk:service:slam"
    client = SLAMClient

    keeps_state: ClassVar[bool] = True
    """Whether the service provides its internal state."""

    async def test_reports_position(self, resource: Any) -> None:
        pose = await resource.get_position(timeout=TIMEOUT)
        assert all(map(math.isfinite, (pose.x, pose.y, pose.z, pose.theta)))
        assert math.hypot(pose.o_x, pose.o_y, pose.o_z) == pytest.approx(1, abs=1e-3)

    async def test_map_is_a_point_cloud(self, resource: Any) -> None:
        _check_cloud(_join_chunks(await resource.get_point_cloud_map(timeout=TIMEOUT)))

    async def test_edited_map_is_a_point_cloud(self, resource: Any) -> None:
        with allow_refusal("GetPointCloudMap"):
            _check_cloud(_join_chunks(await resource.get_point_cloud_map(True, timeout=TIMEOUT)))

    async def test_reports_internal_state(self, resource: Any) -> None:
        """A service without internal state must refuse the request."""
        if self.keeps_state:
            assert _join_chunks(await resource.get_internal_state(timeout=TIMEOUT))
            return
        with pytest.raises(GRPCError) as refused:
            await resource.get_internal_state(timeout=TIMEOUT)
        assert refused.value.status is Status.UNIMPLEMENTED

    async def test_reports_mapping_mode(self, resource: Any) -> None:
        properties = await resource.get_properties(timeout=TIMEOUT)
        assert properties.mapping_mode != MappingMode.MAPPING_MODE_UNSPECIFIED


def _join_chunks(chunks: Sequence[bytes]) -> bytes:
    """Join the chunks and check that each is small enough to send."""
    assert all(0 < len(chunk) <= MAX_MESSAGE_SIZE for chunk in chunks)
    return b"".join(chunks)


def _check_cloud(cloud: bytes) -> None:
    header, found, points = cloud.partition(b"DATA ")
    assert found, "not a PCD file"
    lines = [line for line in header.decode("ascii").splitlines() if not line.startswith("#")]
    fields = {key: values for key, *values in map(str.split, lines)}
    assert fields["FIELDS"][:3] == ["x", "y", "z"]
    count = int(fields["POINTS"][0])
    assert count > 0, "the point cloud is empty"
    if points.startswith(b"binary\n"):
        each = zip(fields["SIZE"], fields["COUNT"], strict=True)
        size = sum(int(size) * int(times) for size, times in each)
        assert len(points) - len(b"binary\n") == size * count
