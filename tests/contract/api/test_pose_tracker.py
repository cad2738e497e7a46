from __future__ import annotations

from cogwork.contracts.pose_tracker import PoseTrackerContract


class TestFake(PoseTrackerContract):
    model = "fake"
