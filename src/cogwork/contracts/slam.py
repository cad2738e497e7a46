"""What a SLAM service keeps to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from viam.proto.service.slam import MappingMode
from viam.services.slam.client import SLAMClient

from cogwork.contracts.contract import PATIENCE, Contract, explained
from cogwork.wire.grpc import LARGEST_MESSAGE


class SlamContract(Contract):
    api = "rdk:service:slam"
    client = SLAMClient

    keeps_state: ClassVar[bool] = True
    """Whether it hands out its internal state."""

    async def test_it_says_where_it_is(self, it: Any) -> None:
        pose = await it.get_position(timeout=PATIENCE)
        assert all(map(math.isfinite, (pose.x, pose.y, pose.z, pose.theta)))
        assert math.hypot(pose.o_x, pose.o_y, pose.o_z) == pytest.approx(1, abs=1e-3)

    async def test_its_map_is_a_point_cloud(self, it: Any) -> None:
        _check_cloud(_whole(await it.get_point_cloud_map(timeout=PATIENCE)))

    async def test_so_is_one_that_somebody_edited(self, it: Any) -> None:
        with explained("GetPointCloudMap"):
            _check_cloud(_whole(await it.get_point_cloud_map(True, timeout=PATIENCE)))

    async def test_it_hands_out_what_it_would_go_on_from(self, it: Any) -> None:
        """Or says that it has nothing of the kind."""
        if self.keeps_state:
            assert _whole(await it.get_internal_state(timeout=PATIENCE))
            return
        with pytest.raises(GRPCError) as refused:
            await it.get_internal_state(timeout=PATIENCE)
        assert refused.value.status is Status.UNIMPLEMENTED

    async def test_it_says_what_it_does(self, it: Any) -> None:
        properties = await it.get_properties(timeout=PATIENCE)
        assert properties.mapping_mode != MappingMode.MAPPING_MODE_UNSPECIFIED


def _whole(chunks: Sequence[bytes]) -> bytes:
    """However large it is, it travels."""
    assert all(0 < len(chunk) <= LARGEST_MESSAGE for chunk in chunks)
    return b"".join(chunks)


def _check_cloud(cloud: bytes) -> None:
    header, found, points = cloud.partition(b"DATA ")
    assert found, "that is no PCD file"
    lines = [line for line in header.decode("ascii").splitlines() if not line.startswith("#")]
    fields = {key: values for key, *values in map(str.split, lines)}
    assert fields["FIELDS"][:3] == ["x", "y", "z"]
    count = int(fields["POINTS"][0])
    assert count > 0, "there is no point in it"
    if points.startswith(b"binary\n"):
        each = zip(fields["SIZE"], fields["COUNT"], strict=True)
        size = sum(int(size) * int(times) for size, times in each)
        assert len(points) - len(b"binary\n") == size * count
