"""RobotService: where everything is."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping

from viam.gen.common.v1 import common_pb2 as common
from viam.gen.robot.v1 import robot_pb2 as robot

from cogwork.core.errors import CogworkError
from cogwork.resource.poses import from_message, placed, shape_of
from cogwork.resource.structs import to_struct
from cogwork.resource.supplements import supplements
from cogwork.robot.frames import FrameSystem, Placed
from cogwork.spatial.kinematics import WORLD, write_sva
from cogwork.spatial.pose import Pose
from cogwork.wire.described import Answer
from cogwork.wire.handlers import Stream

_log = logging.getLogger("rdk.framesystem")


class FramesService:
    def __init__(self, frames: FrameSystem) -> None:
        self._frames = frames

    def answers(self) -> Mapping[str, Answer]:
        return {
            "FrameSystemConfig": self.frame_system_config,
            "GetPose": self.get_pose,
            "TransformPose": self.transform_pose,
            "TransformPCD": self.transform_pcd,
        }

    async def frame_system_config(
        self, request: robot.FrameSystemConfigRequest, _: Stream
    ) -> robot.FrameSystemConfigResponse:
        configs = await asyncio.gather(*(self._config(each) for each in self._frames.placed()))
        return robot.FrameSystemConfigResponse(
            frame_system_configs=[
                *(config for config in configs if config is not None),
                *(robot.FrameSystemConfig(frame=each) for each in request.supplemental_transforms),
            ]
        )

    async def get_pose(self, request: robot.GetPoseRequest, _: Stream) -> robot.GetPoseResponse:
        destination = request.destination_frame or WORLD
        pose = await self._frames.transform(
            Pose.zero(),
            request.component_name,
            destination,
            supplements(request.supplemental_transforms, self._frames),
        )
        return robot.GetPoseResponse(pose=placed(pose, destination))

    async def transform_pose(
        self, request: robot.TransformPoseRequest, _: Stream
    ) -> robot.TransformPoseResponse:
        destination = request.destination or WORLD
        pose = await self._frames.transform(
            from_message(request.source.pose),
            request.source.reference_frame,
            destination,
            supplements(request.supplemental_transforms, self._frames),
        )
        return robot.TransformPoseResponse(pose=placed(pose, destination))

    async def transform_pcd(
        self, request: robot.TransformPCDRequest, _: Stream
    ) -> robot.TransformPCDResponse:
        pose = await self._frames.transform(Pose.zero(), request.source, request.destination)
        try:
            from cogwork.resource.pcd import moved
        except ImportError as error:
            raise NotImplementedError(
                f"point clouds need {error.name}; install it with `pip install 'cogwork[camera]'`"
            ) from None
        cloud = await asyncio.to_thread(moved, request.point_cloud_pcd, pose)
        return robot.TransformPCDResponse(point_cloud_pcd=cloud)

    async def _config(self, each: Placed) -> robot.FrameSystemConfig | None:
        """None for an arm that is not there: nobody knows how it is built."""
        try:
            chain = await self._frames.chain(each)
        except CogworkError as error:
            _log.warning("frame %s is left out: %s", each.called, error)
            return None
        config = robot.FrameSystemConfig(frame=_transform(each))
        if chain is not None:
            config.kinematics.CopyFrom(to_struct(json.loads(write_sva(chain))))
        return config


def _transform(each: Placed) -> common.Transform:
    transform = common.Transform(
        reference_frame=each.called,
        pose_in_observer_frame=placed(each.frame.pose, each.frame.parent),
    )
    if each.frame.geometry is not None:
        transform.physical_object.CopyFrom(shape_of(each.frame.geometry, each.called))
    return transform
