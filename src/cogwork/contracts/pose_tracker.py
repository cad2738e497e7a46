"""The contract of pose trackers."""

from __future__ import annotations

import math
from typing import Any

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from viam.components.pose_tracker.client import PoseTrackerClient

from cogwork.contracts.contract import Contract, allow_refusal


class PoseTrackerContract(Contract):
    """The contract of pose trackers. The tracker must see at least one body."""

    api = "rdk:component:pose_tracker"
    client = PoseTrackerClient

    async def test_reports_all_poses(self, resource: Any) -> None:
        poses = await resource.get_poses([])
        assert poses, "no bodies are tracked"
        for placed in poses.values():
            pose = placed.pose
            assert placed.reference_frame
            assert all(map(math.isfinite, (pose.x, pose.y, pose.z, pose.theta)))
            assert math.hypot(pose.o_x, pose.o_y, pose.o_z) == pytest.approx(1, abs=1e-3)

    async def test_bodies_can_be_selected_by_name(self, resource: Any) -> None:
        names = list(await resource.get_poses([]))
        for name in names:
            assert list(await resource.get_poses([name])) == [name]
        assert set(await resource.get_poses(names)) == set(names)

    async def test_unknown_body_is_not_found(self, resource: Any) -> None:
        known = list(await resource.get_poses([]))
        for names in (["no such body"], [*known, "no such body"]):
            with pytest.raises(GRPCError) as refused:
                await resource.get_poses(names)
            assert refused.value.status is Status.NOT_FOUND
            assert "no such body" in (refused.value.message or "")

    async def test_reports_geometries(self, resource: Any) -> None:
        with allow_refusal("GetGeometries"):
            assert isinstance(await resource.get_geometries(), list)
