"""A fake pose tracker of bodies that move by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from viam.components.pose_tracker import PoseTracker
from viam.proto.common import PoseInFrame

from cogwork.config.check.diagnostics import did_you_mean
from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import NotFound
from cogwork.drivers.no_geometry import NoGeometry
from cogwork.drivers.pose_tracker.attributes import FakePoseTrackerAttributes, TrackedBody
from cogwork.drivers.pose_tracker.paths import body_pose
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.messages.pose_proto import to_pose_in_frame
from cogwork.resource.model import logger_of


class FakePoseTracker(NoGeometry, PoseTracker):
    def __init__(
        self, name: ResourceName, attributes: FakePoseTrackerAttributes, clock: Clock
    ) -> None:
        super().__init__(name.name, logger=logger_of(name))
        self._bodies = {body.name: body for body in attributes.bodies}
        self._frame = attributes.reference_frame
        self._clock = clock
        self._since = clock.monotonic()

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: FakePoseTrackerAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> FakePoseTracker:
        del dependencies
        return cls(name, attributes, clock or SystemClock())

    async def get_poses(self, body_names: list[str], **_: Any) -> dict[str, PoseInFrame]:
        """Return the poses of the named bodies, or of all bodies if no names are given."""
        bodies = [self._find_body(name) for name in dict.fromkeys(body_names)]
        # Use one point in time for all poses, so that they can be compared.
        seconds = self._clock.monotonic() - self._since
        return {
            body.name: to_pose_in_frame(body_pose(body, seconds), self._frame)
            for body in bodies or self._bodies.values()
        }

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        return {"bodies": list(self._bodies), "reference_frame": self._frame}

    def _find_body(self, name: str) -> TrackedBody:
        body = self._bodies.get(name)
        if body is None:
            tracked = ", ".join(self._bodies) or "none"
            hint = did_you_mean(name, self._bodies) or f"it tracks {tracked}"
            raise NotFound(f'pose_tracker "{self.name}" has no body "{name}": {hint}')
        return body
