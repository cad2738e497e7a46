"""The methods of RobotService that deal with frames and poses."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping

from viam.gen.common.v1 import common_pb2 as common
from viam.gen.robot.v1 import robot_pb2 as robot

from cogwork.core.errors import CogworkError
from cogwork.resource.messages.pose_proto import pose_from_proto, to_pose_in_frame
from cogwork.resource.messages.structs import to_struct
from cogwork.resource.messages.supplemental_transforms import read_supplemental_transforms
from cogwork.resource.model import install_advice
from cogwork.robot.frame_system import FrameSystem
from cogwork.robot.placed_frame import PlacedFrame
from cogwork.spatial.kinematics import WORLD, format_sva
from cogwork.spatial.pose import Pose
from cogwork.wire.table.descriptor_service import UnaryHandler
from cogwork.wire.table.handlers import Stream

_log = logging.getLogger("rdk.framesystem")


class FramesService:
    def __init__(self, frames: FrameSystem) -> None:
        self._frames = frames

    def unary_handlers(self) -> Mapping[str, UnaryHandler]:
        return {
            "FrameSystemConfig": self.frame_system_config,
            "GetPose": self.get_pose,
            "TransformPose": self.transform_pose,
            "TransformPCD": self.transform_pcd,
        }

    async def frame_system_config(
        self, request: robot.FrameSystemConfigRequest, _: Stream
    ) -> robot.FrameSystemConfigResponse:
        configs = await asyncio.gather(
            *(self._build_frame_config(each) for each in self._frames.placed_frames())
        )
        return robot.FrameSystemConfigResponse(
            frame_system_configs=[
                *(config for config in configs if config is not None),
                *(robot.FrameSystemConfig(frame=each) for each in request.supplemental_transforms),
            ]
        )

    async def get_pose(self, request: robot.GetPoseRequest, _: Stream) -> robot.GetPoseResponse:
        destination = request.destination_frame or WORLD
        pose = await self._frames.transform(
            Pose.identity(),
            request.component_name,
            destination,
            read_supplemental_transforms(request.supplemental_transforms, self._frames),
        )
        return robot.GetPoseResponse(pose=to_pose_in_frame(pose, destination))

    async def transform_pose(
        self, request: robot.TransformPoseRequest, _: Stream
    ) -> robot.TransformPoseResponse:
        destination = request.destination or WORLD
        pose = await self._frames.transform(
            pose_from_proto(request.source.pose),
            request.source.reference_frame,
            destination,
            read_supplemental_transforms(request.supplemental_transforms, self._frames),
        )
        return robot.TransformPoseResponse(pose=to_pose_in_frame(pose, destination))

    async def transform_pcd(
        self, request: robot.TransformPCDRequest, _: Stream
    ) -> robot.TransformPCDResponse:
        pose = await self._frames.transform(Pose.identity(), request.source, request.destination)
        try:
            from cogwork.resource.pcd_transform import transform_cloud
        except ImportError as error:
            raise NotImplementedError(
                f"point clouds need {error.name}; {install_advice('camera')}"
            ) from None
        cloud = await asyncio.to_thread(transform_cloud, request.point_cloud_pcd, pose)
        return robot.TransformPCDResponse(point_cloud_pcd=cloud)

    async def _build_frame_config(self, each: PlacedFrame) -> robot.FrameSystemConfig | None:
        """Return the frame; None if its kinematics cannot be read, for example while the arm is
        unavailable."""
        try:
            chain = await self._frames.load_chain(each)
        except CogworkError as error:
            _log.warning("omitting frame %s from the frame system: %s", each.name, error)
            return None
        config = robot.FrameSystemConfig(frame=_to_transform_proto(each))
        if chain is not None:
            config.kinematics.CopyFrom(to_struct(json.loads(format_sva(chain))))
        return config


def _to_transform_proto(each: PlacedFrame) -> common.Transform:
    transform = common.Transform(
        reference_frame=each.name,
        pose_in_observer_frame=to_pose_in_frame(each.pose, each.parent),
    )
    if each.geometry is not None:
        transform.physical_object.CopyFrom(each.geometry)
    return transform
